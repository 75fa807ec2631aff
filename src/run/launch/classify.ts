import { signalName } from '../../confine/kernel/errno.ts';
import type { NativeOutcome } from '../../confine/native/contract.ts';
import type { EnforcementReport } from '../../confine/plan/enforcement-report.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import type { AskConnection, Objection } from '../../gate/index.ts';
import type {
  ApprovalAnswer,
  Connection,
  Decision,
  ExecutionResult,
  ExecutionResultBase,
  LeftBehind,
  PublishedPort,
  ResourceUsage,
  SpilledOutput,
} from '../../model/index.ts';
import { explain, type HoldingPlan, leftByGit } from '../output/denials.ts';
import { notKept } from '../output/not-kept.ts';
import type { WouldDeny } from '../output/shadow.ts';
import { type OutputView, type ShownOutput, showOutput } from '../output/show.ts';
import type { Places } from '../proposals.ts';
import { describeExceeded, exceededLimit, type LimitsOfPlan } from './exceeded-limit.ts';
import { describeFailure } from './failure.ts';

/** What is known about a run before it ends. */
export interface RunContext {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly warnings: readonly string[];
  readonly report: EnforcementReport;
  readonly decision: Decision | undefined;
  readonly approval: ApprovalAnswer | undefined;
  /** Looks for programs that the sandbox does not show. */
  readonly hiddenPrograms?: ((exitCode: number) => readonly string[]) | undefined;
  /** Says which credentials of the user it did not get; `undefined`: there are none. */
  readonly credentials?: string | undefined;
  /** Asks what it may reach beyond what is listed. */
  readonly askConnection?: AskConnection | undefined;
}

/** What was found in the workspace after the run. */
export interface AfterRun {
  readonly leftBehind: readonly LeftBehind[];
  /** Where the network is listed. */
  readonly connections: readonly Connection[] | undefined;
  /** Those that were published. */
  readonly ports?: readonly PublishedPort[] | undefined;
  readonly warnings: readonly string[];
  /** What nothing proposes to allow. */
  readonly places: Places;
}

/** Warns the caller that a background process, which it may have wanted, was ended. */
const OUTPUT_HELD =
  'the command had ended, but a process that it left in the background kept its output open and was ended after 250 ms: what a command starts with & ends with it; to keep a server, run it as a command in the background, without &';

/** To the caller, as above, of what had its output elsewhere. */
const LEFT_RUNNING =
  'what the command left in the background was ended with it: to keep a server, run it as a command in the background, without &';

/** How output that came through us is to be shown. */
interface CapturedOutput {
  readonly view: OutputView;
  readonly spilled: SpilledOutput | undefined;
}

const NO_OUTPUT: ShownOutput = {
  stdout: '',
  stderr: '',
  truncated: { stdout: 0, stderr: 0 },
  bytes: undefined,
};

const NOT_MEASURED = { peakMemoryBytes: undefined, peakProcesses: undefined } as const;

/** Nothing was run, so nothing was used. */
const NOTHING_USED: ResourceUsage = {
  by: 'rusage',
  ...NOT_MEASURED,
  cpu: { userMs: 0, systemMs: 0 },
  readBytes: 0,
  writtenBytes: 0,
};

/** The result of a command that was launched. `output` undefined: its output did not come through us. */
export function classify(
  { argv, cwd, warnings, report, decision, approval, hiddenPrograms, credentials }: RunContext,
  outcome: NativeOutcome,
  after: AfterRun,
  plan: LimitsOfPlan & HoldingPlan & Pick<LaunchPlan, 'home'>,
  shadow: WouldDeny | undefined,
  output: CapturedOutput | undefined,
): ExecutionResult {
  const { stdout, stderr, truncated, bytes } =
    output === undefined ? NO_OUTPUT : showOutput(outcome, output.view, outcome.headBytes);
  const outputHeld = outcome.outputHeld ?? false;
  const failed = outcome.exitCode !== 0 || outcome.signal !== 0 || outcome.timedOut || outcome.canceled;
  const further = failed ? (outcome.denials?.untold ?? 0) : 0;
  const remarks = [
    ...(outputHeld ? [OUTPUT_HELD] : outcome.leftRunning === true ? [LEFT_RUNNING] : []),
    ...(credentials !== undefined && outcome.exitCode !== 0 && reachedServer(after, plan, decision)
      ? [credentials]
      : []),
    ...(further > 0 ? [`${further} further things were denied, which denials does not name`] : []),
  ];
  const end = howItEnded(outcome, plan);
  const byItself = end.status === 'exited' || end.status === 'signaled';
  const isExplained =
    end.status !== 'setup-failed' && (!byItself || failed || plan.observed === 'everything');
  const left = isExplained ? undefined : leftByGit(outcome, plan, after.places);
  const hidden = byItself ? (hiddenPrograms?.(outcome.exitCode) ?? []) : [];
  // One literal with little behind it: put together from parts, an object of so many fields takes V8 thirty times as long.
  return {
    argv,
    cwd,
    stdout,
    stderr,
    truncated,
    bytes,
    outputBytes: { stdout: output && outcome.stdoutBytes, stderr: output && outcome.stderrBytes },
    spilled: output?.spilled,
    durationMs: outcome.durationMs,
    cpu: { userMs: outcome.userCpuMs, systemMs: outcome.systemCpuMs },
    peakMemoryBytes: peakMemory(outcome),
    usage: usageOf(outcome),
    notKept: outcome.made && notKept(outcome.made, plan, after.places),
    hiddenPrograms: hidden.length === 0 ? undefined : hidden,
    denials: left,
    notLookedAt: undefined,
    changes: undefined,
    wouldDeny: shadow?.(outcome.denials?.told ?? [], after.connections),
    treeEnded: outcome.treeEnded,
    processTree: {
      // What was used, where that is not what was planned.
      tier: outcome.processTree ?? report.processTree,
      ended: outcome.treeEnded,
    },
    outputHeld,
    leftBehind: after.leftBehind,
    warnings:
      after.warnings.length === 0 && remarks.length === 0
        ? warnings
        : [...warnings, ...after.warnings, ...remarks],
    report,
    decision,
    approval,
    ...(after.connections === undefined ? {} : { connections: after.connections }),
    ...(after.ports === undefined || after.ports.length === 0 ? {} : { ports: after.ports }),
    ...(isExplained ? explain(outcome, plan, { ...after, limit: end.limit }) : {}),
    ...end,
  };
}

/** Whether a command may have been answered by a server outside; where the network is open, its text alone says so. */
function reachedServer(
  { connections }: AfterRun,
  { network }: HoldingPlan,
  decision: Decision | undefined,
): boolean {
  if (connections === undefined) return network === 'open' && decision?.reach !== 'local';
  return connections.some(
    ({ verdict, protocol, error }) =>
      verdict === 'allowed' && (protocol === 'tcp' || protocol === 'udp') && error === undefined,
  );
}

/** What a command that was launched used. */
function usageOf({ userCpuMs, systemCpuMs, usage }: NativeOutcome): ResourceUsage {
  const counted = usage?.userCpuUs !== undefined && usage.systemCpuUs !== undefined;
  const measured = usage?.peakMemoryBytes !== undefined || usage?.peakProcesses !== undefined || counted;
  return {
    by: usage !== undefined && measured ? usage.by : 'rusage',
    peakMemoryBytes: usage?.peakMemoryBytes,
    peakProcesses: usage?.peakProcesses,
    cpu: counted
      ? { userMs: usage.userCpuUs / 1000, systemMs: usage.systemCpuUs / 1000 }
      : { userMs: userCpuMs, systemMs: systemCpuMs },
    readBytes: usage?.readBytes ?? 0,
    writtenBytes: usage?.writtenBytes ?? 0,
  };
}

/** What differs by the status of a result. */
function howItEnded(outcome: NativeOutcome, plan: LimitsOfPlan) {
  // The command ran, and was ended for what follows; only how it ended is not known.
  const isLost = outcome.failure?.stage === 'wait';
  const wasEnded = outcome.timedOut || outcome.canceled || outcome.limit !== undefined;
  if (outcome.failure !== undefined && !(isLost && wasEnded)) {
    const error = describeFailure(outcome.failure, outcome.treeEnded);
    return { ...NOT_OK, status: 'setup-failed', exitCode: undefined, signal: undefined, error } as const;
  }
  const signal = outcome.signal === 0 ? undefined : signalName(outcome.signal);
  const exitCode = signal === undefined && !isLost ? outcome.exitCode : undefined;
  if (outcome.timedOut || outcome.canceled) {
    const status = outcome.timedOut ? 'timed-out' : 'canceled';
    return { ...NOT_OK, status, exitCode, signal, error: undefined } as const;
  }
  const limit = exceededLimit(outcome, signal, plan);
  if (limit !== undefined) {
    const error = describeExceeded(limit);
    return { ok: false, status: 'limit-exceeded', exitCode, signal, limit, error } as const;
  }
  return { ...endedByItself(signal, outcome.exitCode), limit: undefined };
}

const NOT_OK = { ok: false, limit: undefined } as const;

/** Fields of the result of a command that ended by itself, or by another program's signal. */
export function endedByItself(signal: string | undefined, exitCode: number) {
  return signal === undefined
    ? ({ status: 'exited', ok: exitCode === 0, exitCode, signal, error: undefined } as const)
    : ({ status: 'signaled', ok: false, exitCode: undefined, signal, error: undefined } as const);
}

/** The result of a command that never got to the launch. */
export function notRun(
  { hiddenPrograms: _, askConnection: __, credentials: ___, ...context }: RunContext,
  why: Objection,
): ExecutionResult {
  const base: ExecutionResultBase = {
    ...context,
    ...NO_OUTPUT,
    outputBytes: { stdout: 0, stderr: 0 },
    spilled: undefined,
    durationMs: 0,
    cpu: { userMs: 0, systemMs: 0 },
    peakMemoryBytes: undefined,
    usage: NOTHING_USED,
    limit: undefined,
    treeEnded: true,
    processTree: { tier: context.report.processTree, ended: true },
    notKept: undefined,
    hiddenPrograms: undefined,
    denials: undefined,
    notLookedAt: undefined,
    changes: undefined,
    wouldDeny: undefined,
    outputHeld: false,
    leftBehind: [],
  };
  const end = { ok: false, exitCode: undefined, signal: undefined } as const;
  return why.status === 'canceled'
    ? { ...base, ...end, status: 'canceled', error: undefined }
    : { ...base, ...end, ...why };
}

function peakMemory(outcome: NativeOutcome): number | undefined {
  // ru_maxrss of the first process starts at the size of the process it was cloned from (exec_mmap in fs/exec.c).
  return outcome.maxRssKib > outcome.launcherMaxRssKib ? outcome.maxRssKib * 1024 : undefined;
}
