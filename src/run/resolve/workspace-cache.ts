import { createHash } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { orElse } from '../../base/or-else.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import type { SharedDirectory } from '../../confine/plan/grant.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import { CACHE_PLACES } from '../../policy/index.ts';
import { ensureStateDirectory, keptHooksIn } from '../../workspace/index.ts';
import { FAILED_LINES } from '../launch/failed-lines.ts';
import { stateDirectory } from '../state.ts';
import { SEEDED } from './seed-npm-cache.ts';

/*
 * caches/KEY/        mode 0700; locked, shared, by each sandbox that lives (flock)
 *   about.json       which workspace it belongs to
 *   lock             locked, shared, by each command that runs
 *   used             its time is that of the last sandbox
 *   hooks/           what installers of hooks wrote (hook-copies.ts)
 *   places/          what commands see and write, as a whole and nothing else: nothing in it is to be trusted
 */
export const PLACES = 'places';
const LOCK = 'lock';
const ABOUT = 'about.json';
const USED = 'used';
/** Noted no more often than that. */
const USED_MS = 60_000;

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_RDONLY, O_WRONLY } = constants;

/** Where all of them are. */
export function cachesDirectory(state: string = stateDirectory()): string {
  return join(state, 'caches');
}

/**
 * The directory of a workspace's cache, there or not. A directory that takes the place of a deleted workspace has another one:
 * its number and the time of its birth are part of the name. Not its device's, which many file systems get anew when they are
 * mounted.
 */
export function cacheDirectoryOf(workspace: string, state: string = stateDirectory()): string {
  return join(cachesDirectory(state), keyOfWorkspace(workspace));
}

/** The name of what is kept for a workspace, which one that takes its place does not get. */
export function keyOfWorkspace(workspace: string): string {
  const { ino, birthtimeNs } = statSync(workspace, { bigint: true });
  return createHash('sha256').update(`${workspace}\0${ino}\0${birthtimeNs}`).digest('hex').slice(0, 32);
}

/** Where it is or would be; nothing is made. */
export function cachePlaceOf(workspace: string): SharedDirectory {
  return { directory: cacheDirectoryOf(workspace), places: CACHE_PLACES };
}

/** A cache that is there for as long as a sandbox lives. */
export interface OpenCache {
  readonly place: SharedDirectory | { readonly reason: string };
  close(): void;
}

/**
 * Makes what is missing of a workspace's cache. It is nothing that a command needs: where it cannot be made the caches go with
 * the command, and the plan says why.
 */
export function openCache(addon: NativeAddon, workspace: string): OpenCache {
  try {
    ensureStateDirectory(stateDirectory());
    const all = ensureStateDirectory(cachesDirectory());
    const directory = cacheDirectoryOf(workspace, join(all, '..'));
    const held = holdDirectory(addon, directory);
    try {
      makeCache(directory, workspace);
    } catch (error) {
      closeSync(held);
      throw error;
    }
    let closed = false;
    const close = () => {
      if (!closed) closeSync(held);
      closed = true;
    };
    return { place: { directory, places: CACHE_PLACES }, close };
  } catch (error) {
    const why = error instanceof SandboxError ? error.message : (errnoOf(error) ?? String(error));
    return { place: { reason: `there is no place for them: ${why}` }, close: () => {} };
  }
}

/** Another process may remove a cache before it is known to be used again. */
function holdDirectory(addon: NativeAddon, directory: string): number {
  for (let tries = 1; ; tries++) {
    ensureStateDirectory(directory);
    const held = openIfThere(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (held !== undefined) {
      if (addon.tryLock(held, true) && isStill(directory, held)) return held;
      closeSync(held);
    }
    if (tries === 20) throw new SandboxError('state.unusable', `${directory} is being removed; try again`);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
  }
}

function openIfThere(path: string, flags: number): number | undefined {
  try {
    return openSync(path, flags);
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function isStill(path: string, fd: number): boolean {
  const now = lstatSync(path, { throwIfNoEntry: false });
  const held = statSync(`/proc/self/fd/${fd}`);
  return now !== undefined && now.ino === held.ino && now.dev === held.dev;
}

function makeCache(directory: string, workspace: string): void {
  const places = join(directory, PLACES);
  ownDirectory(places);
  makePlaces(places);
  closeSync(openSync(join(directory, LOCK), O_RDONLY | O_CREAT | O_NOFOLLOW, 0o600));
  const about = join(directory, ABOUT);
  if (!existsSync(about)) writeFileSync(about, JSON.stringify({ workspace }), { mode: 0o600 });
  const used = join(directory, USED);
  const last = lstatSync(used, { throwIfNoEntry: false });
  if (last === undefined) writeFileSync(used, '', { mode: 0o600 });
  else if (Date.now() - last.mtimeMs > USED_MS) utimesSync(used, new Date(), new Date());
}

/** What a command put there stays: no link is followed, and what tools make of it is the workspace's own affair. */
export function makePlaces(places: string): void {
  const there = new Set(readdirSync(places));
  for (const { name, kind } of CACHE_PLACES) {
    if (there.has(name)) continue;
    const path = join(places, name);
    if (kind === 'lock-file') closeSync(openSync(path, O_WRONLY | O_CREAT | O_EXCL, 0o600));
    else mkdirSync(path, { mode: 0o700 });
  }
}

/** Commands can change what is in it and its mode, and put nothing in its place. */
function ownDirectory(path: string): void {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found === undefined) mkdirSync(path, { mode: 0o700 });
  else if (!found.isDirectory() || found.uid !== process.geteuid?.())
    throw new SandboxError('state.untrusted', `${path} is not a directory of yours; move it away`);
  else if ((found.mode & 0o7777) !== 0o700) chmodSync(path, 0o700);
}

/** What is known of a cache without looking into it. */
export interface CacheEntry {
  readonly id: string;
  readonly directory: string;
  /** `undefined`: it is not known any more. */
  readonly workspace: string | undefined;
  /** Whether that is still the workspace whose cache it is. */
  readonly isThere: boolean;
  readonly usedAt: Date;
  /** Whether a command uses it now. */
  readonly inUse: boolean;
}

/** All caches, those used last first. */
export function listCaches(addon: NativeAddon): readonly CacheEntry[] {
  const all = cachesDirectory();
  if (!existsSync(all)) return [];
  ensureStateDirectory(all);
  return readdirSync(all, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && /^[0-9a-f]{32}$/.test(entry.name))
    .map(({ name }) => entryOf(addon, join(all, name), name))
    .sort((a, b) => b.usedAt.getTime() - a.usedAt.getTime());
}

function entryOf(addon: NativeAddon, directory: string, id: string): CacheEntry {
  const workspace = workspaceOf(directory);
  const used = lstatSync(join(directory, USED), { throwIfNoEntry: false });
  const lock = takeLock(addon, directory);
  lock?.release();
  return {
    id,
    directory,
    workspace,
    isThere: workspace !== undefined && isCacheOf(directory, workspace),
    usedAt: used?.mtime ?? new Date(0),
    inUse: lock === undefined,
  };
}

function workspaceOf(directory: string): string | undefined {
  try {
    const { workspace } = JSON.parse(readFileSync(join(directory, ABOUT), 'utf8'));
    return typeof workspace === 'string' ? workspace : undefined;
  } catch {
    return undefined;
  }
}

function isCacheOf(directory: string, workspace: string): boolean {
  return orElse(() => cacheDirectoryOf(workspace, join(directory, '../..')) === directory, false);
}

/** Keeps commands from beginning; `undefined`: one uses the cache. */
export function takeLock(
  addon: NativeAddon,
  directory: string,
): { readonly release: () => void } | undefined {
  const fd = openIfThere(join(directory, LOCK), O_RDONLY | O_NOFOLLOW);
  // What was never finished is not used.
  if (fd === undefined) return { release: () => {} };
  if (addon.tryLock(fd)) return { release: () => closeSync(fd) };
  closeSync(fd);
  return undefined;
}

export const measure = (addon: NativeAddon, paths: readonly string[], budgetMs: number) =>
  new Promise<{ readonly bytes: number; readonly complete: boolean }>((done) => {
    addon.measure(paths, budgetMs, (bytes, complete) => done({ bytes, complete }));
  });

/** Removes what is in a directory, following nothing; false: something is left. */
export const empty = (addon: NativeAddon, path: string) =>
  new Promise<boolean>((done) => {
    addon.emptyDirectory(path, done);
  });

/** What commands find; they put there what they like. */
export function partsOf(directory: string): readonly string[] {
  const places = join(directory, PLACES);
  if (!existsSync(places)) return [];
  ownDirectory(places);
  return readdirSync(places).map((name) => join(places, name));
}

/** How much a cache holds, also if a command shut it. `complete`: false, there is more. */
export function sizeOfCache(addon: NativeAddon, { directory }: CacheEntry) {
  const places = join(directory, PLACES);
  if (existsSync(places)) ownDirectory(places);
  return measure(addon, [places], 60_000);
}

/** What became of a cache that was to be cleared. */
type Cleared = 'cleared' | 'in-use' | 'failed';

/**
 * Removes what a cache holds, and the cache itself unless a sandbox lives that uses it. Nothing that is in it is followed. Waits
 * a while for commands that just end.
 */
export async function clearCache(
  addon: NativeAddon,
  { directory }: CacheEntry,
  waitMs = 0,
): Promise<Cleared> {
  const until = performance.now() + waitMs;
  let lock = takeLock(addon, directory);
  while (lock === undefined && performance.now() < until) {
    await new Promise((done) => setTimeout(done, 20));
    lock = takeLock(addon, directory);
  }
  if (lock === undefined) return 'in-use';
  try {
    const places = join(directory, PLACES);
    if (existsSync(places) && !(await empty(addon, places))) return 'failed';
    rmSync(keptHooksIn(directory), { recursive: true, force: true });
    if (!removeUnused(addon, directory)) makePlaces(places);
    return 'cleared';
  } finally {
    lock.release();
  }
}

/**
 * Removes one that holds nothing. False: something is in it, or a sandbox lives that shows it to its commands. What cannot be
 * removed is looked at again when it was not used for long.
 */
export function removeUnused(addon: NativeAddon, directory: string): boolean {
  const held = openIfThere(directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (held === undefined) return true;
  try {
    if (!addon.tryLock(held)) return false;
    const parts = partsOf(directory);
    if (!parts.every(isEmpty) || existsSync(keptHooksIn(directory))) return false;
    for (const path of parts) remove(path);
    const notes = readdirSync(directory).filter((name) =>
      [SEEDED, FAILED_LINES].some((one) => name.startsWith(one)),
    );
    for (const name of [PLACES, ABOUT, USED, LOCK, ...notes]) remove(join(directory, name));
    rmdirSync(directory);
    return true;
  } catch {
    return false;
  } finally {
    closeSync(held);
  }
}

function isEmpty(path: string): boolean {
  const info = lstatSync(path);
  return info.isDirectory() ? readdirSync(path).length === 0 : info.size === 0;
}

/** Whatever it is, it is not followed; a directory has to be empty. */
function remove(path: string): void {
  const info = lstatSync(path, { throwIfNoEntry: false });
  if (info?.isDirectory() === true) rmdirSync(path);
  else if (info !== undefined) unlinkSync(path);
}

/**
 * Settings by which pnpm keeps its store where it does outside: it takes no `node_modules` of another store, and would make one in
 * the workspace, as the private home is another mount. None where it is not used, or where it keeps a store per file system outside.
 * Up to 10 it reads the first file, since 11 the second.
 */
export function storeOfPnpm(home: string, workspace: string): LaunchPlan['seedFiles'] {
  const marks = [
    join(home, '.local/share/pnpm'),
    join(workspace, 'pnpm-lock.yaml'),
    join(workspace, 'pnpm-workspace.yaml'),
  ];
  const deviceOf = (path: string) => orElse(() => statSync(path, { throwIfNoEntry: false })?.dev, undefined);
  if (marks.every((path) => deviceOf(path) === undefined) || deviceOf(home) !== deviceOf(workspace))
    return [];
  const store = JSON.stringify(join(home, '.local/share/pnpm/store'));
  return [
    { path: 'slot:home/.config/pnpm/rc', content: `store-dir=${store}\n` },
    { path: 'slot:home/.config/pnpm/config.yaml', content: `storeDir: ${store}\n` },
  ];
}
