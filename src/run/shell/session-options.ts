import type { ExecutionResult } from '../../model/execution-result.ts';
import type { RunOptions } from '../sandbox-options.ts';
import type { ShellSnapshot } from './snapshot.ts';

/** Options of `sandbox.session()`. */
export interface ShellOptions {
  /** Where it begins: absolute, or relative to the workspace. Default: the workspace, or where the snapshot was made. */
  readonly cwd?: string;
  /** Variables of the shell, beyond those of every command. */
  readonly env?: Readonly<Record<string, string>>;
  /** Directory and variables of another session. What would change which programs run is left out: see `warnings`. */
  readonly restore?: ShellSnapshot;
}

/** Options of one command of a session. */
export type TurnOptions = Pick<RunOptions, 'taints' | 'timeout' | 'signal' | 'onOutput'> & {
  /** As of `run()`; of what a shell would do no request is made beforehand. */
  readonly approved?: boolean;
  /** Variables for this command alone. */
  readonly env?: Readonly<Record<string, string>>;
};

/** What became of a command of a session, and of its shell. */
export type TurnResult = ExecutionResult & {
  /** Where the shell is now. */
  readonly cwdAfter: string;
  /**
   * The shell ended with the command (`exit`, `exec`, a hang that no interrupt ended) and a new one has taken its place,
   * with the directory and the exported variables from before it; functions and other variables are lost.
   */
  readonly restarted: boolean;
};

/**
 * One long-lived confined bash. Directory, variables, functions and activated environments last from command to
 * command. Its commands are one trust domain: what one of them does to the shell, the next ones get.
 */
export interface ShellSession extends AsyncDisposable {
  readonly id: string;
  /** Canonical directory in which the next command starts. */
  readonly cwd: string;
  /** Remarks on the start: variables of a snapshot that were left out. */
  readonly warnings: readonly string[];
  /** Judges a command and runs it in the shell. One at a time: others wait for their turn. */
  run(command: string, options?: TurnOptions): Promise<TurnResult>;
  /** Interrupts the command that runs, as Ctrl-C would, and ends what does not heed that. False: none runs. */
  interrupt(): boolean;
  /** Where the shell is and what it exports. */
  snapshot(): ShellSnapshot;
  /** Ends the shell and everything that it started. */
  close(): Promise<void>;
}
