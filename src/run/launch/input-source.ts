import { randomUUID } from 'node:crypto';
import { closeSync } from 'node:fs';
import type { Socket } from 'node:net';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { NativeCommand } from '../../confine/native/contract.ts';
import type { Running } from '../../confine/running.ts';
import type { Command, ExecutionResult, InputSource, RunOptions } from '../../model/index.ts';
import type { Launch } from './launch.ts';
import type { RunningCommand } from './pending-command.ts';
import { launchHanding, makePipe, type SpawnParts } from './spawn.ts';

/** Whether standard input comes from a stream, or another source that gives pieces. */
export function isSource(input: RunOptions['input']): input is InputSource {
  return typeof input === 'object' && Symbol.asyncIterator in input;
}

/**
 * Launches a command whose standard input is what a source gives, piece by piece: the next is asked for when the pipe has taken
 * the one before. Nothing is asked for before the command runs. A command that ends, or reads no more, ends the source. One that
 * fails ends the command, which sees no end of its input: half of it must not pass for all; the result rejects with its error.
 */
export function launchWithSource(
  parts: SpawnParts,
  command: Command,
  options: RunOptions,
  how: Launch,
  source: InputSource,
): RunningCommand {
  const pieces = piecesOf(source);
  const [readEnd, writeEnd] = makePipe(parts.addon);
  let sink: Socket | undefined;
  let failed: { readonly error: unknown } | undefined;
  let isOver = false;
  const over = () => {
    isOver = true;
    if (sink === undefined) closeSync(writeEnd);
    else sink.destroy();
    pieces.end();
  };
  const onLaunch = (running: Running) => {
    how.onLaunch?.(running);
    const { Socket } = process.getBuiltinModule('node:net');
    sink = new Socket({ fd: writeEnd, readable: false, writable: true });
    feed(pieces, sink).catch((error: unknown) => {
      if (!isOver && running.end()) failed = { error };
    });
  };
  const stdio: NativeCommand['stdio'] = [readEnd, how.stdio[1], how.stdio[2]];
  const fed: Launch = { ...how, stdio, source: `stream ${randomUUID()}`, onLaunch };
  let started: RunningCommand;
  try {
    started = launchHanding(parts, command, options, fed, [readEnd]);
  } catch (error) {
    over();
    throw error;
  }
  const settle = (result: ExecutionResult): ExecutionResult => {
    if (failed !== undefined) throw failed.error;
    return result;
  };
  return { ...started, result: started.result.finally(over).then(settle) };
}

/** Writes all pieces; settles when there is no more, or nobody reads any more. Rejects with what the source throws. */
async function feed(pieces: Pieces, sink: Socket): Promise<void> {
  // Each write reports whether the command still reads; the event needs a listener, or it throws.
  sink.on('error', () => {});
  for (;;) {
    const piece = await pieces.next();
    if (piece === undefined) break;
    if (!(await isWritten(sink, piece))) {
      pieces.end();
      return;
    }
  }
  sink.end();
}

function isWritten(sink: Socket, piece: string | Uint8Array): Promise<boolean> {
  return new Promise((settle) => {
    if (sink.destroyed) settle(false);
    else sink.write(piece, (error) => settle(error === undefined || error === null));
  });
}

interface Pieces {
  /** `undefined`: there are no more. */
  next(): Promise<string | Uint8Array | undefined>;
  /** No more are wanted, now or when the one that is waited for has come. */
  end(): void;
}

function piecesOf(source: InputSource): Pieces {
  let begun: AsyncIterator<string | Uint8Array> | undefined;
  const iterator = () => {
    begun ??= source[Symbol.asyncIterator]();
    return begun;
  };
  let isEnded = false;
  return {
    async next() {
      const { done, value } = await iterator().next();
      if (done === true) {
        isEnded = true;
        return undefined;
      }
      if (typeof value === 'string' || value instanceof Uint8Array) return value;
      throw new SandboxError('usage.invalid', 'run: input must give strings or bytes, piece by piece');
    },
    end() {
      if (isEnded) return;
      isEnded = true;
      // A stream that waits for its next piece hears of `return` when that has come only.
      if ('destroy' in source && typeof source.destroy === 'function') {
        if ('once' in source && typeof source.once === 'function') source.once('error', () => {});
        source.destroy();
        return;
      }
      void Promise.resolve(iterator().return?.()).catch(() => {});
    },
  };
}
