import { accessSync, constants, lstatSync, readdirSync } from 'node:fs';
import { errnoName } from '../../../confine/kernel/errno.ts';
import type { NativeFailure } from '../../../confine/native/contract.ts';

/** Something in `/` that is no link. */
export interface TopEntry {
  readonly path: string;
  readonly isDirectory: boolean;
}

/** What is in `/`, links left out. */
export function topEntries(): readonly TopEntry[] {
  return readdirSync('/', { withFileTypes: true })
    .filter((entry) => !entry.isSymbolicLink())
    .map((entry) => ({ path: `/${entry.name}`, isDirectory: entry.isDirectory() }));
}

/**
 * Whether a command could change what is in `/`, or make that so: root can on most hosts, without any capability, as `/`
 * belongs to root. Firejail shuts a lot, but never `/` itself (its own `read-only /` mounts a second `/` on top, which
 * `/..` leads to, and that is writable).
 */
export function canChangeRoot(): boolean {
  if (lstatSync('/').uid === process.geteuid?.()) return true;
  try {
    accessSync('/', constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

/** What stays as it is while `/` is shut: all directories, and the files that are granted. */
export function keptOpen(top: readonly TopEntry[], granted: readonly string[]): readonly string[] {
  return top.filter(({ path, isDirectory }) => isDirectory || granted.includes(path)).map(({ path }) => path);
}

/** Why `/` is not shut, as a sentence without its end; undefined: the failure is about something else. */
export function describeRootFailure({ stage, errno }: NativeFailure): string | undefined {
  const why = errno === 0 ? '' : ` (${errnoName(errno)})`;
  switch (stage) {
    case 'root.namespace':
      return `a command could change what is in /, which Firejail leaves as it is, and / cannot be made read-only for it, as this user gets no mount namespace${why}: that takes CAP_SYS_ADMIN; let / belong to root and be writable by nobody else, or start sandbox-run as another user`;
    case 'root.propagation':
    case 'root.keep':
    case 'root.read_only':
      return `a command could change what is in /, which Firejail leaves as it is, and / cannot be made read-only for it (${stage.slice('root.'.length)}${why}): it has to be the root of a mount`;
    case 'root.open':
      return 'a command could change what is in /, although it should not; / was changed since the sandbox was made, or Firejail changed it';
    case 'root.covered':
      return 'something is mounted on top of /, where /.. leads to and where Firejail covers nothing';
    case 'root.look':
      return `it cannot be seen whether a command could change what is in /${why}`;
    default:
      return undefined;
  }
}
