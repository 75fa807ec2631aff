// Trails as versions before the database wrote them: a file for each day, and a file `head` that knows the last record.

import {
  closeSync,
  constants,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { isObject } from '../../base/is-object.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';
import type { NewDatabase } from '../state/database-kind.ts';
import { ChainCheck, IMPORTED } from './chain-check.ts';
import { encodeRecord } from './encode-record.ts';
import { headMac, linesOf, macOf, NO_HASH, openLine, sealRecord } from './record-line.ts';

/** The exclusive lock of an open file; the addon has it. */
export type FileLock = Pick<NativeAddon, 'tryLock' | 'unlock'>;

/** How long a process that writes such a trail may hold its lock. */
const LOCK_TIMEOUT_MS = 5_000;
const DAY_FILE = /^\d{4}-\d\d-\d\d\.jsonl$/;
const HEAD =
  /^(\{"seq":(\d{1,16}),"hash":"([0-9a-f]{64})","file":"[^"]*","size":\d{1,16})(?:,"mac":"([0-9a-f]{64})")?\} *\n$/;

/** The file of a day. `day`: as in 2025-01-31. */
export const dayFileName = (day: string) => `${day}.jsonl`;

/** Names of the files of a trail, oldest first. Throws if the directory cannot be read. */
export const listDayFiles = (directory: string): readonly string[] =>
  readdirSync(directory)
    .filter((name) => DAY_FILE.test(name))
    .sort();

/**
 * Copies the records of files into a database that is being made, with what is wrong with them. The files stay, except
 * `head`: a process of an older version that goes on writing finds it gone, and refuses. Where the end of the files is
 * not the one that was written, neither is that of the database.
 */
export function takeOver(
  directory: string,
  database: NewDatabase,
  { lock, key }: { readonly lock: FileLock; readonly key: Uint8Array | undefined },
): void {
  const setHead = database.prepare('REPLACE INTO head (one, seq, hash, mac) VALUES (1, ?, ?, ?)');
  const add = database.prepare('INSERT OR IGNORE INTO trail (seq, hash, line) VALUES (?, ?, ?)');
  const files = listDayFiles(directory);
  const path = join(directory, 'head');
  // A process that was killed while it did this had taken the other one away.
  const copy = join(directory, 'head.before');
  if (files.length === 0 && !existsSync(path)) {
    setHead.run(0, NO_HASH, key === undefined ? null : headMac(key, { seq: 0, hash: NO_HASH }));
    return;
  }
  const fd = lockHead(path, lock);
  try {
    const known = HEAD.exec(readFileSync(fd, 'latin1')) ?? HEAD.exec(textOf(copy));
    const [, body = '', seq, hash = '', mac] = known ?? [];
    let head = known === null ? undefined : { seq: Number(seq), hash };
    let problems = 0;
    const report = () => {
      problems += 1;
    };
    if (head !== undefined && key !== undefined && mac !== macOf(key, 'head', body)) report();
    const check = new ChainCheck({ report, key, head: undefined, anchor: undefined });
    database.exec('BEGIN');
    for (const name of files)
      for (const line of linesOf(readFileSync(join(directory, name)))) {
        check.line(line);
        const record = openLine(line);
        if (record === undefined) continue;
        add.run(record.seq, record.hash, line.toString());
        // Its process was killed before it wrote the head.
        if (record.intact && record.seq === (head?.seq ?? 0) + 1 && record.prev === head?.hash) head = record;
      }
    const { records, first } = check.finish();
    const last = database.prepare('SELECT seq, hash FROM trail ORDER BY seq DESC LIMIT 1').get();
    const isWhole = isObject(last) ? last.seq === head?.seq && last.hash === head?.hash : head?.seq === 0;
    if (head !== undefined && isWhole) {
      const message = `${records} records were taken over from ${files.length} files, with ${problems} problems`;
      const fields = encodeRecord({
        ...{ type: 'event', code: IMPORTED, principal: 'audit', session: undefined, message },
        details: { records, files: files.length, problems, first: first ?? 1 },
      });
      const sealed = sealRecord(fields, { seq: head.seq + 1, time: Date.now(), prev: head.hash }, key);
      head = { seq: head.seq + 1, hash: sealed.hash };
      add.run(head.seq, head.hash, sealed.text);
    }
    if (head !== undefined) setHead.run(head.seq, head.hash, key === undefined ? null : headMac(key, head));
    // Nobody wrote a record yet.
    else if (files.length === 0) setHead.run(0, NO_HASH, null);
    database.exec('COMMIT');
    rmSync(copy, { force: true });
    if (known !== null) writeFileSync(copy, known[0], { mode: 0o600, flag: 'wx' });
    unlinkSync(path);
  } finally {
    closeSync(fd);
  }
}

const textOf = (path: string) => (existsSync(path) ? readFileSync(path, 'latin1') : '');

/** Opens `head` and takes its lock, which the descriptor has until it is closed. */
function lockHead(path: string, lock: FileLock): number {
  const { O_RDWR, O_CREAT, O_NOFOLLOW } = constants;
  const fd = openSync(path, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600);
  for (const end = performance.now() + LOCK_TIMEOUT_MS; !lock.tryLock(fd); ) {
    if (performance.now() > end) {
      closeSync(fd);
      throw new Error('another process keeps its file head locked (fuser shows it)');
    }
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
  }
  return fd;
}
