import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import type { AuditProblem, Verification } from '../model/audit-record.ts';
import { errnoOf } from '../util/errno-of.ts';
import { isKept, type Kept } from './break.ts';
import { ChainCheck } from './chain-check.ts';
import { type Head, headMac, readHead } from './record-line.ts';
import { headPath, linesOfFile, listDayFiles } from './trail-files.ts';

/** How to verify. */
interface VerifyOptions {
  readonly key?: Uint8Array | undefined;
  /** A record that was noted elsewhere and must be there. */
  readonly anchor?: { readonly seq: number; readonly hash: string } | undefined;
  /** The chain has to begin with record 1. */
  readonly complete?: boolean | undefined;
  /** Before each file. */
  readonly onFile?: (name: string, done: number, of: number) => void;
}

const MOST_PROBLEMS = 1_000;
/** So long a process may take from making the head to writing it: a second. */
const BEGINNING_TRIES = 50;
const BEGINNING_WAIT_MS = 20;

/**
 * Walks a whole trail and says which records were changed, removed, reordered or put in, and whether its end is there.
 * May run while others write. Throws if a file cannot be read.
 */
export function verifyTrail(directory: string, options: VerifyOptions): Verification {
  // A trail that had no head before and has one after was begun meanwhile: what was seen is no state of it.
  const hadHead = readHeadOf(directory) !== undefined;
  if (!hadHead) waitForBeginning(directory);
  const found = walk(directory, options);
  return hadHead || readHeadOf(directory) === undefined ? found : walk(directory, options);
}

/** A head without anything in it, and no file: the process that begins the trail is about to write it. */
function waitForBeginning(directory: string): void {
  for (let tries = 0; tries < BEGINNING_TRIES; tries += 1) {
    if (readHeadOf(directory) !== undefined || listDayFiles(directory).length > 0) return;
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BEGINNING_WAIT_MS);
  }
}

function walk(directory: string, { key, anchor, complete, onFile }: VerifyOptions): Verification {
  const problems: AuditProblem[] = [];
  let problemCount = 0;
  const report = (problem: AuditProblem) => {
    problemCount += 1;
    if (problems.length < MOST_PROBLEMS) problems.push(problem);
  };
  // Before the files: whatever is written meanwhile lies behind it.
  const head = readHeadOf(directory);
  const files = listDayFiles(directory);
  const isKeptHere = (file: Kept) => isKept(directory, file);
  const check = new ChainCheck({ report, key, head, anchor, isKept: isKeptHere });
  for (const [index, name] of files.entries()) {
    onFile?.(name, index, files.length);
    check.beginFile(name);
    for (const line of linesOfFile(join(directory, name))) check.line(line);
  }
  const { acknowledged, ...end } = check.finish();
  if (complete === true && end.first !== undefined && end.first.seq !== 1)
    report({
      kind: 'removed',
      message: `the chain begins with record ${end.first.seq}; older files were removed`,
    });
  if (head === undefined)
    report({
      kind: 'anchor',
      message:
        'head is missing or damaged: records may be missing at the end. Nothing runs until it is acknowledged: sandbox-run audit acknowledge',
    });
  else if (key !== undefined && head.mac !== headMac(key, head))
    report({
      kind: 'mac',
      message:
        head.mac === undefined
          ? 'head has no MAC: it was written without the key, by a forger or under another policy'
          : 'head has a MAC that was not made with this key',
    });
  // Records behind the head that we knew are all right if the head has moved on meanwhile.
  const now = readHeadOf(directory);
  const remarks = [...acknowledged, ...(now?.seq === head?.seq ? check.remarksOnEnd() : [])];
  if (end.first !== undefined && end.first.seq !== 1)
    remarks.unshift(
      `the chain begins with record ${end.first.seq} in ${end.first.file}: older files were removed`,
    );
  return { problems, problemCount, files: files.length, remarks, ...end };
}

function readHeadOf(directory: string): Head | undefined {
  let fd: number;
  try {
    fd = openSync(headPath(directory), 'r');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
  try {
    // Without the lock: what was read twice alike was not being written.
    for (let tries = 0, last = readHead(fd); ; tries += 1) {
      const head = readHead(fd);
      if (JSON.stringify(head) === JSON.stringify(last) || tries === 100) return head;
      last = head;
    }
  } finally {
    closeSync(fd);
  }
}
