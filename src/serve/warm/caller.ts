import type { Surroundings } from '../../workspace/index.ts';

/**
 * Who asked for a call of the command line, and where answers go: the process itself, or a client that handed its call over to a warm
 * server.
 */
export interface Caller extends Surroundings {
  /**
   * Writes to its output (1) or error (2), all of it, before anything else happens. False: the reader is gone.
   * @throws {SandboxError} `output.lost`: standard output cannot be written.
   */
  readonly write: (fd: 1 | 2, bytes: Uint8Array) => boolean;
  /** Handles signals that it gets, which have their default actions again when that is disposed of. */
  readonly onSignals: (
    signals: readonly NodeJS.Signals[],
    handle: (signal: NodeJS.Signals) => void,
  ) => Disposable;
  /** Stops it until it is continued. */
  readonly stop: () => void;
  /** Bytes that were written to it and that it has not taken yet; missing: writing waits for it. */
  readonly unread?: () => number;
  /** Aborted when nobody waits for the end of the call any more; a process that is gone needs none. */
  readonly gone?: AbortSignal;
}
