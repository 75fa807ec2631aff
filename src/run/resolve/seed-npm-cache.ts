import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { errnoOf } from '../../base/errno-of.ts';
import { readRegular } from '../../workspace/index.ts';

const { COPYFILE_FICLONE, O_DIRECTORY, O_NOFOLLOW, O_RDONLY } = constants;

const LOCK_FILES = ['package-lock.json', 'npm-shrinkwrap.json'];
const MAX_LOCK_BYTES = 64 * 1024 ** 2;
/** Limits, because seeding delays the start of a sandbox; npm downloads what is missing. */
const MAX_PACKAGES = 20_000;
const MAX_BYTES = 512 * 1024 ** 2;

/** Contents of npm's cache, beneath a home. */
const CONTENT = '.npm/_cacache/content-v2/sha512';
/** Contents of npm's cache, beneath the places of a workspace's cache. */
const PLACE = ['npm', '_cacache', 'content-v2', 'sha512'];

/** Prefix of the files beside the places that note what was seeded. */
export const SEEDED = 'seeded';

/** Whether npm has cached anything for a workspace: then it reads that, and not the user's own cache. */
export function hasNpmCache(cacheDirectory: string): boolean {
  return existsSync(join(cacheDirectory, 'places/npm/_cacache'));
}

/**
 * Copies those packages from the user's npm cache that the workspace's lock file names by their SHA-512: a command can only
 * get what it knows already, and nothing of the user's cache has to be shown. npm checks them once more. What cannot be had is
 * left out.
 */
export function seedNpmCache(cacheDirectory: string, workspace: string, home: string): void {
  const source = join(home, CONTENT);
  if (!existsSync(source)) return;
  const stamps = [...LOCK_FILES.map((name) => join(workspace, name)), join(home, '.npm/_cacache/tmp')].map(
    stampOf,
  );
  if (stamps.slice(0, -1).every((stamp) => stamp === '')) return;
  const note = join(cacheDirectory, SEEDED);
  const now = stamps.join('\n');
  if (hasNpmCache(cacheDirectory) && readNote(note) === now) return;
  const named = new Set(LOCK_FILES.flatMap((name) => digestsIn(join(workspace, name))));
  const staged = join(cacheDirectory, `${SEEDED}.${process.pid}`);
  let bytes = 0;
  try {
    for (const digest of [...named].slice(0, MAX_PACKAGES)) {
      if (bytes > MAX_BYTES) break;
      bytes += takeOver(source, join(cacheDirectory, 'places'), digest, staged);
    }
    writeFileSync(note, now, { mode: 0o600 });
  } catch {
    // No room, perhaps: npm downloads what it does not find.
  } finally {
    rmSync(staged, { force: true });
  }
}

function stampOf(path: string): string {
  const info = statSync(path, { throwIfNoEntry: false, bigint: true });
  return info === undefined ? '' : `${info.ino} ${info.size} ${info.mtimeNs}`;
}

function readNote(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}

/** In hexadecimal digits, as cacache names its files. */
function digestsIn(lockFile: string): readonly string[] {
  const text = readRegular(lockFile, MAX_LOCK_BYTES)?.toString('latin1') ?? '';
  return [...text.matchAll(/"sha512-([A-Za-z0-9+/]{86}==)"/g)].map(([, digest = '']) =>
    Buffer.from(digest, 'base64').toString('hex'),
  );
}

/** Returns how many bytes were copied, by way of `staged`. */
function takeOver(source: string, places: string, digest: string, staged: string): number {
  const [first, second, rest] = [digest.slice(0, 2), digest.slice(2, 4), digest.slice(4)];
  const from = join(source, first, second, rest);
  const info = lstatSync(from, { throwIfNoEntry: false });
  if (info?.isFile() !== true) return 0;
  let held: number | undefined;
  try {
    held = openSync(places, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    // One by one: a command may have put a link in place of each.
    for (const name of [...PLACE, first, second]) {
      const next = openInside(held, name);
      closeSync(held);
      held = next;
    }
    const to = `/proc/self/fd/${held}/${rest}`;
    if (lstatSync(to, { throwIfNoEntry: false }) !== undefined) return 0;
    // Another process may read it already.
    copyFileSync(from, staged, COPYFILE_FICLONE);
    renameSync(staged, to);
    return info.size;
  } catch (error) {
    // A command made something else of the place.
    const errno = errnoOf(error);
    if (errno === 'ENOTDIR' || errno === 'ELOOP' || errno === 'EACCES') return 0;
    throw error;
  } finally {
    if (held !== undefined) closeSync(held);
  }
}

function openInside(directory: number, name: string): number {
  const path = `/proc/self/fd/${directory}/${name}`;
  try {
    mkdirSync(path, { mode: 0o755 });
  } catch (error) {
    if (errnoOf(error) !== 'EEXIST') throw error;
  }
  return openSync(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}
