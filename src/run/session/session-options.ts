import type { TurnResult } from '../../model/execution-result.ts';
import type { ShellSnapshot, TurnOptions } from '../../model/options.ts';

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
