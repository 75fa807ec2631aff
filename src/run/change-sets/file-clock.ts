import { closeSync, constants, fchmodSync, fstatSync, openSync, statSync } from 'node:fs';
import { PERMISSIONS, SET_GROUP_ID } from '../../confine/kernel/mode-bits.ts';
import { O_TMPFILE } from '../../workspace/index.ts';

/** How many milliseconds the clock of files may stand still: some file systems count seconds. */
const MOST_TICKS = 3_000;

/** When something begins, by the clock that files get their times from. */
export interface Beginning {
  /** In nanoseconds since 1970: what changes from now on has a later time. */
  readonly at: bigint;
  /** It is the clock of the workspace's own file system, and not of another one, which may differ. */
  readonly isItsOwn: boolean;
}

/**
 * Waits for the next tick in a workspace, which may have another clock than ours: that of a server, or one of whole
 * seconds. `ours`: an open file of ours. `undefined`: the clock stands still.
 */
export async function beginningIn(workspace: string, ours: number): Promise<Beginning | undefined> {
  const isSame = statSync(workspace, { throwIfNoEntry: false })?.dev === fstatSync(ours).dev;
  for (const open of isSame ? [] : [openNameless, openOwn]) {
    const at = await tickOf(() => open(workspace));
    if (at !== undefined) return { at, isItsOwn: true };
  }
  const at = await nextTick(ours);
  return at === undefined ? undefined : { at, isItsOwn: isSame };
}

/** The directory itself, where to set its permissions to what they are changes nothing but a time, which watchers see. */
function openOwn(workspace: string): number | undefined {
  const file = openSync(workspace, constants.O_RDONLY | constants.O_DIRECTORY);
  const { mode, gid } = fstatSync(file);
  const groups = [process.getegid?.(), ...(process.getgroups?.() ?? [])];
  // chmod(2): whoever is not of its group takes the bit away.
  if ((mode & SET_GROUP_ID) === 0 || groups.includes(gid)) return file;
  closeSync(file);
  return undefined;
}

/** A file of ours in it, which nobody sees. NFS has none. */
const openNameless = (workspace: string): number => openSync(workspace, O_TMPFILE | constants.O_RDWR, 0o600);

/** `undefined`: it cannot be told by that file, or stands still. */
async function tickOf(open: () => number | undefined): Promise<bigint | undefined> {
  let file: number | undefined;
  try {
    file = open();
    return file === undefined ? undefined : await nextTick(file);
  } catch {
    // It belongs to somebody else, its file system has no permissions or no such files, or it is gone.
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

/**
 * The time of the last tick, once another one has begun: the clock ticks every few milliseconds, and what changes within a
 * tick would count as changed before. (Since Linux 6.13 it goes on whenever it was read: fs/inode.c, multigrain timestamps.)
 */
async function nextTick(file: number): Promise<bigint | undefined> {
  const began = timeOfFiles(file);
  for (let tries = 0; tries < MOST_TICKS; tries++) {
    if (timeOfFiles(file) !== began) return began;
    await new Promise((done) => setTimeout(done, 1));
  }
  return undefined;
}

/** Now, by the clock that a file gets its times from: by a change of it to what it is. */
function timeOfFiles(file: number): bigint {
  fchmodSync(file, fstatSync(file).mode & PERMISSIONS);
  return fstatSync(file, { bigint: true }).ctimeNs;
}
