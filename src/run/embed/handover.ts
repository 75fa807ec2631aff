import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { deserialize, serialize } from 'node:v8';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { shortageOf } from '../../base/errors/shortage.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import { O_TMPFILE } from '../../workspace/index.ts';

/** Words by which another process of this user takes what was put here: where it is, and what it must be. */
export type Claim = readonly [address: string, digest: string];

const ADDRESS = /^\/proc\/[1-9][0-9]*\/fd\/[0-9]+$/;
const DIGEST = /^[0-9a-f]{64}$/;

const digestOf = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

/**
 * Values that wait for one process each. They lie in files that have no name any more: only processes of this user that are not
 * confined get at the descriptors of this one, and what was not taken goes with it. The digest in a claim is over all of it, so
 * that what is at its address by then is that or nothing.
 */
export class Handover {
  readonly #descriptors = new Set<number>();

  /**
   * Puts a value. `directory`: where there is room for it.
   * @throws {SandboxError} `state.unusable`: no file can be made there; `launch.failed`: too many files are open.
   */
  put(directory: string, value: unknown): Claim {
    this.#forgetTaken();
    const bytes = serialize(value);
    const fd = namelessFile(directory, bytes);
    this.#descriptors.add(fd);
    return [`/proc/${process.pid}/fd/${fd}`, digestOf(bytes)];
  }

  /** From now on nothing can be taken. */
  close(): void {
    for (const fd of this.#descriptors) closeSync(fd);
    this.#descriptors.clear();
  }

  #forgetTaken(): void {
    for (const fd of this.#descriptors)
      if (fstatSync(fd).size === 0) {
        closeSync(fd);
        this.#descriptors.delete(fd);
      }
  }
}

/** Creates a file without a name, so that no other process of this user, a command for example, can open it and read what is written later. */
function namelessFile(directory: string, bytes: Uint8Array): number {
  const { O_RDWR, O_EXCL } = constants;
  let why: unknown;
  // NFS and old overlays have no such files; shared memory has.
  for (const place of [directory, '/dev/shm']) {
    let fd: number | undefined;
    try {
      fd = openSync(place, O_TMPFILE | O_RDWR | O_EXCL, 0o600);
      for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at);
      return fd;
    } catch (error) {
      if (fd !== undefined) closeSync(fd);
      why ??= error;
    }
  }
  const short = shortageOf(errnoOf(why));
  if (short !== undefined)
    throw new SandboxError(
      'launch.failed',
      `${short}; a command line holds a file until it is started, or the sandbox is closed`,
      { cause: why },
    );
  throw new SandboxError(
    'state.unusable',
    `no private file can be made in ${directory} or /dev/shm (${errnoOf(why) ?? String(why)}); make room there`,
    { cause: why },
  );
}

const isSpent = (why: string) =>
  new SandboxError(
    'handover.spent',
    `nothing was run: ${why}. A command line of sandbox.commandLine() is good for one start, on the same machine, as the same user and before the sandbox is closed; make a new one`,
  );

/**
 * Takes a value that another process has put, once.
 * @throws {SandboxError} `usage.invalid` for words that are no claim; `handover.spent`.
 */
export function takeOver([address, digest]: readonly string[], addon: Pick<NativeAddon, 'tryLock'>): unknown {
  if (address === undefined || digest === undefined || !ADDRESS.test(address) || !DIGEST.test(digest))
    throw new SandboxError('usage.invalid', 'embedded takes what sandbox.commandLine() has written there');
  const fd = openAt(address);
  try {
    const { size, nlink, uid, mode } = fstatSync(fd);
    // The descriptor was closed, and its number may belong to another file by now.
    if (nlink !== 0 || uid !== process.geteuid?.() || (mode & 0o777) !== 0o600)
      throw isSpent('the sandbox was closed');
    // Locked, so that only one of two processes that start at the same time takes it.
    if (size === 0 || !addon.tryLock(fd)) throw isSpent('this command line was used before');
    const bytes = readFileSync(fd);
    if (bytes.length === 0) throw isSpent('this command line was used before');
    if (digestOf(bytes) !== digest) throw isSpent('what was handed over is not what the command line names');
    ftruncateSync(fd);
    return deserialize(bytes);
  } finally {
    closeSync(fd);
  }
}

function openAt(address: string): number {
  const { O_RDWR, O_NONBLOCK, O_NOCTTY } = constants;
  try {
    return openSync(address, O_RDWR | O_NONBLOCK | O_NOCTTY);
  } catch (error) {
    throw isSpent(
      `the sandbox was closed, or its process is out of reach (${errnoOf(error) ?? String(error)})`,
    );
  }
}
