import type { ErrorCode } from '../errors/codes.ts';
import type { ApprovalAnswer } from './approval.ts';
import type { Decision } from './decision.ts';
import type { EnforcementReport, ProcessTreeTier } from './enforcement-report.ts';
import type { LeftBehind } from './left-behind.ts';

/** Why a command was not run. */
export interface ExecutionError {
  readonly code: ErrorCode;
  /** One line: what, where, what to do. */
  readonly message: string;
  /** The step that failed, if it was a step of the launch; stable. */
  readonly stage: string | undefined;
  /** The errno's name, for example `ENOENT`. */
  readonly errno: string | undefined;
  readonly path: string | undefined;
}

/** Output as it is: nothing is replaced, and nothing stands in the place of what is missing. */
export interface OutputBytes {
  readonly stdout: Uint8Array;
  readonly stderr: Uint8Array;
  /** Where the bytes are missing that `truncated` counts; `undefined`: nowhere. */
  readonly gapAt: { readonly stdout: number | undefined; readonly stderr: number | undefined };
}

/** Files that have the whole output; only their owner can read them. */
export interface SpilledOutput {
  readonly stdout: string;
  /** `undefined`: both streams are in one file. */
  readonly stderr: string | undefined;
  /** One line: why a file has less than the command wrote. `undefined`: the files have all of it. */
  readonly incomplete: string | undefined;
}

/** The limit of the policy for which a command was ended. */
export interface ExceededLimit {
  /** `cpu` is processor time, `tmp` the private directories, `idle` the time without output. */
  readonly name: 'memory' | 'processes' | 'cpu' | 'tmp' | 'idle' | 'file-size';
  /** What the policy allows: bytes, a count of processes and threads, or seconds. */
  readonly value: number;
  /** What was seen to be used, in the same unit; `undefined`: the kernel refused more. */
  readonly used: number | undefined;
  /** By what it was noticed: the kernel's control group, looking every 100 ms, the kernel's limit of a process, the clock. */
  readonly by: 'cgroup' | 'sampling' | 'rlimit' | 'clock';
}

/** What a command used. What is unknown is `undefined`. */
export interface ResourceUsage {
  /**
   * `cgroup`: everything was counted by the kernel. `sampling`: the peaks are the largest seen every 100 ms, and memory
   * that forks share counts for each of them. `rusage`: the kernel's account of the command and the children that it
   * waited for; without a group it is also where processor time, reads and writes come from.
   */
  readonly by: 'cgroup' | 'sampling' | 'rusage';
  /** Of the command with everything that it started, at any one time. */
  readonly peakMemoryBytes: number | undefined;
  /** Processes and threads at any one time. */
  readonly peakProcesses: number | undefined;
  readonly cpu: { readonly userMs: number; readonly systemMs: number };
  /** From and to block devices: what the page cache answers is not among it. */
  readonly readBytes: number;
  readonly writtenBytes: number;
}

/** What every result has, whatever became of the command. */
export interface ExecutionResultBase {
  /** The argument vector that was run or would have been. */
  readonly argv: readonly string[];
  readonly cwd: string;
  /**
   * Captured output, decoded as UTF-8 (invalid bytes become U+FFFD); empty if it was not captured, or is wanted as bytes. Of
   * what is longer than `maxOutput` the beginning and the end, in whole characters, and between them one line of the form
   * `\n[... 12,345,678 bytes left out ...]\n`. A command can write such a line too; `truncated` is what counts.
   */
  readonly stdout: string;
  readonly stderr: string;
  /** Bytes that the command wrote and that are not shown. */
  readonly truncated: { readonly stdout: number; readonly stderr: number };
  /** Captured output of a run with `encoding: 'bytes'`; `undefined` for others. */
  readonly bytes: OutputBytes | undefined;
  /** Where the whole output is, if that was asked for (`spill`). */
  readonly spilled: SpilledOutput | undefined;
  /** Bytes that the command wrote, kept or not; `undefined` for a stream that was not captured. */
  readonly outputBytes: { readonly stdout: number | undefined; readonly stderr: number | undefined };
  /** Wall clock from the start of the launch to the end of the process tree. */
  readonly durationMs: number;
  /** CPU time of the command and the children that it waited for. */
  readonly cpu: { readonly userMs: number; readonly systemMs: number };
  /**
   * Largest resident set of one process, in bytes. The kernel starts the count of the first process at the
   * launcher's own size; if nothing was larger, the true value is unknown and this is undefined.
   */
  readonly peakMemoryBytes: number | undefined;
  /** What the command and everything that it started used. */
  readonly usage: ResourceUsage;
  /** Set if the status is `limit-exceeded`. */
  readonly limit: ExceededLimit | undefined;
  /** Every process that the command started is provably gone. */
  readonly treeEnded: boolean;
  /** What held the command's processes together, and `treeEnded` again. */
  readonly processTree: { readonly tier: ProcessTreeTier; readonly ended: boolean };
  /**
   * The command ended by itself, but something that it had started kept its output open, for the 250 ms that it had, and
   * was ended then. False for output that was not captured.
   */
  readonly outputHeld: boolean;
  /** What programs outside would obey of what the command left in the workspace, and what was done about it. */
  readonly leftBehind: readonly LeftBehind[];
  /** Remarks on the launch, for example a secret passed by name. */
  readonly warnings: readonly string[];
  readonly report: EnforcementReport;
  /** What the policy decided and why; `undefined`: commands are not judged (`unsafe.unjudged_commands`). */
  readonly decision: Decision | undefined;
  /** The answer of the person who was asked; `undefined`: no one was asked. */
  readonly approval: ApprovalAnswer | undefined;
}

/**
 * What became of a command. `exitCode`, `signal` and `error` are always there, so that one shape serves
 * success and failure:
 * - `exited`: it ran and ended by itself with `exitCode`.
 * - `signaled`: `signal` ended it.
 * - `timed-out`, `canceled`: we ended it.
 * - `limit-exceeded`: it used more than the policy allows and was ended; `limit` says of what, `error` what to do. `exitCode`
 *   may be 0: a shell may have outlived what was ended, and a command may handle SIGTERM. Of `file_size` only the signal
 *   (SIGXFSZ) that ends the command itself is seen: not that of a program under a shell, nor EFBIG, where it is ignored.
 * - `denied`: it was judged and not run: refused, or asked about with no one to answer. `error` says why in one sentence,
 *   `decision` with all reasons.
 * - `setup-failed`: it could not be started; `error` says why (`program.not_found`, `program.not_executable`, …).
 */
export type ExecutionResult = ExecutionResultBase &
  (
    | {
        readonly status: 'exited';
        readonly exitCode: number;
        readonly signal: undefined;
        readonly error: undefined;
      }
    | {
        readonly status: 'signaled';
        readonly exitCode: undefined;
        readonly signal: string;
        readonly error: undefined;
      }
    | {
        readonly status: 'timed-out' | 'canceled';
        readonly exitCode: number | undefined;
        readonly signal: string | undefined;
        readonly error: undefined;
      }
    | {
        readonly status: 'limit-exceeded';
        readonly exitCode: number | undefined;
        readonly signal: string | undefined;
        readonly limit: ExceededLimit;
        readonly error: ExecutionError;
      }
    | {
        readonly status: 'denied' | 'setup-failed';
        readonly exitCode: undefined;
        readonly signal: undefined;
        readonly error: ExecutionError;
      }
  );
