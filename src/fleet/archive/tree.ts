import { createHash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { lstat, open, opendir, readdir, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { errnoOf } from '../../base/errno-of.ts';
import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { MAX_WORKSPACE_BYTES, MAX_WORKSPACE_ENTRIES, type ManifestEntry } from '../../model/fleet.ts';

const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Works on each of a list, so many at once. Begins with no other one once it is given up, or one failed, and throws why when
 * those that were begun have ended: what they work in may be taken away then.
 */
export async function forEach<T>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const left = items[Symbol.iterator]();
  const failures: unknown[] = [];
  const one = async () => {
    for (const item of left) {
      if (failures.length > 0) return;
      try {
        signal?.throwIfAborted();
        await work(item);
      } catch (error) {
        failures.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, one));
  if (failures.length > 0) throw failures[0];
}

/** Files whose content is read at once. */
export const AT_ONCE = 16;

/**
 * All that is in a directory and wanted, parents before what is in them, by name. No link is followed, and links stay links.
 * Devices, FIFOs and sockets are left out, and so are names that are no UTF-8.
 * @throws {SandboxError} `file.unusable`: it is too much, or a file cannot be read.
 */
export async function readTree(
  root: string,
  {
    isWanted = () => true,
    signal,
  }: { readonly isWanted?: (entry: ManifestEntry) => boolean; readonly signal?: AbortSignal } = {},
): Promise<readonly ManifestEntry[]> {
  const entries: ManifestEntry[] = [];
  const add = (entry: ManifestEntry) => {
    if (!isWanted(entry)) return;
    if (entries.length >= MAX_WORKSPACE_ENTRIES) throw tooMuch(root, `${MAX_WORKSPACE_ENTRIES} files`);
    // Checked before the file is read: a sparse file costs its maker nothing.
    if (entry.kind === 'file') bytes += entry.size;
    if (bytes > MAX_WORKSPACE_BYTES) throw tooMuch(root, `${MAX_WORKSPACE_BYTES} bytes`);
    if (entry.kind === 'file') files.push({ at: entries.length, path: entry.path });
    entries.push(entry);
  };
  let bytes = 0;
  const files: { readonly at: number; readonly path: string }[] = [];
  const walk = async (directory: string): Promise<void> => {
    const names: string[] = [];
    for await (const { name } of await opendir(join(root, directory))) names.push(name);
    for (const name of names.sort()) {
      signal?.throwIfAborted();
      const path = directory === '' ? name : `${directory}/${name}`;
      // Node puts this character for bytes that are none.
      if (name.includes('\ufffd')) continue;
      const status = await lstat(join(root, path));
      const mode = status.mode & 0o777;
      if (status.isDirectory()) {
        add({ kind: 'directory', path, mode });
        await walk(path);
      } else if (status.isSymbolicLink()) {
        add({ kind: 'link', path, target: await readlink(join(root, path)) });
      } else if (status.isFile()) {
        add({ kind: 'file', path, mode, size: status.size, digest: '' });
      }
    }
  };
  try {
    await walk('');
    bytes = 0;
    const hash = async ({ at, path }: (typeof files)[number]) => {
      const read = await hashFile(join(root, path));
      bytes += read.size;
      if (bytes > MAX_WORKSPACE_BYTES) throw tooMuch(root, `${MAX_WORKSPACE_BYTES} bytes`);
      const entry = entries[at];
      if (entry?.kind === 'file') entries[at] = { ...entry, ...read };
    };
    await forEach(files, AT_ONCE, hash, signal);
  } catch (error) {
    if (error instanceof SandboxError) throw error;
    const message = visibleLine(error instanceof Error ? error.message : String(error), 200);
    throw new SandboxError('file.unusable', `${root} cannot be read as a whole: ${message}`, {
      cause: error,
    });
  }
  return entries;
}

const tooMuch = (root: string, most: string) =>
  new SandboxError('file.unusable', `${root} has more than ${most}, which is all that travels with a job`);

async function hashFile(path: string): Promise<{ readonly size: number; readonly digest: string }> {
  const file = await open(path, READ);
  try {
    const hash = createHash('sha256');
    let size = 0;
    if (!(await file.stat()).isFile()) throw new SandboxError('file.unusable', `${path} is no file any more`);
    for await (const piece of file.createReadStream({ autoClose: false })) {
      hash.update(piece);
      size += piece.length;
    }
    return { size, digest: hash.digest('hex') };
  } finally {
    await file.close();
  }
}

/** Reads a file, and nothing in the place of one. */
export function readFileAt(path: string): Readable {
  return createReadStream(path, { flags: READ as unknown as string });
}

/** @throws {SandboxError} `file.unusable`: it is there, and no empty directory. */
export async function refuseFilled(directory: string): Promise<void> {
  const names = await readdir(directory).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT') return [];
    throw new SandboxError(
      'file.unusable',
      `${visibleLine(directory, 200)} cannot be used: ${visibleLine(errorMessage(error), 200)}`,
    );
  });
  if (names.length > 0)
    throw new SandboxError(
      'file.unusable',
      `${visibleLine(directory, 200)} is not empty; name a directory that is not there`,
    );
}
