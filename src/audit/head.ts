import { readSync, writeSync } from 'node:fs';
import { macOf } from './record-line.ts';

/** Where the trail ends: its last record, the file that has it, and how long that file is. */
export interface Position {
  readonly seq: number;
  readonly hash: string;
  /** Name of a day's file. */
  readonly file: string;
  readonly size: number;
}

/** What the file `head` says. */
export interface Head extends Position {
  readonly mac: string | undefined;
}

/** The file has always this length: it is rewritten in place by one write, so nothing has to be allocated for it. */
const HEAD_BYTES = 320;
const HEAD =
  /^\{"seq":(\d{1,16}),"hash":"([0-9a-f]{64})","file":"(\d{4}-\d\d-\d\d\.jsonl)","size":(\d{1,16})(?:,"mac":"([0-9a-f]{64})")?\} *\n$/;

/** `undefined`: it is empty, or it is no head. */
export function readHead(fd: number): Head | undefined {
  const buffer = Buffer.alloc(HEAD_BYTES + 1);
  const text = buffer.toString('latin1', 0, readSync(fd, buffer, 0, buffer.length, 0));
  const [, seq, hash, file, size, mac] = HEAD.exec(text) ?? [];
  if (hash === undefined || file === undefined) return undefined;
  return { seq: Number(seq), hash, file, size: Number(size), mac };
}

/** Rewrites it. The caller has the lock. */
export function writeHead(fd: number, position: Position, key: Uint8Array | undefined): void {
  const mac = key === undefined ? '' : `,"mac":"${headMac(key, position)}"`;
  const text = `${headBody(position)}${mac}}`;
  const written = writeSync(fd, `${text.padEnd(HEAD_BYTES - 1)}\n`, 0, 'latin1');
  if (written !== HEAD_BYTES) throw new Error('the anchor was written in part');
}

/** What the head's `mac` has to be. */
export function headMac(key: Uint8Array, position: Position): string {
  return macOf(key, 'head', headBody(position));
}

function headBody({ seq, hash, file, size }: Position): string {
  return `{"seq":${seq},"hash":"${hash}","file":"${file}","size":${size}`;
}
