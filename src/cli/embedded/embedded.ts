import { isatty } from 'node:tty';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { ExecutionResult } from '../../model/index.ts';
import {
  type Embedded,
  endedBy,
  exitStatus,
  type OpenSandbox,
  openEmbedded,
  takeEmbedded,
} from '../../run/index.ts';
import { ownStreams, printRemarks, runForwarding, runOnTerminal } from '../run/pass-through.ts';
import { printError } from '../shared/print.ts';
import { SignalForwarding } from '../shared/signals.ts';
import { takeServerAddress } from '../warm/start.ts';

/** `sandbox-run embedded CLAIM`: runs what `sandbox.commandLine()` handed over, and returns the exit status. */
export async function embedded(claim: readonly string[]): Promise<number> {
  takeServerAddress();
  using signals = new SignalForwarding();
  try {
    const taken = takeEmbedded(claim);
    if (taken.terminal && !(isatty(0) && isatty(1)))
      throw new SandboxError(
        'usage.invalid',
        'this command line is for a terminal, and standard input and output are none; leave out the option terminal',
      );
    await using sandbox = await openEmbedded(taken);
    return await runIn(sandbox, taken, signals);
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    printError(error.message);
    return error.exitStatus;
  }
}

async function runIn(sandbox: OpenSandbox, taken: Embedded, signals: SignalForwarding): Promise<number> {
  const { command, run, terminal } = taken;
  // Signals are delivered between turns of the event loop.
  await new Promise(setImmediate);
  const early = signals.early;
  if (early !== undefined) return endedBy(early);
  let result: ExecutionResult | undefined;
  if (terminal) {
    const onTerminal = await runOnTerminal(sandbox, command, run, signals);
    if (onTerminal.by !== undefined) return endedBy(onTerminal.by);
    result = onTerminal.result;
  } else result = await runForwarding(sandbox, command, { ...run, ...ownStreams(sandbox) }, signals);
  // The reader of our output is gone: end like a command that wrote there itself.
  if (result === undefined) return endedBy('SIGPIPE');
  const unheard = signals.early;
  if (result.status === 'canceled' && unheard !== undefined) return endedBy(unheard);
  printRemarks(result, { said: command, plan: sandbox.plan, quiet: false });
  return exitStatus(result);
}
