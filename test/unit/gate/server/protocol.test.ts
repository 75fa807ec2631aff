import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  decodeRequest,
  decodeResponse,
  encodeRequest,
  encodeResponse,
  MAX_COMMAND_BYTES,
  MAX_MESSAGE_BYTES,
} from '../../../../src/gate/server/protocol.ts';
import { requestText } from './support.ts';

const bytes = (text: string) => Buffer.from(text);
const problemOf = (text: string | Buffer) => {
  const decoded = decodeRequest(typeof text === 'string' ? bytes(text) : text);
  return decoded.ok ? undefined : decoded.problem;
};

describe('a request', () => {
  it('is read with everything that it may have', () => {
    const message = {
      type: 'security:bash_check',
      request_id: 'A-z_0.9',
      command: 'echo "ü\n"',
      session: 's.1',
      tool: 'mcp__shell/run:bash',
    } as const;
    expect(decodeRequest(bytes(encodeRequest(message).trimEnd()))).toEqual({ ok: true, message });
  });

  it('may have a command of exactly 128 KiB', () => {
    expect(problemOf(requestText('a', 'x'.repeat(MAX_COMMAND_BYTES)))).toBeUndefined();
    expect(problemOf(requestText('a', 'x'.repeat(MAX_COMMAND_BYTES + 1)))).toMatch(/128 KiB/);
    expect(problemOf(requestText('a', 'ü'.repeat(MAX_COMMAND_BYTES / 2 + 1)))).toMatch(/128 KiB/);
  });

  it.each([
    ['no JSON', 'ls', /not JSON/],
    ['nothing', '', /not JSON/],
    ['two values', `${requestText('a')} ${requestText('b')}`, /not JSON/],
    ['an array', `[${requestText('a')}]`, /./],
    ['null', 'null', /not an object/],
    ['a string', '"ls"', /not an object/],
    ['a byte order mark', `\uFEFF${requestText('a')}`, /not JSON/],
    ['bytes that are not UTF-8', Buffer.from([0x22, 0xff, 0x22]), /not UTF-8/],
    ['another type', requestText('a', 'ls', { type: 'security:other' }), /type/],
    ['a further key', requestText('a', 'ls', { approved: true }), /keys that the protocol does not have/],
    ['a further __proto__', `${requestText('a').slice(0, -1)},"__proto__":{"x":"y"}}`, /./],
    ['a command twice', `${requestText('a', 'ls').slice(0, -1)},"command":"rm -r x"}`, /twice/],
    ['a command twice, once not as text', `{"command":1,${requestText('a', 'ls').slice(1)}`, /twice/],
    ['a key twice by way of escapes', `${requestText('a').slice(0, -1)},"c\\u006fmmand":"x"}`, /twice/],
    ['no command', '{"type":"security:bash_check","request_id":"a"}', /command/],
    ['an empty command', requestText('a', ''), /empty/],
    [
      'a command that is no text',
      '{"type":"security:bash_check","request_id":"a","command":["ls"]}',
      /command/,
    ],
    ['NUL in the command', requestText('a', 'ls\0rm'), /NUL/],
    ['half a character', `${requestText('a').replace('"ls"', '"\\ud800"')}`, /Unicode/],
    ['an empty id', requestText(''), /request_id/],
    ['a long id', requestText('x'.repeat(129)), /request_id/],
    ['an id with a slash', requestText('../x'), /request_id/],
    ['an id with a line break', requestText('a\n'), /request_id/],
    ['an id with a letter from elsewhere', requestText('ä'), /request_id/],
    ['an id that is a number', '{"type":"security:bash_check","request_id":1,"command":"ls"}', /request_id/],
    ['a session with a colon', requestText('a', 'ls', { session: 'gate:uid:0' }), /session/],
    ['a session that is null', requestText('a', 'ls', { session: null }), /session/],
    ['a tool with a control', requestText('a', 'ls', { tool: 'x\u001b[2J' }), /tool/],
  ])('is refused for %s', (_, text, problem) => {
    expect(problemOf(text)).toMatch(problem);
  });

  it('is refused without a look at what is longer than 256 KiB', () => {
    expect(problemOf(Buffer.alloc(MAX_MESSAGE_BYTES + 1, 0x20))).toMatch(/256 KiB/);
  });

  it('that is refused keeps an id that can be answered, and no other', () => {
    const idOf = (text: string) => {
      const decoded = decodeRequest(bytes(text));
      return decoded.ok ? 'no problem' : decoded.requestId;
    };
    expect(idOf(requestText('abc', ''))).toBe('abc');
    expect(idOf(requestText('../x', ''))).toBeUndefined();
    expect(idOf('{"request_id":["a"]}')).toBeUndefined();
    expect(idOf('[')).toBeUndefined();
  });

  it('quotes nothing of a stranger in the refusal', () => {
    fc.assert(
      fc.property(fc.string({ minLength: 4 }), (text) => {
        const problem = problemOf(requestText('a', 'ls', { [`EVIL${text}`]: 'x' })) ?? '';
        expect(problem).not.toContain('EVIL');
      }),
    );
  });
});

describe('a response', () => {
  it('is one line, whatever the reason', () => {
    const text = encodeResponse({ request_id: 'a', decision: 'deny', reason: 'one\ntwo\r\n' });
    expect(text).toMatch(/^[^\n]+\n$/);
    expect(decodeResponse(bytes(text))).toEqual({
      ok: true,
      message: { request_id: 'a', decision: 'deny', reason: 'one\ntwo\r\n' },
    });
  });

  it('has a reason that is cut where it would be too long', () => {
    const text = encodeResponse({ request_id: 'a', decision: 'deny', reason: 'x'.repeat(100_000) });
    expect(decodeResponse(bytes(text))).toMatchObject({ ok: true });
  });

  it.each([
    ['another decision', '{"request_id":"a","decision":"ALLOW"}'],
    ['true', '{"request_id":"a","decision":true}'],
    ['a further key', '{"request_id":"a","decision":"allow","also":"x"}'],
    ['two decisions', '{"request_id":"a","decision":"deny","decision":"allow"}'],
    ['no id', '{"decision":"allow"}'],
    ['an array', '[{"request_id":"a","decision":"allow"}]'],
  ])('with %s is none', (_, text) => {
    expect(decodeResponse(bytes(text)).ok).toBe(false);
  });

  it('survives every message that a server can send', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.constantFrom('allow', 'deny'), (reason, decision) => {
        const message = { request_id: 'a', decision, reason } as const;
        expect(decodeResponse(bytes(encodeResponse(message)))).toEqual({ ok: true, message });
      }),
    );
  });
});
