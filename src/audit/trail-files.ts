import { readdirSync } from 'node:fs';
import { join } from 'node:path';

/** The lock file and anchor of a trail. */
export function headPath(directory: string): string {
  return join(directory, 'head');
}

/** The file of a day (UTC). */
export function dayFileName(time: number): string {
  return `${new Date(time).toISOString().slice(0, 10)}.jsonl`;
}

const DAY_FILE = /^\d{4}-\d\d-\d\d\.jsonl$/;

/** Names of the files of a trail, oldest first. Throws if the directory cannot be read. */
export function listDayFiles(directory: string): readonly string[] {
  return readdirSync(directory)
    .filter((name) => DAY_FILE.test(name))
    .sort();
}
