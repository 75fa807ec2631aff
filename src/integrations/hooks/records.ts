import type { Taint } from '../../model/decision.ts';
import type { Checker } from '../../run/assemble.ts';
import { defaultPrincipal } from '../../run/state.ts';
import type { AfterCommand } from './hook-adapter.ts';
import { recordOf } from './hook-checker.ts';
import type { AgentMemory } from './session-memory.ts';

/** Puts the end of a command on record that the agent ran itself. */
export async function recordAfter(
  { stateful: { record } }: Checker,
  { call, exitCode, durationMs }: AfterCommand,
  memory: AgentMemory,
): Promise<void> {
  await record?.({
    ...{
      type: 'result',
      request: recordOf(memory, call),
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
  { stateful: { record } }: Checker,
  memory: AgentMemory,
  taint: Taint,
  reason: string,
): Promise<void> {
  await record?.({
    ...{ type: 'event', code: 'session_tainted', principal: defaultPrincipal(), session: memory.id },
    ...{ message: reason, details: { taint } },
  });
}
