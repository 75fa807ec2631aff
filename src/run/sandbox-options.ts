import type { Approver } from '../model/approval.ts';
import type { AuditSink } from '../model/audit-record.ts';
import type { BackendId } from '../model/backend.ts';
import type { Autonomy, Taint } from '../model/decision.ts';
import type { GatePorts } from '../model/gate-ports.ts';
import type { TreeLimits } from '../model/policy.ts';
import type { ApproverName, PolicyFile } from '../model/policy-keys.ts';
import type { OutputChunk } from './output/chunk.ts';
import type { OutputLimits } from './output/gap.ts';
import type { AgentSession } from './session.ts';

/** Parts of the gate that an application brings itself. */
export interface GateOptions extends Partial<Omit<GatePorts, 'within'>> {
  /**
   * Who answers what the policy asks, wherever it asks; only `ask: 'nobody'` keeps it from being asked. Read at each
   * question, so that a getter may answer when it is known who there is.
   */
  readonly approver?: Approver | undefined;
  /** Who answers where the policy asks on the terminal; a library has none. */
  readonly terminal?: Approver;
  /** Told the id of each request that waits in the queue. */
  readonly onQueued?: (id: string) => void;
  /** @internal Around each wait for an answer, from any approver. */
  readonly asking?: <T>(wait: () => Promise<T>) => Promise<T>;
  /** Where decisions and results are recorded. */
  readonly audit?: AuditSink;
  /** @internal For one command that was approved beforehand: what stood in its request for what cannot be known. */
  readonly once?: string;
}

/** Options of `createSandbox`. */
export interface SandboxOptions {
  /** The directory that commands work in. Default: the policy's `security.workspace_dir`, else the current directory. */
  readonly workspace?: string;
  /** Name of a built-in profile. Default: the policy file's, else `workspace-write`. */
  readonly profile?: string;
  /** Path of a TOML policy file, or its content as an object; comes on top of the machine's and the user's. */
  readonly policy?: string | PolicyFile;
  /** @internal False: only the built-in policy and `policy`, whatever files there are; to ask what the host can do. */
  readonly policyFiles?: boolean;
  /**
   * What keeps commands in. Default: `auto`, the strongest that this host has and that holds what the policy requires.
   * One that is named and cannot be used is an error, and never another.
   */
  readonly backend?: BackendId | 'auto';
  /** How much is left to the agent. Default: the policy's, else `supervised`. */
  readonly autonomy?: Autonomy;
  /** Who is asked what the policy asks. Default: the policy's, else `terminal`, which a library is without an approver. */
  readonly ask?: ApproverName;
  /** What has a state or belongs to the application; each takes the place of what the policy would give. */
  readonly gate?: GateOptions;
  /** Who the commands are run for: budget, approvals and sessions belong to it. Default: the user of this process. */
  readonly principal?: string;
  /** The session of the agent, from `openSession()`, or its id. Default: none, so that nothing is remembered of it. */
  readonly session?: AgentSession | string;
  /** Further paths to read and execute from. They must exist. */
  readonly readable?: readonly string[];
  /** Further paths to write. They must exist. */
  readonly writable?: readonly string[];
  /** Names passed on from this process's environment. */
  readonly passEnv?: readonly string[];
  /** Variables with values. */
  readonly env?: Readonly<Record<string, string>>;
  /** Default time-out of a command in milliseconds, at most a year; 0: none. */
  readonly timeout?: number;
  /** How long a command may write no output, in milliseconds, at most a year; 0: for ever. Default: the policy's, else 0. */
  readonly idleTimeout?: number;
  /** What a command may use with everything that it starts. Default: the policy's. */
  readonly limits?: TreeLimits;
  /** Bytes kept of each output stream, half from its beginning and half from its end, or so many of each. Default: 1 MiB. */
  readonly maxOutput?: number | OutputLimits;
}

/** The size of a terminal in characters, from 1 to 65535 each. */
export interface TerminalSize {
  readonly cols: number;
  readonly rows: number;
}

/**
 * An approval of one request, from `sandbox.check()`. The request is made again right before the launch; if it has another
 * fingerprint (a file behind the command changed, for example), the command is refused with `approval.void`. Standard
 * input and a terminal are no part of that request: a run with one of them is refused, too.
 */
export interface ApprovedRequest {
  readonly fingerprint: string;
}

/** Options of one run. */
export interface RunOptions {
  /** Absolute, or relative to the workspace. Default: the workspace. */
  readonly cwd?: string;
  /** Variables for this command; `undefined` takes one away. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /**
   * A person looked at exactly this command and approved it: where the policy asks, that is the answer. What the
   * policy refuses stays refused. To be set by the application, never by a model. `true` is good for whatever the command
   * does by the time it runs; `{ fingerprint }` only while its request is the one that was shown.
   */
  readonly approved?: boolean | ApprovedRequest;
  /** What the session of the agent was exposed to. */
  readonly taints?: readonly Taint[];
  /** Milliseconds, at most a year; 0: none. */
  readonly timeout?: number;
  /** How long the command may write no output, in milliseconds, at most a year; 0: for ever. Needs captured output. */
  readonly idleTimeout?: number;
  /** Ends the command when aborted: SIGTERM, then SIGKILL. */
  readonly signal?: AbortSignal;
  /** Written to standard input, which is empty otherwise. */
  readonly input?: string | Uint8Array;
  /** `inherit`: the command reads this process's standard input. Default: `null`, which is empty. */
  readonly stdin?: 'null' | 'inherit';
  /**
   * Called with output as it arrives; while a returned promise is pending, the command's pipe fills up. The result waits
   * for the last one, unless the command was ended (time-out, limit, `signal`, `cancel()`, `close()`): then for 250 ms at
   * most, after which it is called no more and a warning of the result says so.
   */
  readonly onOutput?: (chunk: OutputChunk) => void | Promise<void>;
  /** As in `createSandbox`, for this run. */
  readonly maxOutput?: number | OutputLimits;
  /** `bytes`: the result has the output as bytes, with nothing replaced, and not as text. Default: `utf8`. */
  readonly encoding?: 'utf8' | 'bytes';
  /**
   * `neutralize`: text for a reader that is no terminal, such as a model. Escape sequences and control characters but line
   * breaks and tabs are taken out; of a line that was written over, as progress bars are, the last state is left;
   * bidirectional controls and invisible characters are shown as `\u{202e}`. It is for the text of the result and of
   * `outputText()`, which begins a new line instead, not for bytes. Default: `keep`.
   */
  readonly escapes?: 'keep' | 'neutralize';
  /** Both streams through one pipe: `stdout` has all output in the order in which it was written, `stderr` nothing. */
  readonly combined?: boolean;
  /**
   * Writes the whole output to files of mode 0600 in the state directory, up to 256 MiB of each stream or `maxBytes`
   * (`Infinity`: all there is); `spilled` of the result names them. Each time, those older than 7 days are removed, and
   * the oldest until the others have 1 GiB together.
   */
  readonly spill?: boolean | { readonly maxBytes: number };
  /** `inherit`: the command uses this process's standard streams and nothing is captured. Default: `capture`. */
  readonly stdio?: 'capture' | 'inherit';
  /**
   * The command runs on a terminal of its own. All that it shows is `stdout`, with the echo of `input`, which is typed; at
   * its end comes, once, the character that means the end of the input.
   */
  readonly pty?: TerminalSize;
  /** True, see {@link JobOptions}: what the command leaves behind runs on, and `run` gives a job. */
  readonly background?: false;
}

/** Options of a run in the background. Without `timeout` there is none. */
export type JobOptions = Omit<RunOptions, 'background'> & { readonly background: true };

/** Options of `spawn`. */
export type SpawnOptions = Pick<
  RunOptions,
  'cwd' | 'env' | 'approved' | 'taints' | 'timeout' | 'signal' | 'pty'
>;
