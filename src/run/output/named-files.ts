import { closeSync, constants, fstatSync, ftruncateSync, lstatSync, openSync, realpathSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { directoryPath } from '../../base/directory-path.ts';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { RunOptions } from '../../model/index.ts';
import { inDirectoryOf } from '../../workspace/index.ts';
import { incompleteness, type Spill } from './spill.ts';

/** Files that the caller has named for whole output, and how they are written. */
export type NamedFiles = Exclude<RunOptions['spill'], boolean | undefined>;

const unusable = (path: string, why: string, cause?: unknown) =>
  new SandboxError('file.unusable', `output cannot be written to ${path}: ${why}; nothing was run`, {
    cause,
  });

/**
 * Opens the files. Where commands can write no link is followed, and of a file that is there already no other name may exist: this
 * process may write more than a command, which could have put either there. `writable`: canonical roots where commands can write.
 * @throws {SandboxError} `file.unusable`.
 */
export function openNamedFiles(
  { stdout, stderr, append = false }: NamedFiles,
  limit: number,
  writable: readonly string[],
): Spill {
  const paths = [stdout, stderr].map(directoryPath);
  const files: (number | undefined)[] = [];
  const release = () => {
    for (const fd of files.splice(0)) if (fd !== undefined) closeSync(fd);
  };
  try {
    for (const path of paths) files.push(path === undefined ? undefined : openFile(path, writable));
    const [one, other] = files.map((fd) => (fd === undefined ? undefined : fstatSync(fd, { bigint: true })));
    if (one !== undefined && one.ino === other?.ino && one.dev === other.dev)
      throw unusable(paths[0] ?? '', 'both streams in one file need combined');
    if (!append) for (const fd of files) if (fd !== undefined) ftruncateSync(fd);
  } catch (error) {
    release();
    throw error;
  }
  const [out = -1, err = -1] = files;
  return {
    extras: { spill: [out, err], spillLimit: Math.min(limit, Number.MAX_SAFE_INTEGER) },
    release,
    // What was in them is gone, as where a shell cannot start a command whose output it redirects.
    discard: release,
    result: (outcome) => ({
      ...{ stdout: paths[0], stderr: paths[1], incomplete: incompleteness(outcome, limit) },
    }),
  };
}

function openFile(path: string, writable: readonly string[]): number {
  try {
    const directory = withoutLinks(dirname(path), writable);
    const root = outermost(writable, directory) ?? directory;
    const fd = inDirectoryOf(root, join(directory, basename(path)), openRegular);
    if (fd === undefined) throw unusable(path, 'its directory does not exist');
    return fd;
  } catch (error) {
    if (error instanceof SandboxError) throw error;
    if (error instanceof Refusal) throw unusable(path, error.message);
    throw unusable(path, errnoOf(error) ?? String(error), error);
  }
}

class Refusal extends Error {}

/** The canonical path of a directory, if no link on the way is where commands can write. */
function withoutLinks(path: string, writable: readonly string[]): string {
  let at = '/';
  for (const part of path.split('/').filter((each) => each !== '' && each !== '.')) {
    const next = part === '..' ? dirname(at) : join(at, part);
    if (!lstatSync(next).isSymbolicLink()) at = next;
    else if (outermost(writable, at) === undefined) at = realpathSync(next);
    else throw new Refusal(`${next} is a symbolic link that a command may have made`);
  }
  return at;
}

/** The outermost root around a path: commands cannot rename the directories above it. */
function outermost(roots: readonly string[], path: string): string | undefined {
  return roots.filter((root) => isBeneath(path, root)).sort((one, other) => one.length - other.length)[0];
}

function openRegular(at: Buffer): number {
  const { O_WRONLY, O_CREAT, O_APPEND, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants;
  let fd: number;
  try {
    // Opened with O_APPEND, so that nothing is lost if another process writes too.
    fd = openSync(at, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0o600);
  } catch (error) {
    const errno = errnoOf(error);
    if (errno === 'ELOOP') throw new Refusal('it is a symbolic link');
    throw errno === 'ENXIO' ? new Refusal('it is no regular file') : error;
  }
  const info = fstatSync(fd);
  const isOurs = info.uid === process.geteuid?.();
  if (info.isFile() && info.nlink === 1 && isOurs) return fd;
  closeSync(fd);
  if (!info.isFile()) throw new Refusal('it is no regular file');
  throw new Refusal(isOurs ? 'it has another name as well' : 'it belongs to another user');
}
