import { createHash, createHmac } from 'node:crypto';

/** What the first record of a trail follows. */
export const NO_HASH = '0'.repeat(64);

/** What a record gets when it is written. */
interface Envelope {
  readonly seq: number;
  /** Milliseconds since 1970. */
  readonly time: number;
  /** Hash of the record before. */
  readonly prev: string;
}

/** A line of the trail and the hash that the next one refers to. */
interface SealedLine {
  readonly text: string;
  readonly hash: string;
}

/**
 * Makes a line, without its line break. Its hash is the SHA-256 of all bytes of the line before `,"hash":`, the hash of the record before among
 * them; with a key, `mac` is the HMAC-SHA-256 of that hash. So a line can be checked with sed and sha256sum.
 * `fields`: members of a JSON object without its braces.
 */
export function sealRecord(fields: string, envelope: Envelope, key: Uint8Array | undefined): SealedLine {
  const { seq, time, prev } = envelope;
  const body = `{"seq":${seq},"time":"${new Date(time).toISOString()}",${fields},"prev":"${prev}"`;
  const hash = createHash('sha256').update(body).digest('hex');
  const mac = key === undefined ? '' : `,"mac":"${macOf(key, 'record', hash)}"`;
  return { text: `${body},"hash":"${hash}"${mac}}`, hash };
}

/** Authenticates what only the owner of the key may have written. */
export function macOf(key: Uint8Array, purpose: 'record' | 'head', text: string): string {
  return createHmac('sha256', key).update(`sandbox-run audit ${purpose}\n${text}`).digest('hex');
}

/** What a line says about itself. */
export interface OpenedLine {
  readonly seq: number;
  readonly prev: string;
  readonly hash: string;
  readonly mac: string | undefined;
  /** The hash is that of the content. */
  readonly intact: boolean;
}

const END = /,"hash":"([0-9a-f]{64})"(?:,"mac":"([0-9a-f]{64})")?\}$/;
const PREV = /,"prev":"([0-9a-f]{64})"$/;
/** Where a trail was in files, the first record of one said which file it follows. */
const START = /^\{"seq":([1-9]\d{0,15}),"time":"[^"]{24,27}",(?:"follows":(?:null|"[^"\\]{1,64}"),)?"type":"/;
/** Longer than what {@link END} and {@link PREV} match. */
const TAIL_BYTES = 320;

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
    prev,
    hash,
    mac,
    intact: createHash('sha256').update(body).digest('hex') === hash,
  };
}

/** What the `mac` of the head of a trail has to be. */
export function headMac(
  key: Uint8Array,
  { seq, hash }: { readonly seq: number; readonly hash: string },
): string {
  return macOf(key, 'head', `${seq} ${hash}`);
}

/** The complete lines of a text, without their line breaks. */
export function* linesOf(bytes: Buffer): Generator<Buffer> {
  let start = 0;
  for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10, start)) {
    yield bytes.subarray(start, end);
    start = end + 1;
  }
}
