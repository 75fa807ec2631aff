import { randomBytes } from 'node:crypto';
import { realpathSync } from 'node:fs';
import { createDecider, type Decided } from '../../decide/decide.ts';
import type { DecisionPorts, Seen } from '../../decide/ports.ts';
import { currentDirectory } from '../../host/exact-text.ts';
import type { SandboxOptions } from '../../model/options.ts';
import { type Checker, checkOnly, createChecker, type KernelPart } from '../../run/assemble.ts';
import { isBeneath } from '../../util/absolute-path.ts';
import type { HookOptions } from './hook-adapter.ts';
import type { AgentMemory } from './session-memory.ts';

/** For what has happened already: nobody is asked about it, nor told. */
export async function openCheckerAfterwards(
  { sandbox }: HookOptions,
  workspace: string | undefined,
): Promise<Checker> {
  const options = { ...sandbox, workspace: workspace ?? currentDirectory() };
  return createChecker(options, { kernel: 'none', records: true });
}

/**
 * What decides about the command of one event. Where the agent runs the commands itself nothing counts on the kernel.
 * @throws {SandboxError} as `createChecker`.
 */
export async function openChecker(
  { mode, sandbox }: HookOptions,
  workspace: string | undefined,
  more: SandboxOptions,
  kernel: KernelPart = mode === 'rewrite' ? 'planned' : 'none',
): Promise<Checker> {
  const options = { ...sandbox, workspace: workspace ?? currentDirectory(), ...more };
  return createChecker(options, { kernel, guards: true, records: true });
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

/** The agent's shell finds programs along its own search path, which is about that of its hooks. */
const ofAgent = () => ({ PATH: process.env.PATH });

/** The agent asks what the policy asks, and runs the command itself, if it does. */
export async function decideForAgent(
  checker: Checker,
  memory: AgentMemory,
  about: { readonly command: string; readonly cwd: string; readonly call: string | undefined },
): Promise<Decided> {
  const ports: DecisionPorts = {
    ...(await checker.ports()),
    ...{ session: memory, approvals: 'elsewhere' },
    outcome: (seen) => (isForAgent(seen) ? 'allow' : 'left_to_agent'),
  };
  const { command, cwd, call } = about;
  return createDecider(ports)({ command, cwd, env: ofAgent(), id: recordOf(memory, call) });
}

/** The policy allows `npm test` because the sandbox holds whatever the project makes of it; where the agent runs it none does. */
export function isForAgent(seen: Seen | undefined): boolean {
  return seen?.decision.verdict === 'allow' && seen.judgement.isPlain();
}

/** A run of ours follows, which decides again, counts and records: here only what is refused is on record. */
export async function decideForRun(
  checker: Checker,
  memory: AgentMemory,
  about: { readonly command: string; readonly cwd: string; readonly call: string | undefined },
): Promise<Decided> {
  const ports = await checker.ports();
  const silent: DecisionPorts = {
    ...checkOnly({ ...ports, session: memory }),
    ...{ record: ports.record, outcome: () => undefined },
  };
  const { command, cwd, call } = about;
  return createDecider(silent)({ command, cwd, id: recordOf(memory, call) });
}

/** What the session was exposed to by a command that the agent has run itself. */
export async function exposuresAfter(checker: Checker, command: string, cwd: string | undefined) {
  const judgement = checker.judge({ command, cwd: cwd ?? checker.workspace, env: ofAgent() });
  const decision = await judgement.decision;
  return judgement.exposures(decision, judgement.effects(decision), undefined);
}

/** The same for a decision and for the end of the command. An agent that gives no id has no result for its decision. */
export function recordOf({ id }: AgentMemory, call: string | undefined): string {
  return `hook:${id}:${call ?? randomBytes(8).toString('hex')}`.slice(0, 400);
}
