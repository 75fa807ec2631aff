import { errorMessage } from '../base/error-message.ts';
import type { ErrorCode } from '../base/errors/codes.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { visibleLine } from '../base/visible-text.ts';
import { errorOf } from '../gate/index.ts';
import {
  type FleetRun,
  type JobMessage,
  LONGEST_JOB,
  type SentExecution,
  type SentResult,
  type UnfinishedJob,
} from '../model/fleet.ts';
import type { ExecutionResult, RunOptions } from '../model/index.ts';
import type { OutputSender } from './output.ts';
import type { Queue } from './queue.ts';
import type { ReportTeller } from './reports.ts';
import { checkNarrowing, type JobSandbox, type JobSandboxes, shorter, smallerOutput } from './sandboxes.ts';

/** A job that belongs to this worker. */
export interface ClaimedJob {
  readonly job: JobMessage;
  readonly attempt: number;
  /** Of its record. */
  readonly revision: number;
  readonly queueMs: number;
  readonly queue: string;
  readonly worker: string;
  /** Aborted: the command ends. */
  readonly signal: AbortSignal;
  /** Aborted: nobody wants to know any more what became of it. */
  readonly abandoned: AbortSignal;
}

/** What became of it, as it is sent. */
interface RanJob {
  readonly sent: SentResult;
  readonly collected: Partial<Pick<FleetRun, 'changes' | 'artefacts'>>;
}

/** What is told of a job that has no result of a command. */
export function unfinished(status: UnfinishedJob['status'], code: ErrorCode, message: string): UnfinishedJob {
  return {
    ...{ status, ok: false, exitCode: undefined, signal: undefined, stdout: '', stderr: '' },
    error: errorOf(code, message),
  };
}

/** Runs a job to its end: whatever goes wrong is its result. */
export async function runJob(
  claimed: ClaimedJob,
  sandboxes: JobSandboxes,
  queue: Queue,
  {
    output,
    reports,
    say,
  }: {
    readonly output: OutputSender;
    readonly reports: ReportTeller;
    readonly say: (line: string) => void;
  },
): Promise<RanJob> {
  let opened: JobSandbox | undefined;
  try {
    const { options, workspace } = claimed.job;
    await checkNarrowing(options.narrow);
    if (workspace === undefined) {
      refuseCollecting(claimed.job);
      opened = await sandboxes.own(options.narrow);
    } else {
      const { fetchWorkspace } = await import('./archive/fetch.ts');
      opened = await sandboxes.fresh(options.narrow, (directory) =>
        fetchWorkspace(queue, workspace, directory, claimed.signal),
      );
    }
    const result = await opened.sandbox.run(claimed.job.command, optionsOf(claimed, opened, output));
    const { remarks, ...collected } = await collect(queue, claimed, opened, result);
    const told = { ...result, warnings: [...result.warnings, ...remarks] };
    return { sent: await sentOf(told, reports), collected };
  } catch (error) {
    if (claimed.signal.aborted)
      return {
        sent: { result: unfinished('canceled', 'command.failed', 'the job was canceled before it ran') },
        collected: {},
      };
    const code = error instanceof SandboxError ? error.code : 'launch.failed';
    const result = unfinished('setup-failed', code, visibleLine(errorMessage(error), 500));
    return { sent: { result }, collected: {} };
  } finally {
    // What became of the job does not depend on it.
    await opened?.done().catch((error: unknown) => say(`what a job left is there: ${errorMessage(error)}`));
  }
}

/** The whole of a worker's own workspace is nobody's to take. */
function refuseCollecting({ options }: JobMessage): void {
  if (options.changes === true || options.artefacts !== undefined)
    throw new SandboxError(
      'usage.invalid',
      'changes and artefacts come back of a workspace that was sent with the job; name one (--workspace-from)',
    );
}

function optionsOf(
  { job, signal, queue, worker }: ClaimedJob,
  { sandbox }: JobSandbox,
  output: OutputSender,
): RunOptions {
  const { limits } = sandbox.policy;
  const { narrow: _narrow, changes: _changes, artefacts: _artefacts, ...said } = job.options;
  return {
    ...said,
    timeout: shorter(shorter(limits.timeoutMs, LONGEST_JOB), said.timeout),
    idleTimeout: shorter(limits.idleTimeoutMs, said.idleTimeout),
    maxOutput: smallerOutput(limits.outputBytes, said.maxOutput),
    signal,
    job: { queue, id: job.job, worker },
    ...(job.input === undefined ? {} : { input: Buffer.from(job.input, 'base64') }),
    ...(job.live ? { onOutput: (chunk) => output.send(chunk) } : {}),
  };
}

/** Collects the files of the workspace that are sent back. A failure is only a remark, because the command did run. */
async function collect(
  queue: Queue,
  { job, abandoned }: ClaimedJob,
  { workspace }: JobSandbox,
  result: ExecutionResult,
): Promise<RanJob['collected'] & { readonly remarks: readonly string[] }> {
  const { workspace: base, options } = job;
  const { changes = false, artefacts } = options;
  // What was not run changed nothing.
  const isRun = result.status !== 'denied' && result.status !== 'setup-failed';
  if (!isRun || base === undefined || (!changes && artefacts === undefined)) return { remarks: [] };
  const remarks: string[] = [];
  const tried = async (what: string, work: () => Promise<string>) => {
    try {
      return await work();
    } catch (error) {
      remarks.push(`${what} cannot come back: ${visibleLine(errorMessage(error), 300)}`);
      return undefined;
    }
  };
  const { collectChanges, collectArtefacts } = await import('./archive/collect.ts');
  return {
    ...(changes && {
      changes: await tried('what the job changed', () => collectChanges(queue, base, workspace, abandoned)),
    }),
    ...(artefacts && {
      artefacts: await tried('artefacts', () => collectArtefacts(queue, artefacts, workspace, abandoned)),
    }),
    remarks,
  };
}

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');

/** Files of this machine are none of the submitter. */
async function sentOf(
  { bytes, spilled: _spilled, report, ...result }: ExecutionResult,
  reports: ReportTeller,
): Promise<SentExecution> {
  return {
    // A part of the union was taken away from each of its members.
    result: { ...result, bytes: undefined, spilled: undefined } as SentExecution['result'],
    report: await reports.tell(report),
    ...(bytes && {
      bytes: { stdout: base64(bytes.stdout), stderr: base64(bytes.stderr), gapAt: bytes.gapAt },
    }),
  };
}
