import { randomBytes } from 'node:crypto';
import type { DecisionRecord } from '../../model/audit-record.ts';
import type { Taint } from '../../model/decision.ts';
import type { Checker } from '../../run/checker.ts';
import { defaultPrincipal } from '../../run/state.ts';
import type { AfterCommand, BeforeCommand } from './hook-adapter.ts';
import type { JudgedCommand } from './judge-command.ts';
import type { SessionMemory } from './session-memory.ts';

/** The agent runs the command itself. */
const NO_ENFORCEMENT: DecisionRecord['report'] = {
  backend: 'none',
  passedOver: [],
  landlockAbi: 0,
  processTree: 'none',
  controls: [],
};

/** The same for a decision and for the end of the command. An agent that gives no id has no result for its decision. */
const requestOf = ({ id }: SessionMemory, call: string | undefined) =>
  `hook:${id}:${call ?? randomBytes(8).toString('hex')}`.slice(0, 400);

/** Puts a decision on record, where the policy wants that. Rejects if it wants it and that fails. */
export async function recordBefore(
  { record, policy, plan }: Checker,
  { command, call }: BeforeCommand,
  memory: SessionMemory,
  { decision, effects, cwd }: JudgedCommand,
  outcome: string,
): Promise<void> {
  await record?.({
    ...{
      type: 'decision',
      request: requestOf(memory, call),
      principal: defaultPrincipal(),
      session: memory.id,
    },
    ...{ command, cwd, decision, outcome, approval: undefined, profile: policy.profile },
    files: { writes: effects.writes, executes: effects.executes },
    ...{ backend: plan?.report.backend ?? 'none', report: plan?.report ?? NO_ENFORCEMENT },
  });
}

/** Puts the end of a command on record that the agent ran itself. */
export async function recordAfter(
  { record }: Checker,
  { call, exitCode, durationMs }: AfterCommand,
  memory: SessionMemory,
): Promise<void> {
  await record?.({
    ...{
      type: 'result',
      request: requestOf(memory, call),
      principal: defaultPrincipal(),
      session: memory.id,
    },
    ...{
      status: exitCode === undefined ? 'canceled' : 'exited',
      exitCode,
      signal: undefined,
      error: undefined,
    },
    ...{ durationMs, outputBytes: { stdout: undefined, stderr: undefined } },
  });
}

/** Puts on record what the agent's session was exposed to by another tool than its shell. */
export async function recordTaint(
  { record }: Checker,
  memory: SessionMemory,
  taint: Taint,
  reason: string,
): Promise<void> {
  await record?.({
    ...{ type: 'event', code: 'session_tainted', principal: defaultPrincipal(), session: memory.id },
    ...{ message: reason, details: { taint } },
  });
}
