import { describe, expect, it } from 'vitest';
import { encodeRecord } from '../../../../src/gate/audit/encode-record.ts';
import { PATTERNS, Recognizer } from '../../../../src/gate/audit/patterns.ts';
import { NO_HASH, sealRecord } from '../../../../src/gate/audit/record-line.ts';
import { parseRecord } from '../../../../src/gate/audit/stored-record.ts';
import type { AuditRecord, DecisionRecord } from '../../../../src/model/index.ts';
import { decision, makeDirectory, open, problemsOf, reason, recordsOf, write } from './support.ts';

type Step = Partial<DecisionRecord> & { readonly after?: number };

/** Codes of the events that a series of commands raises, each command 1 s after the one before unless it says. */
function raisedBy(steps: readonly Step[]): readonly string[] {
  const recognizer = new Recognizer();
  let time = Date.parse('2025-01-31T12:00:00Z');
  return steps.flatMap(({ after = 1, ...more }, index) => {
    time += after * 1000;
    const record = decision(`r${index}`, { session: 's', ...more });
    return recognizer
      .show(stored(record, index + 1, time), true)
      .map(({ code, details }) => `${code} ${details.about}`);
  });
}

function stored(record: AuditRecord, seq: number, time: number) {
  const sealed = sealRecord(encodeRecord(record), { seq, time, prev: NO_HASH }, undefined);
  const parsed = parseRecord(sealed.text);
  if (parsed === undefined) throw new Error('no record');
  return parsed;
}

const writes = (path: string): Step => ({ files: { writes: [path], executes: [] } });
const executes = (path: string): Step => ({ files: { writes: [], executes: [path] } });
const judged = (verdict: 'allow' | 'ask' | 'deny', words: readonly string[] = []): Step => ({
  decision: {
    verdict,
    risk: 'high',
    reach: 'local',
    reasons: [reason({ check: 'paths', verdict: 'deny', code: 'escapes_workspace', words })],
  },
});
const because = (why: ReturnType<typeof reason>): Step => ({
  decision: { verdict: 'deny', risk: 'high', reach: 'local', reasons: [why] },
});
const missing: Step = { ...judged('ask'), outcome: 'program.not_found', command: 'frobnicate x' };
const canceled: Step = { ...judged('ask'), outcome: 'canceled', command: 'git push' };
const denied: Step = { ...judged('deny'), outcome: 'command.denied' };
const unanswered = (command: DecisionRecord['command']): Step => ({
  ...judged('ask'),
  outcome: 'command.needs_approval',
  approval: { approved: false, reason: 'denied', by: 'terminal' },
  command,
});
const NOBODY = { approved: false, reason: 'nobody', by: 'desk' } as const;
const approved = (command: string): Step => ({
  ...judged('ask'),
  approval: { approved: true, scope: 'once', by: 'terminal' },
  command,
});
const tried = (word: string): Step => ({ ...judged('deny', [word]), outcome: 'command.denied' });

describe('create_then_execute', () => {
  it('is a file that is run after it was written, once per path', () => {
    const steps = [
      writes('/work/x'),
      {},
      executes('/work/x'),
      executes('/work/x'),
      writes('/work/y'),
      executes('/work/y'),
    ];
    expect(raisedBy(steps)).toEqual(['create_then_execute /work/x', 'create_then_execute /work/y']);
  });

  it('is a file that an interpreter is given', () => {
    const command = ['sh', '/work/a.sh'] as const;
    expect(raisedBy([writes('/work/a.sh'), {}, { ...executes('/work/a.sh'), command }])).toEqual([
      'create_then_execute /work/a.sh',
    ]);
  });

  it('is a file that one command writes and runs', () => {
    expect(raisedBy([{ files: { writes: ['/work/a.out'], executes: ['/work/a.out'] } }])).toEqual([
      'create_then_execute /work/a.out',
    ]);
  });

  it.each<[string, readonly Step[]]>([
    ['another file', [writes('/work/x'), executes('/work/y')]],
    ['an order the other way round', [executes('/work/x'), writes('/work/x')]],
    ['a write that was refused', [{ ...writes('/work/x'), ...denied }, executes('/work/x')]],
    ['another session', [writes('/work/x'), { ...executes('/work/x'), session: 't' }]],
    ['another principal', [writes('/work/x'), { ...executes('/work/x'), principal: 'uid:1' }]],
    ['a file that was written long ago', [writes('/work/x'), { ...executes('/work/x'), after: 601 }]],
  ])('is not %s', (_, steps) => {
    expect(raisedBy(steps)).toEqual([]);
  });
});

describe('repeated_approval_requests', () => {
  it('is the third spelling of a command that got no yes', () => {
    const spellings = [
      'rm -rf build/output',
      '/bin/rm -r -f build/output',
      "bash -c 'rm -fr ./build/output'",
    ];
    expect(raisedBy(spellings.map(unanswered))).toEqual(['repeated_approval_requests rm']);
  });

  it('is the third time that nobody could be asked', () => {
    expect(raisedBy(Array(3).fill({ ...unanswered('git push'), approval: NOBODY }))).toEqual([
      'repeated_approval_requests git',
    ]);
  });

  it('is the same for words, and when somebody gives in', () => {
    expect(
      raisedBy([
        unanswered(['git', 'push', '--force']),
        unanswered('git push --force origin'),
        approved('git push --force'),
        unanswered('git push -f'),
      ]),
    ).toEqual(['repeated_approval_requests git']);
  });

  it.each<[string, readonly Step[]]>([
    ['a command that is approved each time', Array(9).fill(approved('git push'))],
    ['a program that is not there', Array(9).fill(missing)],
    ['something that nobody can be asked about', Array(9).fill({ ...missing, approval: NOBODY })],
    ['a second attempt', Array(2).fill(unanswered('git push'))],
    ['three different commands', ['git push', 'npm publish --tag next', 'rm -r old'].map(unanswered)],
    ['something that is allowed', [...Array(2).fill(unanswered('git push')), { command: 'git push' }]],
  ])('is not %s', (_, steps) => {
    expect(raisedBy(steps)).toEqual([]);
  });
});

describe('path_traversal_series', () => {
  it('is the third path that leads out', () => {
    const words = ['../../etc/passwd', '../../../etc/passwd', '..%2f..%2fetc/shadow', '../x'];
    expect(raisedBy(words.map(tried))).toEqual(['path_traversal_series paths']);
  });

  it.each<[string, readonly Step[]]>([
    ['the same path again', Array(5).fill(tried('../x'))],
    ['absolute paths', ['/etc/a', '/etc/b', '/etc/c', 'a..b/c'].map(tried)],
    [
      'one command that leads out several times',
      [{ ...judged('deny', ['../../a', '../../b', '../../c']), outcome: 'command.denied' }],
    ],
    [
      'what somebody approved',
      ['../a', '../b', '../c'].map((word) => ({
        ...judged('ask', [word]),
        approval: { approved: true, scope: 'once', by: 'terminal' } as const,
      })),
    ],
    [
      'what was refused for another reason',
      ['../a', '../b', '../c'].map((word) => ({
        ...because(reason({ check: 'risk', verdict: 'deny', code: 'high', words: [word] })),
        outcome: 'command.denied',
      })),
    ],
    ['what the policy lets pass', ['../a', '../b', '../c'].map((word) => ({ command: `cat ${word}` }))],
  ])('is not %s', (_, steps) => {
    expect(raisedBy(steps)).toEqual([]);
  });
});

describe('many_refusals', () => {
  it('is the tenth within two minutes, once', () => {
    expect(raisedBy(Array(30).fill(denied))).toEqual(['many_refusals refusals']);
  });

  it.each<[string, readonly Step[]]>([
    ['nine', Array(9).fill(denied)],
    ['ten within a longer time', Array(30).fill({ ...denied, after: 20 })],
    ['programs that are not there', Array(30).fill({ ...judged('allow'), outcome: 'program.not_found' })],
    ['requests that were canceled', Array(30).fill(canceled)],
    ['commands that run', Array(30).fill({})],
    ['commands that nobody judges', Array(30).fill({ decision: undefined, outcome: 'program.not_found' })],
  ])('is not %s', (_, steps) => {
    expect(raisedBy(steps)).toEqual([]);
  });
});

describe('every pattern', () => {
  it.each(PATTERNS)('$code has a stable code and a summary', ({ code, summary }) => {
    expect(code).toMatch(/^[a-z]+(_[a-z]+)+$/);
    expect(summary).toMatch(/^[a-z0-9].*[^.]$/);
  });

  it('takes bounded time for hostile commands', () => {
    const command = 'x y;'.repeat(50_000);
    const started = performance.now();
    raisedBy(Array(200).fill(unanswered(command)));
    expect(performance.now() - started).toBeLessThan(20_000);
  });
});

describe('a trail', () => {
  const events = (directory: string) => recordsOf(directory).filter(({ type }) => type === 'event');
  const step = (request: string, more: Step) => decision(request, { session: 's', ...more });

  it('has the events of patterns over commands of several processes, once', async () => {
    const directory = makeDirectory();
    await write(directory, [step('a', writes('/work/x'))]);
    await write(directory, [step('b', {})]);
    for (const request of ['c', 'd']) await write(directory, [step(request, executes('/work/x'))]);
    expect(events(directory)).toEqual([
      expect.objectContaining({
        code: 'create_then_execute',
        session: 's',
        details: { about: '/work/x', path: '/work/x', written_by: 'a', run_by: 'c' },
      }),
    ]);
    expect(await problemsOf(directory)).toEqual([]);
  });

  it('has those of processes that live at the same time, once', async () => {
    const directory = makeDirectory();
    const [one, other] = [open(directory), open(directory)];
    await one.append(step('a', {}));
    await other.append(step('b', writes('/work/x')));
    await one.append(step('c', executes('/work/x')));
    await expect.poll(() => events(directory).length, { timeout: 5_000 }).toBe(1);
    await other.append(step('d', executes('/work/x')));
    await Promise.all([one.close(), other.close()]);
    expect(events(directory)).toHaveLength(1);
  });

  it('has them when much was written in between, and not when it was long ago', async () => {
    const directory = makeDirectory();
    const at = (text: string) => ({ clock: () => Date.parse(text) });
    const padding = Array.from({ length: 20 }, (_, index) =>
      step(`p${index}`, { command: 'x'.repeat(60_000) }),
    );
    await write(directory, [step('a', writes('/work/x'))], at('2025-01-31T12:00:00Z'));
    await write(directory, padding, at('2025-01-31T12:05:00Z'));
    await write(directory, [step('b', executes('/work/x'))], at('2025-01-31T12:09:00Z'));
    expect(events(directory)).toHaveLength(1);
    await write(directory, [step('c', writes('/work/y'))], at('2025-01-31T12:10:00Z'));
    await write(directory, padding, at('2025-01-31T12:21:00Z'));
    await write(directory, [step('d', executes('/work/y'))], at('2025-01-31T12:22:00Z'));
    expect(events(directory)).toHaveLength(1);
  });

  it('remembers over midnight', async () => {
    const directory = makeDirectory();
    const clock = (text: string) => ({ clock: () => Date.parse(text) });
    await write(directory, [step('a', writes('/work/x'))], clock('2025-01-31T23:59:50Z'));
    await write(directory, [step('b', executes('/work/x'))], clock('2025-02-01T00:00:10Z'));
    expect(events(directory)).toHaveLength(1);
  });
});
