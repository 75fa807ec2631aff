import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { parsedJson } from '../base/parsed-json.ts';
import { count } from '../base/value.ts';
import { type OutputChunk, OutputStream } from '../model/index.ts';
import { MESSAGE_BYTES, type Queue } from './queue.ts';

/** Bytes that wait to be sent, until the command has to wait as well. */
const PENDING_BYTES = 2 * MESSAGE_BYTES;
const RETRY_MS = 200;

/** What stands before the bytes of a message, as one line of JSON. */
const Frame = z.union([
  z.strictObject({
    attempt: count,
    piece: count.describe('0, 1, 2, …: of this attempt'),
    stream: OutputStream,
    at: count.describe('bytes of the stream before these'),
  }),
  z.strictObject({ attempt: count, part: count.describe('of a result that is too long for its record') }),
]);
type Frame = z.output<typeof Frame>;

const NEW_LINE = 0x0a;

/** A message of the stream of output. */
const framed = (frame: Frame, bytes: Uint8Array) =>
  Buffer.concat([Buffer.from(`${JSON.stringify(frame)}\n`), bytes]);

/** What a message is; `undefined`: none that we know. */
export function readFrame(
  message: Uint8Array,
): { readonly frame: Frame; readonly bytes: Uint8Array } | undefined {
  const end = message.indexOf(NEW_LINE);
  const frame = end === -1 ? undefined : Frame.safeParse(parsedJson(message.subarray(0, end)));
  return frame?.success === true ? { frame: frame.data, bytes: message.subarray(end + 1) } : undefined;
}

/** Sends the output of one attempt of a job, in order, each piece once. */
export class OutputSender {
  readonly #queue: Queue;
  readonly #job: string;
  readonly #attempt: number;
  /** Nobody waits for it any more. */
  readonly #isOver: () => boolean;
  readonly #pending: OutputChunk[] = [];
  #pendingBytes = 0;
  #pieces = 0;
  readonly #sent = { stdout: 0, stderr: 0 };
  #sending: Promise<void> | undefined;

  constructor(queue: Queue, job: string, attempt: number, isOver: () => boolean) {
    this.#queue = queue;
    this.#job = job;
    this.#attempt = attempt;
    this.#isOver = isOver;
  }

  /** Takes a piece; settles when there is room for the next one. */
  async send(chunk: OutputChunk): Promise<void> {
    this.#pending.push(chunk);
    this.#pendingBytes += chunk.bytes.length;
    this.#sending ??= this.#sendAll().finally(() => {
      this.#sending = undefined;
    });
    while (this.#pendingBytes > PENDING_BYTES && !this.#isOver()) await this.#sending;
  }

  /** Settles with the number of pieces, once all of them are with the server. */
  async end(): Promise<number> {
    while (this.#sending !== undefined) await this.#sending;
    return this.#pieces;
  }

  /** Sends a result in parts; gives their places in the stream. */
  async sendParts(text: Uint8Array): Promise<readonly number[]> {
    const places: number[] = [];
    for (let at = 0; at < text.length; at += MESSAGE_BYTES) {
      const frame = { attempt: this.#attempt, part: places.length };
      places.push(await this.#publish(frame, text.subarray(at, at + MESSAGE_BYTES)));
    }
    return places;
  }

  async #sendAll(): Promise<void> {
    for (let next = this.#take(); next !== undefined; next = this.#take()) {
      const { stream, bytes } = next;
      const frame = { attempt: this.#attempt, piece: this.#pieces, stream, at: this.#sent[stream] };
      this.#pieces += 1;
      this.#sent[stream] += bytes.length;
      await this.#publish(frame, bytes);
      this.#pendingBytes -= bytes.length;
    }
  }

  /** Joins pending pieces of one stream into one message. */
  #take(): OutputChunk | undefined {
    const [first, ...rest] = this.#pending;
    if (first === undefined) return undefined;
    const different = rest.findIndex(({ stream }) => stream !== first.stream);
    const same = this.#pending.slice(0, different === -1 ? undefined : different + 1);
    const all = Buffer.concat(same.map(({ bytes }) => bytes));
    this.#pending.splice(0, same.length);
    const { stream } = first;
    if (all.length <= MESSAGE_BYTES) return { stream, bytes: all };
    this.#pending.unshift({ stream, bytes: all.subarray(MESSAGE_BYTES) });
    return { stream, bytes: all.subarray(0, MESSAGE_BYTES) };
  }

  /** Until the server has it; by its id a message that comes twice is one. Gives its place in the stream. */
  async #publish(frame: Frame, bytes: Uint8Array): Promise<number> {
    const which = 'part' in frame ? `part.${frame.part}` : `${frame.piece}`;
    const id = `${this.#job}.${this.#attempt}.${which}`;
    const message = framed(frame, bytes);
    for (;;) {
      try {
        return (
          await this.#queue.publisher.publish(this.#queue.names.outputOf(this.#job), message, {
            'Nats-Msg-Id': id,
          })
        ).seq;
      } catch {
        if (this.#isOver()) return 0;
        await delay(RETRY_MS);
      }
    }
  }
}

/** Puts the live output of one job together again. */
export class OutputReader {
  #attempt = 0;
  #pieces = 0;
  #seen = { stdout: 0, stderr: 0 };
  #cut = false;
  #changed: (() => void) | undefined;
  readonly #take: (chunk: OutputChunk) => void;

  constructor(take: (chunk: OutputChunk) => void) {
    this.#take = take;
  }

  /** Whether some of it was not there any more. */
  get cut(): boolean {
    return this.#cut;
  }

  /** A message of the job. What comes twice, and what is of an attempt before, is left out. */
  onMessage(message: Uint8Array): void {
    const read = readFrame(message);
    if (read === undefined || 'part' in read.frame) return;
    const { attempt, piece, stream, at } = read.frame;
    if (attempt < this.#attempt) return;
    if (attempt > this.#attempt) {
      this.#attempt = attempt;
      this.#pieces = 0;
      this.#seen = { stdout: 0, stderr: 0 };
    }
    if (piece < this.#pieces) return;
    this.#cut ||= piece > this.#pieces;
    const missing = at - this.#seen[stream];
    this.#pieces = piece + 1;
    this.#seen[stream] = at + read.bytes.length;
    this.#take(missing > 0 ? { stream, bytes: read.bytes, missing } : { stream, bytes: read.bytes });
    this.#changed?.();
  }

  /** Waits until all pieces of the last attempt are there, or nothing comes for a while: then the output is cut. */
  async all(attempt: number, pieces: number, waitMs: number): Promise<void> {
    const isThere = () => pieces === 0 || (this.#attempt === attempt && this.#pieces >= pieces);
    while (!isThere()) {
      const came = await new Promise<boolean>((resolve) => {
        const timer = setTimeout(() => resolve(false), waitMs);
        this.#changed = () => {
          clearTimeout(timer);
          resolve(true);
        };
      });
      this.#changed = undefined;
      if (came) continue;
      this.#cut = true;
      return;
    }
  }
}
