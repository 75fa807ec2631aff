import { closeSync, constants as fileConstants, openSync } from 'node:fs';
import { constants } from 'node:os';
import { isatty } from 'node:tty';
import { ERROR_CODES } from '../errors/codes.ts';
import { SandboxError } from '../errors/sandbox-error.ts';
import type { Approver } from '../model/approval.ts';
import type { ExecutionResult } from '../model/execution-result.ts';
import { loadAddon } from '../native/load.ts';
import { createSandbox, type Sandbox } from '../run/sandbox.ts';
import type { GateOptions, RunOptions } from '../run/sandbox-options.ts';
import { isBeneath } from '../util/absolute-path.ts';
import { assertNever } from '../util/assert-never.ts';
import { visibleText } from '../util/visible-text.ts';
import { forwardSignals, type SignalForwarding } from './forward-signals.ts';
import { printBytes, printError, printNote, printOut } from './print.ts';
import { parseRunArguments, type RunArguments } from './run-options.ts';
import { describeConfinement, describePlan, describeReport } from './show-plan.ts';

const EXIT_TIMED_OUT = 124;
/** Nobody reads any more what is passed on. */
const READER_GONE = new Error('the reader of the output is gone');
/** SIGRTMIN as glibc counts. */
const FIRST_REAL_TIME_SIGNAL = 34;

/** `sandbox-run [options] COMMAND`: runs it and returns the exit status. */
export async function run(args: readonly string[]): Promise<number> {
  const wanted = parseRunArguments(args);
  if (wanted === undefined) return 0;
  if (wanted.tty && !wanted.json && !wanted.dryRun && !isatty(0)) {
    throw new SandboxError(
      'usage.invalid',
      '-t needs a terminal on standard input; leave it out, or add --json to capture what is shown on one',
    );
  }
  const signals = forwardSignals();
  try {
    await using sandbox = await createSandbox({ ...wanted.sandbox, gate: gateOf(wanted, signals) });
    return await runIn(sandbox, wanted, signals);
  } finally {
    signals.stop();
  }
}

/** Who is asked from here. */
function gateOf({ quiet }: RunArguments, signals: SignalForwarding): GateOptions {
  let approver: Approver | undefined;
  const terminal: Approver = {
    ask: async (request, options) => {
      approver ??= await terminalApprover(() => signals.raise('SIGINT'));
      return approver.ask(request, options);
    },
  };
  return {
    ...(hasTerminal() ? { terminal } : {}),
    onQueued: (id) => {
      if (!quiet)
        printError(`waits for an answer: sandbox-run approvals show ${id}, approve ${id} or deny ${id}`);
    },
  };
}

/** Whether this process has a controlling terminal at all. */
export function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', fileConstants.O_RDONLY | fileConstants.O_NOCTTY));
    return true;
  } catch {
    return false;
  }
}

async function terminalApprover(onInterrupt: () => void): Promise<Approver> {
  const { createTerminalApprover } = await import('../run/gate-parts.ts');
  return createTerminalApprover({ tryLock: loadAddon().tryLock, onInterrupt });
}

async function runIn(sandbox: Sandbox, wanted: RunArguments, signals: SignalForwarding): Promise<number> {
  if (wanted.dryRun) {
    printOut(
      wanted.json
        ? `${JSON.stringify(sandbox.plan, null, 2)}\n`
        : visibleText(describePlan(sandbox.plan), { keep: '\n' }),
    );
    return 0;
  }
  if (wanted.verbose) printNote(describeReport(sandbox.plan.report));
  // Signals are delivered between turns of the event loop.
  await new Promise(setImmediate);
  const early = signals.early();
  if (early !== undefined) return endedBy(early);
  const current = process.cwd();
  const options = {
    approved: wanted.approved,
    taints: wanted.taints,
    cwd: isBeneath(current, sandbox.workspace) ? current : sandbox.workspace,
  };
  let result: ExecutionResult;
  if (wanted.tty && !wanted.json) {
    const { runOnTerminal } = await import('./run-on-terminal.ts');
    const ended = await runOnTerminal(sandbox, wanted.command, options, signals);
    if (ended.by !== undefined) return endedBy(ended.by);
    result = ended.result;
  } else {
    const command = sandbox.start(wanted.command, { ...options, ...streamsOf(sandbox, wanted) });
    signals.to(command);
    const settled = await command.result.catch((error: unknown) => {
      if (error === READER_GONE) return undefined;
      throw error;
    });
    // As of the command, had it written there itself.
    if (settled === undefined) return endedBy('SIGPIPE');
    result = settled;
  }
  if (wanted.json) printOut(`${jsonOf(result)}\n`);
  const unheard = signals.early();
  if (result.status === 'canceled' && unheard !== undefined) {
    if (!wanted.quiet) printError(`${unheard} came while the command waited for an answer; it was not run`);
    return endedBy(unheard);
  }
  if (!wanted.quiet) remark(result, sandbox, wanted.json);
  return exitStatus(result);
}

/**
 * The command's own streams are ours, unless somebody has to see what passes. Where nobody looks at the terminal of a
 * command, it has the size of the one outside, or the usual one.
 */
function streamsOf({ plan }: Sandbox, { json, tty, output }: RunArguments): RunOptions {
  if (json && tty) {
    const [cols, rows] = [0, 1, 2].map((fd) => loadAddon().terminalSize(fd)).find(Boolean) ?? [80, 24];
    return { stdin: 'inherit', pty: { cols, rows }, ...output };
  }
  if (json) return { stdin: 'inherit', ...output };
  if (plan.treeLimits.idleTimeoutMs === undefined) return { stdio: 'inherit' };
  return {
    stdin: 'inherit',
    onOutput: ({ stream, bytes }) => {
      if (!printBytes(stream === 'stdout' ? 1 : 2, bytes)) throw READER_GONE;
    },
  };
}

/** Escapes may make text six times as long, and a string has its limit. */
function jsonOf(result: ExecutionResult): string {
  try {
    return JSON.stringify(result);
  } catch (error) {
    throw new SandboxError(
      'output.lost',
      `the command ended (${result.status}), but its output is too long for JSON; use a smaller --max-output, with --spill for all of it`,
      { cause: error },
    );
  }
}

const endedBy = (signal: NodeJS.Signals) => 128 + constants.signals[signal];

/** The exit status of the launcher for a result. */
export function exitStatus(result: ExecutionResult): number {
  switch (result.status) {
    case 'exited':
      return result.exitCode;
    case 'signaled':
      return 128 + signalNumber(result.signal);
    case 'timed-out':
      return EXIT_TIMED_OUT;
    case 'canceled':
      return result.signal === undefined ? (result.exitCode ?? 1) : 128 + signalNumber(result.signal);
    case 'limit-exceeded':
    case 'denied':
    case 'setup-failed':
      return ERROR_CODES[result.error.code].exitStatus;
    default:
      return assertNever(result);
  }
}

function signalNumber(name: string): number {
  const realTime = /^SIGRTMIN\+(\d+)$/.exec(name)?.[1];
  if (realTime !== undefined) return FIRST_REAL_TIME_SIGNAL + Number(realTime);
  return Object.entries(constants.signals).find(([known]) => known === name)?.[1] ?? 0;
}

function remark(result: ExecutionResult, sandbox: Sandbox, json: boolean): void {
  for (const warning of result.warnings) printError(`warning: ${warning}`);
  for (const path of result.createdProtectedPaths) {
    if (result.warnings.some((warning) => warning.includes(path))) continue;
    printError(`warning: the command created ${path}, which a trusted program may execute later; look at it`);
  }
  if (json) return;
  if (result.error !== undefined) printError(result.error.message);
  if (result.status === 'timed-out')
    printError(`timed out after ${(result.durationMs / 1000).toFixed(1)} s (--timeout SECONDS changes it)`);
  if (result.status === 'exited' && result.exitCode !== 0) {
    printError(`exited ${result.exitCode} in the sandbox: ${describeConfinement(sandbox.plan)}`);
  }
}
