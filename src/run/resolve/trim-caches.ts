import { lstatSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { NativeAddon } from '../../confine/native/contract.ts';
import {
  type CacheEntry,
  cachesDirectory,
  clearCache,
  empty,
  listCaches,
  makePlaces,
  measure,
  PLACES,
  partsOf,
  removeUnused,
  takeLock,
} from './workspace-cache.ts';

const GIB = 1024 ** 3;
const HOUR_MS = 3_600_000;

/**
 * How much is kept. Constants and no keys of a policy: what a cache holds can be had again, and no workspace needs another
 * number for its work to be right. 4 GiB hold what a large project downloads and builds, and a disk has four times that.
 */
export const CACHE_LIMITS = {
  /** Most bytes in the cache of one workspace. */
  workspaceBytes: 4 * GIB,
  /** Most bytes in all caches of one user. */
  totalBytes: 16 * GIB,
  /** Without a command; where the workspace is gone, a week. */
  unusedMs: 90 * 24 * HOUR_MS,
  goneMs: 7 * 24 * HOUR_MS,
  /** Between two looks. */
  everyMs: HOUR_MS,
  /** Of one look at one cache: more than a second's worth of files is too much or is looked at again. */
  lookMs: 2_000,
} as const;

/**
 * Once an hour, when a sandbox has ended: what is too large or too old goes. Of a cache that is too large the largest parts go,
 * each as a whole, because tools do not expect one that is there in part; of all caches those used least lately. Never one that
 * a command uses. What fails is tried again an hour later.
 */
export async function trimCaches(
  addon: NativeAddon,
  limits: { readonly [Name in keyof typeof CACHE_LIMITS]: number } = CACHE_LIMITS,
): Promise<void> {
  try {
    if (!isDue(limits.everyMs)) return;
    const now = Date.now();
    let total = 0;
    for (const entry of listCaches(addon)) {
      const age = now - entry.usedAt.getTime();
      // Many a workspace is there for a while, and its commands cache nothing.
      if (age > limits.everyMs && removeUnused(addon, entry.directory)) continue;
      if (age > (entry.isThere ? limits.unusedMs : limits.goneMs)) {
        await clearCache(addon, entry);
        continue;
      }
      const before = await weigh(addon, join(entry.directory, PLACES), limits);
      const bytes = before > limits.workspaceBytes ? await shrink(addon, entry, before, limits) : before;
      // Caches are in order of use, the latest first: those used longest ago go.
      if (total + bytes > limits.totalBytes && total > 0 && (await clearCache(addon, entry)) === 'cleared')
        continue;
      total += bytes;
    }
  } catch {
    // The next sandbox looks again; a command has nothing to do with it.
  }
}

function isDue(everyMs: number): boolean {
  const path = join(cachesDirectory(), 'looked');
  const last = lstatSync(path, { throwIfNoEntry: false });
  if (last !== undefined && Date.now() - last.mtimeMs < everyMs) return false;
  // Other sandboxes that end now see that the check is being done.
  writeFileSync(path, '', { mode: 0o600 });
  return true;
}

/** Returns what is left. */
async function shrink(
  addon: NativeAddon,
  { directory }: CacheEntry,
  before: number,
  limits: { readonly workspaceBytes: number; readonly lookMs: number },
): Promise<number> {
  const lock = takeLock(addon, directory);
  if (lock === undefined) return before;
  try {
    const parts: { readonly path: string; readonly bytes: number }[] = [];
    for (const path of partsOf(directory)) parts.push({ path, bytes: await weigh(addon, path, limits) });
    parts.sort((a, b) => b.bytes - a.bytes);
    let left = before;
    for (const { path, bytes } of parts) {
      if (left <= limits.workspaceBytes) break;
      if (await removePart(addon, path)) left -= bytes;
    }
    makePlaces(join(directory, PLACES));
    return left;
  } finally {
    lock.release();
  }
}

/** Nothing runs now that could put a link there, which would not be followed either. */
async function removePart(addon: NativeAddon, path: string): Promise<boolean> {
  if (lstatSync(path).isDirectory()) return empty(addon, path);
  unlinkSync(path);
  return true;
}

/** What has too many files to be measured, or directories that may not be looked into, is too large. */
async function weigh(
  addon: NativeAddon,
  path: string,
  { workspaceBytes, lookMs }: { readonly workspaceBytes: number; readonly lookMs: number },
): Promise<number> {
  const info = lstatSync(path, { throwIfNoEntry: false });
  if (info?.isDirectory() !== true) return (info?.blocks ?? 0) * 512;
  const { bytes, complete } = await measure(addon, [path], lookMs);
  return complete ? bytes : Math.max(bytes, workspaceBytes + 1);
}
