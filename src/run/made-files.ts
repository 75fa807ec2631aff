import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  type Stats,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { isBeneath } from '../base/absolute-path.ts';
import { orElse } from '../base/or-else.ts';
import type { MadeFiles } from '../model/index.ts';
import { ensureStateDirectory } from '../workspace/index.ts';
import { keyOfWorkspace } from './resolve/workspace-cache.ts';
import { stateDirectory } from './state.ts';

/** Bytes of one record file at most; then only the newest MOST_KEPT entries are written anew. */
const MOST_BYTES = 2 * 1024 * 1024;
const MOST_KEPT = 5_000;
/** A record that no command added to for so long, in milliseconds, is removed. */
const UNUSED_MS = 90 * 24 * 3_600_000;

const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/**
 * The files of a workspace, and of `granted` places beside it, that commands of a principal made, in `made/KEY` of the state directory, which no command can write:
 * a line for each, as JSON. A line is added in one write, so that processes need not wait for each other, and a line that cannot
 * be read says nothing. Whatever is wrong with a record, its files are nobody's own: removing them is asked about.
 */
export function madeFilesOf(
  workspace: string,
  principal: string,
  granted: readonly string[] = [],
): MadeFiles {
  const directory = () => join(stateDirectory(), 'made');
  const name = createHash('sha256')
    .update(`${orElse(() => keyOfWorkspace(workspace), '')}\0${principal}`)
    .digest('hex')
    .slice(0, 32);
  let loaded: { readonly version: string; readonly files: ReadonlyMap<string, string> } | undefined;
  return {
    known() {
      const path = join(directory(), name);
      const version = orElse(() => versionOf(lstatSync(path)), '');
      if (loaded?.version !== version)
        loaded = { version, files: orElse(() => readRecord(path), new Map<string, string>()) };
      return loaded.files;
    },
    add(states) {
      const isKept = (path: string) => [workspace, ...granted].some((root) => isBeneath(path, root));
      const lines = [...states].filter(([path]) => isKept(path)).map(lineOf);
      if (lines.length === 0) return;
      orElse(() => {
        ensureStateDirectory(stateDirectory());
        append(ensureStateDirectory(directory()), name, lines);
      }, undefined);
    },
  };
}

const versionOf = ({ ino, size, mtimeMs, ctimeMs }: Stats) => `${ino}:${size}:${mtimeMs}:${ctimeMs}`;

/** Each record begins with a line break, because the one before may be incomplete. */
const lineOf = ([path, state]: readonly [string, string]) => `\n${JSON.stringify([path, state])}`;

/** Whether only this user can have written a file. */
const isOurs = (info: Stats) =>
  info.isFile() && info.uid === process.geteuid?.() && (info.mode & 0o077) === 0 && info.nlink === 1;

function readRecord(path: string): ReadonlyMap<string, string> {
  const file = openSync(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const info = fstatSync(file);
    if (!isOurs(info) || info.size > 2 * MOST_BYTES) return new Map();
    const files = new Map<string, string>();
    for (const [path, state] of readFileSync(file, 'utf8').split('\n').flatMap(entryIn)) {
      // The newest are at the end.
      files.delete(path);
      files.set(path, state);
    }
    return files;
  } finally {
    closeSync(file);
  }
}

function entryIn(line: string): readonly (readonly [string, string])[] {
  const entry: unknown = orElse(() => JSON.parse(line), undefined);
  if (!Array.isArray(entry) || entry.length !== 2) return [];
  const [path, state] = entry;
  return typeof path === 'string' && typeof state === 'string' ? [[path, state]] : [];
}

function append(directory: string, name: string, lines: readonly string[]): void {
  const path = join(directory, name);
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) removeUnused(directory);
  else if (!isOurs(found)) rmSync(path);
  else if (found.size > MOST_BYTES) shorten(path);
  const file = openSync(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0o600);
  try {
    if (isOurs(fstatSync(file))) writeSync(file, lines.join(''));
  } finally {
    closeSync(file);
  }
}

/** The last word about each file, of those that were made last. What another process adds meanwhile is lost. */
function shorten(path: string): void {
  const newest = [...orElse(() => readRecord(path), new Map<string, string>())].slice(-MOST_KEPT);
  const beside = `${path}.${process.pid}`;
  rmSync(beside, { force: true });
  const file = openSync(beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600);
  try {
    writeSync(file, newest.map(lineOf).join(''));
    renameSync(beside, path);
  } finally {
    closeSync(file);
    rmSync(beside, { force: true });
  }
}

function removeUnused(directory: string): void {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    if (Date.now() - lstatSync(path).mtimeMs > UNUSED_MS) rmSync(path, { force: true });
  }
}
