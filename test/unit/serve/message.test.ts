import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeIssue } from '../../../src/serve/core/errors.ts';
import { readMessage } from '../../../src/serve/core/message.ts';
import { METHODS } from '../../../src/serve/protocol/tables.ts';

const read = (text: string | Buffer) => readMessage(Buffer.from(text), 8);
const problemOf = (text: string | Buffer) => {
  const message = read(text);
  return message !== undefined && 'problem' in message ? message.problem : undefined;
};

describe('a line', () => {
  it('is any JSON text that is not too deep', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        const text = JSON.stringify(value);
        expect(read(text)).toEqual({ value: JSON.parse(text) });
        expect(read(JSON.stringify(value, null, 1).replaceAll('\n', ' '))).toEqual(read(text));
      }),
    );
  });

  it('that is blank says nothing', () => {
    for (const blank of ['', ' ', '\r', '\t ']) expect(read(blank)).toBeUndefined();
  });

  it.each([
    ['no JSON', 'ls', /not JSON/],
    ['two values', '{} {}', /not JSON/],
    ['a byte order mark', '\uFEFF{}', /not JSON/],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), /not JSON/],
    ['a key twice', '{"a":1,"a":2}', /twice/],
    ['a key twice further in', '[{"b":{"a":1,"a":{}}}]', /twice/],
    ['a key twice by way of escapes', '{"a":1,"\\u0061":2}', /twice/],
    ['a __proto__ twice', '{"__proto__":1,"__proto__":2}', /twice/],
    ['arrays in each other', `${'['.repeat(9)}${']'.repeat(9)}`, /8 deep/],
    ['arrays without an end', '['.repeat(1_000_000), /8 deep/],
    ['objects in each other', `${'{"a":'.repeat(9)}1${'}'.repeat(9)}`, /8 deep/],
  ])('is refused for %s', (_, text, problem) => {
    expect(problemOf(text)).toMatch(problem);
  });

  it('may have what looks like it in its texts', () => {
    const texts = ['{"a":1,"a":2}', '[[[[[[[[[[', '\\"":"', '":\\', '\\\\'];
    for (const text of texts) {
      const line = JSON.stringify({ text, [text]: [text] });
      expect(read(line)).toEqual({ value: JSON.parse(line) });
    }
  });
});

describe('what a gate is asked', () => {
  const { params } = METHODS['gate.check'];
  const issueOf = (value: unknown) => {
    const checked = params.safeParse(value);
    return checked.success ? undefined : describeIssue('gate.check', checked.error.issues[0]);
  };

  it('is read with everything that it may have', () => {
    const question = { command: 'echo "ü\n"', session: 's.1', tool: 'mcp__shell/run:bash' };
    expect(params.parse(question)).toEqual(question);
  });

  it('may have a command of exactly 128 KiB', () => {
    const most = 128 * 1024;
    expect(issueOf({ command: 'x'.repeat(most) })).toBeUndefined();
    expect(issueOf({ command: 'x'.repeat(most + 1) })).toMatch(/128 KiB/);
    expect(issueOf({ command: 'ü'.repeat(most / 2 + 1) })).toMatch(/128 KiB/);
  });

  it.each([
    ['an array', ['ls'], /params/],
    ['null', null, /params/],
    ['a further key', { command: 'ls', approved: true }, /keys that the protocol does not have/],
    ['a further __proto__', JSON.parse('{"command":"ls","__proto__":{"x":"y"}}'), /keys/],
    ['no command', {}, /command/],
    ['an empty command', { command: '' }, /command/],
    ['a command that is no text', { command: ['ls'] }, /command/],
    ['NUL in the command', { command: 'ls\0rm' }, /NUL/],
    ['half a character', { command: '\ud800' }, /Unicode/],
    ['a session with a colon', { command: 'ls', session: 'gate:uid:0' }, /session/],
    ['a session that is null', { command: 'ls', session: null }, /session/],
    ['a tool with a control', { command: 'ls', tool: 'x\u001b[2J' }, /tool/],
  ])('is refused for %s', (_, value, problem) => {
    expect(issueOf(value)).toMatch(problem);
  });

  it('is quoted in no refusal', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 4 }), (text) => {
        const problem = issueOf({ command: 'ls', [`EVIL${text}`]: 'x' }) ?? '';
        expect(problem).toMatch(/keys/);
        expect(problem).not.toContain('EVIL');
      }),
    );
  });
});

describe('the answer of a gate', () => {
  it.each([
    { decision: 'ALLOW' },
    { decision: true },
    { decision: 'allow', also: 'x' },
    { reason: 'x' },
    [{ decision: 'allow' }],
    { decision: 'allow', reason: 'x'.repeat(2001) },
  ])('is not %j', (value) => {
    expect(METHODS['gate.check'].result.safeParse(value).success).toBe(false);
  });
});
