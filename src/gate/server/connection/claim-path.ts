import { randomBytes } from 'node:crypto';
import { linkSync, lstatSync, realpathSync, renameSync, type Stats, statSync, unlinkSync } from 'node:fs';
import { createConnection } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { SandboxError } from '../../../errors/sandbox-error.ts';

/** `sun_path` of a socket's address, without the NUL at its end. */
const MAX_PATH_BYTES = 107;

/**
 * Makes sure that a socket can be made at a path, and that nobody else can put one there. A socket that a server left
 * behind is taken away; anything else that is there stays. Returns the path to bind, in its directory's real place.
 * @throws {SandboxError} `gate.unusable`.
 */
export async function claimSocketPath(wanted: string): Promise<string> {
  const path = join(realDirectory(dirname(wanted)), basename(wanted));
  if (Buffer.byteLength(path) > MAX_PATH_BYTES)
    refuse(
      path,
      `has more than ${MAX_PATH_BYTES} bytes, which is the most for a socket; choose a shorter one`,
    );
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return path;
  if (!found.isSocket()) refuse(path, 'is there already and is no socket; choose another path');
  if (found.uid !== process.geteuid?.())
    refuse(path, `is a socket of user ${found.uid}; choose another path`);
  if (await isListenedOn(path)) refuse(path, 'is in use: another server listens on it');
  await takeAway(path);
  return path;
}

function realDirectory(directory: string): string {
  let path: string;
  let info: Stats;
  try {
    path = realpathSync(directory);
    info = statSync(path);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    return refuse(directory, `cannot be used (${code}); make the directory first`);
  }
  if (!info.isDirectory()) refuse(directory, 'is not a directory');
  if (info.uid !== 0 && info.uid !== process.geteuid?.())
    refuse(
      path,
      `belongs to user ${info.uid}, who could put another socket there; choose a directory of yours`,
    );
  const sticky = (info.mode & 0o1000) !== 0;
  if ((info.mode & 0o022) !== 0 && !sticky)
    refuse(path, 'can be written by others, who could put another socket there; chmod go-w it');
  return path;
}

/** Two servers that start at once must not take away each other's: what was moved aside is looked at again. */
async function takeAway(path: string): Promise<void> {
  const aside = join(dirname(path), `.stale-${randomBytes(8).toString('hex')}`);
  try {
    renameSync(path, aside);
  } catch (error) {
    // The other one was quicker.
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return;
    throw error;
  }
  const alive = await isListenedOn(aside);
  if (alive) linkSync(aside, path);
  unlinkSync(aside);
  if (alive) refuse(path, 'is in use: another server listens on it');
}

function isListenedOn(path: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = createConnection(path);
    socket.once('connect', () => {
      socket.destroy();
      done(true);
    });
    // Refused: there is nobody. Anything else may be somebody.
    socket.once('error', (error) => done(!('code' in error && error.code === 'ECONNREFUSED')));
  });
}

function refuse(path: string, why: string): never {
  throw new SandboxError('gate.unusable', `the gate cannot use ${path}: it ${why}`);
}
