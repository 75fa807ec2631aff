import { describe, expect, it } from 'vitest';
import { within } from '../../../../src/gate/decide/time-limit.ts';
import { afterToolUse, sessionEnd, sessionStart } from '../../../../src/gate/hooks/events.ts';
import type { GuardAnswer, ToolHook } from '../../../../src/model/index.ts';

const LIMIT = { within, timeoutMs: 50 };
const SESSION = { id: 's', principal: 'p' };
const RESULT = { status: 'exited', exitCode: 0, durationMs: 1 };

const hook = (name: string, events: Partial<ToolHook>): ToolHook => ({
  name,
  beforeToolUse: () => ({ allowed: true }),
  ...events,
});
const fail = (): never => {
  throw new Error('bug\u001b[31m');
};
const never = () => new Promise<never>(() => {});

describe('after a tool was used', () => {
  it('every hook is told, and failures become sentences', async () => {
    const told: unknown[] = [];
    const hooks = [
      hook('throws', { afterToolUse: fail }),
      hook('rejects', { afterToolUse: async () => fail() }),
      hook('hangs', { afterToolUse: never }),
      hook('does not care', {}),
      hook('hears', { afterToolUse: (...heard) => void told.push(heard) }),
    ];
    expect(await afterToolUse(hooks, 'run_command', { command: 'ls' }, RESULT, LIMIT)).toEqual([
      'the hook throws failed (after_tool_use): bug\\u{1b}[31m',
      'the hook rejects failed (after_tool_use): bug\\u{1b}[31m',
      'the hook hangs did not end in time (after_tool_use)',
    ]);
    expect(told).toEqual([['run_command', { command: 'ls' }, RESULT]]);
  });
});

describe('the end of a session', () => {
  it('is told to every hook', async () => {
    const told: string[] = [];
    const hooks = [
      hook('throws', { sessionEnd: fail }),
      hook('hears', { sessionEnd: async ({ id }) => void told.push(id) }),
    ];
    expect(await sessionEnd(hooks, SESSION, LIMIT)).toEqual([
      'the hook throws failed (session_end): bug\\u{1b}[31m',
    ]);
    expect(told).toEqual(['s']);
  });

  it('is nothing without hooks', async () => {
    expect(await sessionEnd([], SESSION, LIMIT)).toEqual([]);
  });
});

type Starting = () => GuardAnswer | Promise<GuardAnswer>;
const as = (value: unknown) => () => value as GuardAnswer;

describe('the start of a session', () => {
  const ANSWERS: readonly (readonly [string, Starting, GuardAnswer])[] = [
    ['yes', as({ allowed: true, reason: 'x' }), { allowed: true }],
    ['no', as({ allowed: false, reason: 'not now' }), { allowed: false, reason: 'not now' }],
    [
      'no, without a reason',
      as({ allowed: false }),
      { allowed: false, reason: 'the hook h refuses the session' },
    ],
    ['nothing', as(undefined), { allowed: false, reason: 'the hook h gave no clear answer' }],
    ['true', as(true), { allowed: false, reason: 'the hook h gave no clear answer' }],
    ['a text', as({ allowed: 'yes' }), { allowed: false, reason: 'the hook h gave no clear answer' }],
    ['an exception', fail, { allowed: false, reason: 'the hook h failed (session_start): bug\\u{1b}[31m' }],
    [
      'a rejection',
      async () => fail(),
      { allowed: false, reason: 'the hook h failed (session_start): bug\\u{1b}[31m' },
    ],
    ['silence', never, { allowed: false, reason: 'the hook h gave no clear answer' }],
  ];
  it.each(ANSWERS)('with a hook that answers %s', async (_, start, expected) => {
    expect(await sessionStart([hook('h', { sessionStart: start })], SESSION, LIMIT)).toEqual(expected);
  });

  it('asks in order, as far as the first that refuses', async () => {
    const asked: string[] = [];
    const asking = (name: string, allowed: boolean) =>
      hook(name, {
        sessionStart: () => {
          asked.push(name);
          return { allowed };
        },
      });
    const hooks = [hook('none', {}), asking('a', true), asking('b', false), asking('c', true)];
    expect((await sessionStart(hooks, SESSION, LIMIT)).allowed).toBe(false);
    expect(asked).toEqual(['a', 'b']);
  });
});
