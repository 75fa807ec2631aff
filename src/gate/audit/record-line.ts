import { createHash, createHmac } from 'node:crypto';
import { readSync, writeSync } from 'node:fs';

/** What the first record of a trail follows. */
export const NO_HASH = '0'.repeat(64);

/** What a record gets when it is written. */
interface Envelope {
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly time: number;
  /** The first record of a file says which file goes before; `null`: none does. `undefined`: it is not the first. */
  readonly follows: string | null | undefined;
  /** Hash of the record before. */
  readonly prev: string;
}

/** A line of the trail and the hash that the next one refers to. */
interface SealedLine {
  readonly text: string;
  readonly hash: string;
}

/**
 * Makes a line. Its hash is the SHA-256 of all bytes of the line before `,"hash":`, the hash of the record before among
 * them; with a key, `mac` is the HMAC-SHA-256 of that hash. So a line can be checked with sed and sha256sum.
 * `fields`: members of a JSON object without its braces.
 */
export function sealRecord(fields: string, envelope: Envelope, key: Uint8Array | undefined): SealedLine {
  const { seq, time, follows, prev } = envelope;
  const first = follows === undefined ? '' : `"follows":${JSON.stringify(follows)},`;
  const body = `{"seq":${seq},"time":"${new Date(time).toISOString()}",${first}${fields},"prev":"${prev}"`;
  const hash = createHash('sha256').update(body).digest('hex');
  const mac = key === undefined ? '' : `,"mac":"${macOf(key, 'record', hash)}"`;
  return { text: `${body},"hash":"${hash}"${mac}}\n`, hash };
}

/** Authenticates what only the owner of the key may have written. */
export function macOf(key: Uint8Array, purpose: 'record' | 'head', text: string): string {
  return createHmac('sha256', key).update(`sandbox-run audit ${purpose}\n${text}`).digest('hex');
}

/** What a line says about itself. */
export interface OpenedLine {
  readonly seq: number;
  readonly follows: string | null | undefined;
  readonly prev: string;
  readonly hash: string;
  readonly mac: string | undefined;
  /** The hash is that of the content. */
  readonly intact: boolean;
}

const END = /,"hash":"([0-9a-f]{64})"(?:,"mac":"([0-9a-f]{64})")?\}$/;
const PREV = /,"prev":"([0-9a-f]{64})"$/;
const START = /^\{"seq":([1-9]\d{0,15}),"time":"[^"]{24,27}",(?:"follows":(null|"[^"\\]{1,64}"),)?"type":"/;
/** Longer than what {@link END} and {@link PREV} match. */
export const TAIL_BYTES = 320;

/** The hash of the record that these bytes end with, its line break among them; `undefined`: they end with no record. */
export function closingHash(bytes: Buffer): string | undefined {
  return bytes.at(-1) === 10 ? END.exec(bytes.toString('latin1', 0, bytes.length - 1))?.[1] : undefined;
}

/** Reads the envelope of a line (without its line break); `undefined`: it is no record. */
export function openLine(line: Buffer): OpenedLine | undefined {
  const start = START.exec(line.toString('latin1', 0, 160));
  const tail = line.toString('latin1', Math.max(0, line.length - TAIL_BYTES));
  const end = END.exec(tail);
  if (start === null || end === null) return undefined;
  const prev = PREV.exec(tail.slice(0, end.index))?.[1];
  const [, hash, mac] = end;
  if (prev === undefined || hash === undefined) return undefined;
  const body = line.subarray(0, line.length - (tail.length - end.index));
  return {
    seq: Number(start[1]),
    follows: start[2] === undefined ? undefined : start[2] === 'null' ? null : start[2].slice(1, -1),
    prev,
    hash,
    mac,
    intact: createHash('sha256').update(body).digest('hex') === hash,
  };
}

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
