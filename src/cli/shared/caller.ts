import { AsyncLocalStorage } from 'node:async_hooks';
import { writeSync } from 'node:fs';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { Caller } from '../../serve/index.ts';
import { currentDirectoryOf, OF_THIS_PROCESS } from '../../workspace/index.ts';

const THIS_PROCESS: Caller = {
  ...OF_THIS_PROCESS,
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

/**
 * The caller of the code that runs now. Only the command line asks: what code of other houses needs of it is handed to it
 * (`Surroundings`).
 */
export function caller(): Caller {
  const found = callers.getStore();
  if (found !== undefined) return found;
  // What is said to nobody must not go to whoever is next, nor wherever the streams of a server lead.
  if (isServer) throw new Error('a call of a warm server has lost its caller');
  return THIS_PROCESS;
}

/** The current directory of the caller. @throws {SandboxError} as {@link currentDirectoryOf}. */
export const currentDirectory = (): string => currentDirectoryOf(caller());

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
