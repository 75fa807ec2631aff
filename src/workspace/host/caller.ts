import { AsyncLocalStorage } from 'node:async_hooks';
import { writeSync } from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';

/**
 * Who asked for what this code does, and where answers go: this process itself, or a client that handed its call over to a
 * warm server. What is the same for both, such as HOME, is read from the process.
 */
export interface Caller {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The current directory. Throws if it is gone. */
  readonly cwd: () => string;
  /** Descriptors of its standard input, output and error. */
  readonly stdio: readonly [number, number, number];
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

const THIS_PROCESS: Caller = {
  env: process.env,
  cwd: () => process.cwd(),
  stdio: [0, 1, 2],
  write: writeAll,
  onSignals: (signals, handle) => {
    for (const signal of signals) process.on(signal, handle);
    return {
      [Symbol.dispose]: () => {
        for (const signal of signals) process.off(signal, handle);
      },
    };
  },
  stop: () => void process.kill(process.pid, 'SIGSTOP'),
};

const callers = new AsyncLocalStorage<Caller>();
let isServer = false;

/** The caller of the code that runs now. */
export function caller(): Caller {
  const found = callers.getStore();
  if (found !== undefined) return found;
  // What is said to nobody must not go to whoever is next, nor wherever the streams of a server lead.
  if (isServer) throw new Error('a call of a warm server has lost its caller');
  return THIS_PROCESS;
}

/** From now on this process does nothing for itself: there is a caller only within {@link onBehalfOf}. */
export function serveOthersOnly(): void {
  isServer = true;
}

/** Does work for a caller, with everything that it starts. */
export function onBehalfOf<T>(other: Caller, work: () => T): T {
  return callers.run(other, work);
}

function writeAll(fd: 1 | 2, bytes: Uint8Array): boolean {
  let rest = bytes;
  while (rest.length > 0) {
    try {
      rest = rest.subarray(writeSync(fd, rest));
    } catch (error) {
      const code = errnoOf(error);
      // A full non-blocking pipe is tried again; a reader that went away has read enough.
      if (code === 'EAGAIN') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
      else if (code === 'EPIPE' || fd !== 1) return false;
      else
        throw new SandboxError(
          'output.lost',
          `standard output cannot be written (${code}); what was to be written is lost`,
        );
    }
  }
  return true;
}
