import type { Command } from '../../model/command.ts';
import type { ExecutionResult } from '../../model/execution-result.ts';
import type { LaunchPlan } from '../../model/launch-plan.ts';
import type { RunOptions } from '../../model/options.ts';
import { messageForModel } from '../../run/output/model-message.ts';
import { warningsOf } from '../../run/output/result-warnings.ts';
import type { Sandbox } from '../../run/sandbox.ts';
import { printBytes, printError, printNote } from '../shared/print.ts';
import type { SignalForwarding } from '../shared/signals.ts';

/** The reader of the output is gone. */
const READER_GONE = new Error('the reader of the output is gone');

/** The command's own streams are ours, unless we have to see what passes. */
export function ownStreams({ plan }: Sandbox): RunOptions {
  if (plan.treeLimits.idleTimeoutMs === undefined) return { stdio: 'inherit' };
  return {
    stdin: 'inherit',
    onOutput: ({ stream, bytes }) => {
      if (!printBytes(stream === 'stdout' ? 1 : 2, bytes)) throw READER_GONE;
    },
  };
}

/** Runs a command to its end, with signals handed on. `undefined`: the reader of its output is gone. */
export async function runForwarding(
  sandbox: Sandbox,
  command: Command,
  options: RunOptions,
  signals: SignalForwarding,
): Promise<ExecutionResult | undefined> {
  const started = sandbox.start(command, options);
  signals.to(started);
  return started.result.catch((error: unknown) => {
    if (error === READER_GONE) return undefined;
    throw error;
  });
}

/** What a person should know of a command that has ended. */
export function printWarnings(result: ExecutionResult): void {
  for (const warning of warningsOf(result)) printError(`warning: ${warning}`);
}

/** Of what a shell ran: what was said to it, and what there is to say of that. */
interface Remarks {
  readonly said: string | readonly string[];
  readonly plan: LaunchPlan;
  /** Nothing but that it was stopped. */
  readonly quiet: boolean;
}

/** Says on standard error, which a model may read, what was stopped and why. A status that is not 0 is no news. */
export function printRemarks(result: ExecutionResult, { said, plan, quiet }: Remarks): void {
  if (!quiet) printWarnings(result);
  const stopped = messageForModel(result, plan, { command: said });
  if (stopped !== undefined) printNote(`${stopped}\n`);
}
