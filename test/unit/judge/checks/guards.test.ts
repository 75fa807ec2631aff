import { describe, expect, it } from 'vitest';
import { gitGuard, hooks, TOOL_NAME } from '../../../../src/judge/checks/guards.ts';
import type { GitGuard, GuardAnswer, HookAnswer, ToolHook } from '../../../../src/model/index.ts';
import { contextOf } from '../../../support/check-context.ts';

type Answering = () => HookAnswer | Promise<HookAnswer>;
const fail = (): never => {
  throw new Error('bug');
};
const YES: Answering = () => ({ allowed: true });
const NO: Answering = () => ({ allowed: false, reason: 'not on main' });

const ANSWERS = [
  ['yes', YES, 'undefined no_objection'],
  ['no', NO, 'deny refused'],
  ['no without a reason', () => ({ allowed: false }), 'deny refused'],
  ['a promise of yes', async () => ({ allowed: true }), 'undefined no_objection'],
  ['a promise of no', async () => ({ allowed: false }), 'deny refused'],
  ['nothing', () => undefined as unknown as GuardAnswer, 'deny answer_unclear'],
  ['null', () => null as unknown as GuardAnswer, 'deny answer_unclear'],
  ['true', () => true as unknown as GuardAnswer, 'deny answer_unclear'],
  ['the text true', () => ({ allowed: 'true' }) as unknown as GuardAnswer, 'deny answer_unclear'],
  ['1', () => ({ allowed: 1 }) as unknown as GuardAnswer, 'deny answer_unclear'],
  ['a decision to allow', () => ({ decision: 'allow' }), 'undefined no_objection'],
  ['a decision to deny', () => ({ decision: 'deny', reason: 'not on main' }), 'deny refused'],
  ['an empty object', () => ({}), 'undefined no_objection'],
  ['a reason alone', () => ({ reason: 'x' }) as unknown as GuardAnswer, 'deny answer_unclear'],
  ['another decision', () => ({ decision: 'approve' }) as unknown as GuardAnswer, 'deny answer_unclear'],
  ['a decision in capitals', () => ({ decision: 'Allow' }) as unknown as GuardAnswer, 'deny answer_unclear'],
  [
    'yes and no',
    () => ({ allowed: true, decision: 'deny' }) as unknown as GuardAnswer,
    'deny answer_unclear',
  ],
  [
    'no and yes',
    () => ({ allowed: false, decision: 'allow' }) as unknown as GuardAnswer,
    'deny answer_unclear',
  ],
  [
    'yes in both forms',
    () => ({ allowed: true, decision: 'allow' }) as unknown as GuardAnswer,
    'undefined no_objection',
  ],
  ['an empty list', () => [] as unknown as GuardAnswer, 'deny answer_unclear'],
  ['an exception', fail, 'deny failed'],
  ['a rejection', async () => fail(), 'deny failed'],
  ['silence', () => new Promise<GuardAnswer>(() => {}), 'deny answer_unclear'],
] as const satisfies readonly (readonly [string, Answering, string])[];

describe('the git guard', () => {
  it.each(ANSWERS)('that answers %s', async (_, judge, expected) => {
    const said = await gitGuard.judge(
      contextOf('git commit', { gate: { gitGuard: { judge: judge as GitGuard['judge'] } } }),
    );
    expect(said.map(({ verdict, code }) => `${verdict} ${code}`)).toEqual([expected]);
  });

  it('is told the line as it was given, also if nobody understood it', () => {
    const seen: unknown[] = [];
    const judge: GitGuard['judge'] = (parsed, cwd, text) => {
      seen.push(parsed.understood, cwd, text);
      return { allowed: true };
    };
    const context = contextOf('git commit ((', { gate: { gitGuard: { judge } } });
    gitGuard.judge(context);
    expect(seen).toEqual([false, context.cwd, 'git commit ((']);
  });

  it('need not be there', () => {
    expect(gitGuard.judge(contextOf('git commit'))).toEqual([]);
  });
});

describe('hooks', () => {
  const hook = (name: string, beforeToolUse: ToolHook['beforeToolUse']): ToolHook => ({
    name,
    beforeToolUse,
  });
  const judge = async (...all: readonly ToolHook[]) =>
    (await hooks.judge(contextOf('ls -l', { gate: { hooks: all } }))).map(
      ({ verdict, code }) => `${verdict} ${code}`,
    );

  it.each(ANSWERS)('one that answers %s', async (_, answer, expected) => {
    expect(await judge(hook('h', answer))).toEqual([expected]);
  });

  it('are asked in order, as far as the first that refuses', async () => {
    const asked: string[] = [];
    const saying = (name: string, answer: Answering) =>
      hook(name, () => {
        asked.push(name);
        return answer();
      });
    await judge(
      saying('a', YES),
      saying('b', async () => YES()),
      saying('c', NO),
      saying('d', YES),
    );
    expect(asked).toEqual(['a', 'b', 'c']);
  });

  it('see the tool’s name and input, and cannot change it', async () => {
    const seen: unknown[] = [];
    await judge(
      hook('h', (name, input) => {
        seen.push(name, { ...input });
        Reflect.set(input, 'command', 'rm -rf /');
        return { allowed: true };
      }),
      hook('i', (_, input) => {
        seen.push(input.command);
        return { allowed: true };
      }),
    );
    expect(seen).toEqual([TOOL_NAME, { command: 'ls -l', cwd: '/w', tool: TOOL_NAME }, 'ls -l']);
  });

  it('decide at once where they answer at once', () => {
    expect(hooks.judge(contextOf('ls', { gate: { hooks: [hook('h', YES)] } }))).toBeInstanceOf(Array);
  });
});
