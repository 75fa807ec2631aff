import { realpathSync } from 'node:fs';
import { currentDirectory } from '../../host/exact-text.ts';
import type { Decision, Taint } from '../../model/decision.ts';
import type { SandboxOptions } from '../../model/options.ts';
import type { CommandEffects } from '../../policy/effects.ts';
import { type Checker, type CheckerOptions, createChecker } from '../../run/checker.ts';
import { exposuresOf } from '../../run/exposures.ts';

import { defaultPrincipal } from '../../run/state.ts';
import { isBeneath } from '../../util/absolute-path.ts';
import type { HookOptions } from './hook-options.ts';

/** A checker for the commands of one event, and what it was made of. */
export interface HookChecker extends Checker {
  readonly options: SandboxOptions;
  /** The agent runs the command itself. */
  readonly isOfAgent: boolean;
}

/** What the policy makes of a command, and what the command would touch. */
export interface JudgedCommand {
  readonly decision: Decision;
  readonly effects: CommandEffects;
  /** See `Examination`. */
  readonly isPlain: () => boolean;
  /** Canonical. */
  readonly cwd: string;
}

/** For what has happened already: nobody is asked about it, nor told. */
export async function openCheckerAfterwards(
  { sandbox }: HookOptions,
  workspace: string | undefined,
): Promise<HookChecker> {
  const options = { ...sandbox, workspace: workspace ?? currentDirectory() };
  return { ...(await createChecker(options, { enforced: false, recorded: true })), options, isOfAgent: true };
}

/**
 * Makes the judge. Where the agent runs the commands itself nothing counts on the kernel. `tried`: as in `CheckerOptions`.
 * @throws {SandboxError} as `createChecker`.
 */
export async function openChecker(
  { mode, sandbox }: HookOptions,
  workspace: string | undefined,
  more: SandboxOptions = {},
  { tried = false }: Pick<CheckerOptions, 'tried'> = {},
): Promise<HookChecker> {
  const options = { ...sandbox, workspace: workspace ?? currentDirectory(), ...more };
  const enforced = mode === 'rewrite';
  const made = await createChecker(options, { enforced, tried, guarded: true, recorded: true });
  return { ...made, options, isOfAgent: !enforced };
}

/** Judges a command where it would start. */
export async function judgeCommand(
  checker: HookChecker,
  command: string,
  cwd: string,
  taints: readonly Taint[],
): Promise<JudgedCommand> {
  // The agent's shell finds programs along its own search path, which is about that of its hooks.
  const env = checker.isOfAgent ? { PATH: process.env.PATH } : undefined;
  const examination = checker.examineFor(defaultPrincipal())({ command, cwd, env, taints });
  const decision = await examination.decision;
  return {
    decision,
    effects: examination.effects(decision),
    isPlain: examination.isPlain,
    cwd: examination.cwd,
  };
}

/** Where a command starts: a run of ours starts in the workspace if it cannot start where the agent is. */
export function startOf({ workspace }: Checker, { mode }: HookOptions, given: string | undefined): string {
  const cwd = given ?? currentDirectory();
  if (mode === 'decide') return cwd;
  try {
    const real = realpathSync(cwd);
    return isBeneath(real, workspace) ? real : workspace;
  } catch {
    return workspace;
  }
}

/** What the session is exposed to by a command that the agent runs itself. */
export function exposuresHere({ policy }: Checker, { decision, effects }: JudgedCommand) {
  return exposuresOf(policy, undefined, decision, effects);
}
