import { readFileSync } from 'node:fs';

/** Ids that there are: all but -1. */
const ALL = 0xffff_ffff;

/**
 * The user id that stands for all users without an id in our user namespace (user_namespaces(7)): a user who seems to be that
 * one may be any of them. `undefined`: every user has an id here, or nothing is known of user namespaces.
 */
export function ambiguousUid(read: (path: string) => string = readText): number | undefined {
  try {
    const rows = read('/proc/self/uid_map').trim().split('\n');
    const mapped = rows.reduce((sum, row) => sum + Number(row.trim().split(/\s+/)[2]), 0);
    return mapped >= ALL ? undefined : Number(read('/proc/sys/kernel/overflowuid'));
  } catch {
    return undefined;
  }
}

function readText(path: string): string {
  return readFileSync(path, 'utf8');
}
