import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import type { NativeAddon } from '../../confine/native/contract.ts';
import {
  ensureStateDirectory,
  type NativeIndex,
  type NativeIndexed,
  type NativeIndexSpec,
} from '../../workspace/index.ts';
import { stateDirectory } from '../state.ts';

/** Limits of saved indexes: how many, and bytes of each. One of 50,000 directories has 4 MB. */
const MOST_FILES = 32;
const MOST_BYTES = 32 * 1024 * 1024;
/** Directories from which on a tree is saved: a smaller one is walked faster than a file is read and written. */
const WORTH_SAVING = 500;

const { O_NOFOLLOW, O_NONBLOCK, O_RDONLY } = constants;

/**
 * What earlier processes knew of trees that commands can write, in the state directory, where no command can write. An index says
 * of each directory what was in it when it had which device, number and time of its last change, and is used for what has the
 * same now. So an old one, or one that another process puts in its place meanwhile, says nothing wrong; who could write a false
 * one could answer questions for the user as well.
 */
const directoryOfIndexes = () => join(stateDirectory(), 'indexes');

/** One file for each thing that is looked for. */
const fileOf = (spec: NativeIndexSpec) => createHash('sha256').update(JSON.stringify(spec)).digest('hex');

/** An index that knows what an earlier process saved of the same trees, if one did. */
export function createIndex(addon: NativeAddon, spec: NativeIndexSpec): NativeIndex {
  return addon.createIndex(spec, readSaved(join(directoryOfIndexes(), fileOf(spec))));
}

/** `undefined` for what is not there, and for what is not a file that we wrote. */
function readSaved(path: string): Buffer | undefined {
  let fd: number | undefined;
  try {
    fd = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
    const { mode, nlink, size, uid } = fstatSync(fd);
    const isOurs = (mode & constants.S_IFMT) === constants.S_IFREG && uid === process.geteuid?.();
    if (!isOurs || (mode & 0o077) !== 0 || nlink !== 1 || size > MOST_BYTES) return undefined;
    return readFileSync(fd);
  } catch {
    // All is read through then, as without it.
    return undefined;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}

/** Saves what an index knows, where a later process would otherwise have much to read. */
export async function saveIndex(
  addon: NativeAddon,
  index: NativeIndex,
  spec: NativeIndexSpec,
  { directories, read, spent, spentBeside, unreadable }: NativeIndexed,
): Promise<void> {
  // Saving costs one entry for each directory, reading a directory eight times as much: save only if it pays.
  if (directories < WORTH_SAVING || read < WORTH_SAVING / 8 + directories / 32) return;
  if (spent || spentBeside || unreadable.length > 0) return;
  const bytes = await new Promise<Buffer>((resolve) => addon.saveIndex(index, resolve));
  if (bytes.length === 0 || bytes.length > MOST_BYTES) return;
  try {
    const directory = ensureStateDirectory(directoryOfIndexes());
    const path = join(directory, fileOf(spec));
    // A file of this name is of a process that was ended.
    const unfinished = `${path}.${process.pid}`;
    removeOldest(directory);
    writeFileSync(unfinished, bytes, { mode: 0o600 });
    renameSync(unfinished, path);
  } catch {
    // The state directory cannot be written, or is full: the next process reads all through as this one did.
  }
}

/** Removes the oldest saved indexes, to make room for one more. */
function removeOldest(directory: string): void {
  const files = readdirSync(directory);
  if (files.length < MOST_FILES) return;
  const byAge = files
    .map((name) => ({
      path: join(directory, name),
      written: statSync(join(directory, name), { throwIfNoEntry: false })?.mtimeMs ?? 0,
    }))
    .sort((a, b) => a.written - b.written);
  for (const { path } of byAge.slice(0, files.length - MOST_FILES + 1)) unlinkSync(path);
}
