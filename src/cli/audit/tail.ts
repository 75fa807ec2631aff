import { setTimeout as sleep } from 'node:timers/promises';
import { createCursor, lastLines } from '../../audit/trail-cursor.ts';
import { printRecords, reading, recordsFrom, trailDirectory } from './read.ts';

const DEFAULT_LINES = 20;
/** How often a growing trail is looked at. */
const INTERVAL_MS = 200;

interface Options {
  readonly lines?: number;
  readonly follow?: boolean;
  readonly json?: boolean;
}

/** Prints the last records, and with `follow` new ones, until the reader is gone. */
export async function tailTrail({ lines = DEFAULT_LINES, follow, json }: Options): Promise<number> {
  const directory = trailDirectory();
  const cursor = reading(() => createCursor(directory, lastLines(directory, lines)));
  const print = () => reading(() => printRecords(recordsFrom(cursor.lines()), json));
  while (print() && follow === true) await sleep(INTERVAL_MS);
  return 0;
}
