import {
  closeSync,
  constants,
  lstatSync,
  openSync,
  realpathSync,
  type Stats,
  statSync,
  unlinkSync,
} from 'node:fs';
import { createConnection } from 'node:net';
import { basename, dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';

/** `sun_path` of a socket's address, without the NUL at its end. */
export const LONGEST_PATH = 107;

/** Whether a socket can have this path. */
export const fitsAddress = (path: string) => Buffer.byteLength(path) <= LONGEST_PATH;

const LOCK_PATIENCE_MS = 5_000;
/** A server that has bound its socket and does not listen yet is no dead one. */
const STARTING_MS = 100;

/** A path that is free, for as long as `release` is not called: what is stale is taken away by one server at a time. */
interface ClaimedPath {
  /** In its directory's real place. */
  readonly path: string;
  readonly release: () => void;
}

/** Who claims a path, and what it may be like. */
export interface PathClaim {
  /** For messages: the server that wants the path. */
  readonly name: string;
  /** Whether the directory may be one in which everybody makes files, such as /tmp. */
  readonly sharedDirectory: boolean;
}

/**
 * Makes sure that a socket can be made at a path, and that nobody else can put one there. A socket that a dead server
 * left behind is taken away; anything else that is there stays. `tryLock`: the addon's.
 * @throws {SandboxError} `gate.unusable`.
 */
export async function claimSocketPath(
  wanted: string,
  tryLock: (fd: number) => boolean,
  claim: PathClaim,
): Promise<ClaimedPath> {
  const refuse: Refuse = refuser(claim);
  const directory = realDirectory(wanted, claim.sharedDirectory, refuse);
  const path = join(directory, basename(wanted));
  if (!fitsAddress(path))
    refuse(path, `has more than ${LONGEST_PATH} bytes, which is the most for a socket; choose a shorter one`);
  if (!isStaleCandidate(path, refuse)) return { path, release: () => {} };
  if (await isListenedOn(path)) refuse(path, 'is in use: another server listens there');
  const release = await lockDirectory(directory, tryLock, refuse);
  try {
    // Again: what was dead before may have been replaced until now. From here on nobody else removes anything.
    await pause(STARTING_MS);
    if (isStaleCandidate(path, refuse)) {
      if (await isListenedOn(path)) refuse(path, 'is in use: another server listens there');
      unlinkSync(path);
    }
    return { path, release };
  } catch (error) {
    release();
    throw error;
  }
}

/** True if there is a socket of ours, false if there is nothing. */
function isStaleCandidate(path: string, refuse: Refuse): boolean {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) return false;
  if (!found.isSocket()) refuse(path, 'is there already and is no socket; choose another path');
  if (found.uid !== process.geteuid?.())
    refuse(path, `is a socket of user ${found.uid}; choose another path`);
  return true;
}

async function lockDirectory(
  directory: string,
  tryLock: (fd: number) => boolean,
  refuse: Refuse,
): Promise<() => void> {
  const fd = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  const end = performance.now() + LOCK_PATIENCE_MS;
  while (!tryLock(fd)) {
    if (performance.now() > end) {
      closeSync(fd);
      refuse(directory, 'is locked by somebody; end that one, or choose another directory');
    }
    await pause(20);
  }
  return () => closeSync(fd);
}

function realDirectory(wanted: string, sharedDirectory: boolean, refuse: Refuse): string {
  const directory = dirname(wanted);
  let path: string;
  let info: Stats;
  try {
    path = realpathSync(directory);
    info = statSync(path);
  } catch (error) {
    const code = errnoOf(error) ?? String(error);
    return refuse(wanted, `lies in a directory that cannot be used (${code}); make that first`);
  }
  if (!info.isDirectory()) refuse(directory, 'is not a directory');
  if (info.uid !== 0 && info.uid !== process.geteuid?.())
    refuse(
      path,
      `belongs to user ${info.uid}, who could put another socket there; choose a directory of yours`,
    );
  const sticky = sharedDirectory && (info.mode & 0o1000) !== 0;
  if ((info.mode & 0o022) !== 0 && !sticky)
    refuse(
      path,
      'can be written by others, who could put another socket there; chmod go-w it, or choose a directory of yours',
    );
  return path;
}

function isListenedOn(path: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = createConnection(path);
    socket.once('connect', () => {
      socket.destroy();
      done(true);
    });
    // Refused: there is nobody. Anything else may be somebody.
    socket.once('error', (error) => done(errnoOf(error) !== 'ECONNREFUSED'));
  });
}

type Refuse = (path: string, why: string) => never;

const refuser =
  ({ name }: PathClaim): Refuse =>
  (path, why) => {
    throw new SandboxError('gate.unusable', `${name} cannot use ${path}: it ${why}`);
  };
