import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { privateParentIn } from '../../src/workspace/index.ts';

const PLACE = privateParentIn('/dev/shm').path;

/** Directories on shared memory that are locked, by inode, and the process that did it (proc_locks(5)). */
function lockersByInode(): ReadonlyMap<number, number> {
  const { dev } = statSync(PLACE);
  const [major, minor] = [(dev >>> 8) & 0xfff, (dev & 0xff) | ((dev >>> 12) & 0xfff00)];
  const device = [major, minor].map((number) => number.toString(16).padStart(2, '0')).join(':');
  const lockers = new Map<number, number>();
  for (const line of readFileSync('/proc/locks', 'utf8').split('\n')) {
    const [, kind, , , pid, file = ''] = line.split(/\s+/);
    if (kind === 'FLOCK' && file.startsWith(`${device}:`))
      lockers.set(Number(file.split(':')[2]), Number(pid));
  }
  return lockers;
}

interface Abandoned {
  readonly path: string;
  readonly inode: number;
  readonly changedMs: number;
}

/** Private directories of this user on shared memory whose launcher, which has a lock on them, is not there any more. */
export function abandonedOnSharedMemory(): readonly Abandoned[] {
  if (!existsSync(PLACE)) return [];
  const lockers = lockersByInode();
  return readdirSync(PLACE)
    .filter((name) => name.startsWith('sandbox-run-slot-'))
    .flatMap((name) => {
      const path = join(PLACE, name);
      const info = statSync(path, { throwIfNoEntry: false });
      if (info === undefined || info.uid !== process.getuid?.() || lockers.has(info.ino)) return [];
      return [{ path, inode: info.ino, changedMs: info.ctimeMs }];
    });
}
