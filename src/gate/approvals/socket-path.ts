import { chmodSync, lstatSync, unlinkSync } from 'node:fs';
import { connect, type Server } from 'node:net';
import { SandboxError } from '../../errors/sandbox-error.ts';

/** Bytes of a path that fit into an address (unix(7)), the NUL at its end aside. */
export const LONGEST_PATH = 107;

/** Whether a socket can have this path. */
export const fitsAddress = (path: string) => Buffer.byteLength(path) <= LONGEST_PATH;

/**
 * Lets a server listen at a path, for this user alone. What an earlier server left there is taken away; a server that
 * still answers, and anything that is no socket of ours, stays.
 * @throws {SandboxError} `gate.unusable`.
 */
export async function listenAt(server: Server, path: string): Promise<void> {
  if (!fitsAddress(path)) throw unusable(path, `the path is too long (at most ${LONGEST_PATH} bytes)`);
  await removeStale(path);
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error) => reject(unusable(path, error.message)));
    server.listen(path, () => {
      server.removeAllListeners('error');
      resolve();
    });
  });
  chmodSync(path, 0o600);
}

async function removeStale(path: string): Promise<void> {
  const info = lstatSync(path, { throwIfNoEntry: false });
  if (info === undefined) return;
  if (!info.isSocket() || info.uid !== process.geteuid?.())
    throw unusable(path, 'there is something else at that path; choose another one');
  if (await answers(path))
    throw unusable(path, 'another server listens there; end it or choose another path');
  unlinkSync(path);
}

function answers(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    const settle = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => settle(true));
    socket.once('error', (error: NodeJS.ErrnoException) => settle(error.code !== 'ECONNREFUSED'));
  });
}

const unusable = (path: string, why: string) =>
  new SandboxError('gate.unusable', `the socket ${path} cannot be used: ${why}`);
