import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ObjectInfo, ObjectStore } from '@nats-io/obj';
import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { natsFailure, patiently, whereInstalled } from '../../gate/nats/index.ts';
import { BLOBS_KEPT, type Queue } from '../queue.ts';

/** A content that is known to be in the store is not asked about again for as long; a store keeps it for days. */
const KNOWN_MS = 60_000;
/** A content of which nothing came for as long is read again: a server began anew, or another one replaced it meanwhile. */
const STALLED_MS = 5000;
const READS = 4;

/** Contents by their SHA-256, in the object store of a queue: what is there is not sent again. */
export class Blobs {
  readonly #queue: Queue;
  readonly #store: ObjectStore;
  /** When they were known to be there. */
  readonly #there = new Map<string, number>();
  /** Uploads in progress, by digest: a second caller waits for the first one's upload. */
  readonly #sending = new Map<string, Promise<boolean>>();

  private constructor(queue: Queue, store: ObjectStore) {
    this.#queue = queue;
    this.#store = store;
  }

  static async open(queue: Queue): Promise<Blobs> {
    const { Objm } = await whereInstalled(() => import('@nats-io/obj'));
    try {
      return new Blobs(queue, await patiently(() => new Objm(queue.js).open(queue.names.blobs)));
    } catch (error) {
      throw natsFailure(error, queue.connection.getServer());
    }
  }

  /** Sends a content, if it is not there. Gives its digest. */
  async put(content: Uint8Array): Promise<string> {
    const digest = createHash('sha256').update(content).digest('hex');
    await this.putAs(digest, () => Readable.from([content]));
    return digest;
  }

  /**
   * Sends what `open` reads, if no content of this digest is there. True: it was sent.
   * @throws {SandboxError} `file.unusable`: what was read is another content; nothing of it is kept.
   */
  async putAs(digest: string, open: () => Readable): Promise<boolean> {
    const knownAt = this.#there.get(digest) ?? Number.NEGATIVE_INFINITY;
    if (performance.now() - knownAt < KNOWN_MS) return false;
    const sending = this.#sending.get(digest);
    if (sending !== undefined) {
      await sending;
      return false;
    }
    const sent = this.#putNow(digest, open).finally(() => this.#sending.delete(digest));
    this.#sending.set(digest, sent);
    const isSent = await sent;
    this.#there.set(digest, performance.now());
    return isSent;
  }

  async #putNow(digest: string, open: () => Readable): Promise<boolean> {
    try {
      return await patiently(async () => {
        const known = await this.#store.info(digest);
        const age = known === null ? Number.POSITIVE_INFINITY : Date.now() - Date.parse(known.mtime);
        // Where another content has its name, nobody would ever get this one.
        if (known !== null && isOf(known, digest) && age <= BLOBS_KEPT / 2) return false;
        const content = open();
        const checked = content.compose(whileItIs(digest)) as unknown as Readable;
        try {
          await this.#store.put({ name: digest }, Readable.toWeb(checked) as never);
        } finally {
          // Where sending stopped in the middle nobody reads the rest, and its file stays open.
          content.destroy();
        }
        return true;
      });
    } catch (error) {
      throw natsFailure(error, this.#queue.connection.getServer());
    }
  }

  /**
   * A content, checked against its digest before the last of it is given, and against its size before each piece.
   * @throws {SandboxError} `fleet.unknown`: it is not there; `file.unusable`: it is not what its name says.
   */
  async *get(digest: string, size: number): AsyncGenerator<Uint8Array> {
    const hash = createHash('sha256');
    let bytes = 0;
    for (let reads = 1; bytes <= size; reads += 1) {
      let at = 0;
      try {
        for await (const piece of this.#pieces(digest)) {
          // Bytes that an earlier attempt delivered are skipped.
          const fresh = piece.subarray(Math.max(0, bytes - at));
          at += piece.length;
          if (fresh.length === 0) continue;
          bytes += fresh.length;
          if (bytes > size) break;
          hash.update(fresh);
          yield fresh;
        }
        break;
      } catch (error) {
        if (!(error instanceof Stalled)) throw error;
        if (reads === READS) throw natsFailure(error, this.#queue.connection.getServer());
      }
    }
    if (bytes !== size || hash.digest('hex') !== digest) throw anotherContent(digest);
  }

  /** A whole content of at most `most` bytes. @throws {SandboxError} as {@link get}. */
  async read(digest: string, most: number): Promise<Buffer> {
    const found = await this.#asked(() => this.#store.info(digest));
    if (found === null) throw unknown(digest);
    if (found.size > most)
      throw new SandboxError(
        'file.unusable',
        `the content ${digest.slice(0, 12)} has ${found.size} bytes, and at most ${most} are taken`,
      );
    const pieces: Uint8Array[] = [];
    for await (const piece of this.get(digest, found.size)) pieces.push(piece);
    return Buffer.concat(pieces);
  }

  /** As they come. @throws {Stalled} nothing comes any more. */
  async *#pieces(digest: string): AsyncGenerator<Uint8Array> {
    const found = await this.#asked(() => this.#store.get(digest));
    if (found === null) throw unknown(digest);
    // Told by the stream, too.
    found.error.catch(() => {});
    const reader = found.data.getReader();
    try {
      for (;;) {
        const { done, value } = await inTime(reader.read());
        if (done) return;
        yield value;
      }
    } catch (error) {
      if (error instanceof Error && /corrupt/.test(error.message)) throw anotherContent(digest);
      throw error;
    } finally {
      void reader.cancel().catch(() => {});
    }
  }

  /** What the store says, once it can. */
  async #asked<T>(work: () => Promise<T | null>): Promise<T | null> {
    try {
      return await patiently(work);
    } catch (error) {
      if (/not found/.test(errorMessage(error))) return null;
      throw natsFailure(error, this.#queue.connection.getServer());
    }
  }
}

/** Whether the digest that the sender stated for an object matches its name. */
const isOf = ({ digest }: ObjectInfo, name: string) =>
  Buffer.from(digest.replace(/^SHA-256=/, ''), 'base64url').toString('hex') === name;

/** Hands pieces on, and ends with an error if they are not what their name says: then nothing is kept of them. */
const whileItIs = (digest: string) =>
  async function* (pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const hash = createHash('sha256');
    for await (const piece of pieces) {
      hash.update(piece);
      yield piece;
    }
    if (hash.digest('hex') !== digest)
      throw new SandboxError('file.unusable', 'a file changed while it was sent; submit the workspace again');
  };

class Stalled extends Error {}

async function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Stalled('nothing comes any more')), STALLED_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

function anotherContent(digest: string): SandboxError {
  return new SandboxError(
    'file.unusable',
    `the content ${digest.slice(0, 12)} in the object store is not what its name says; submit the workspace again`,
  );
}

function unknown(digest: string): SandboxError {
  return new SandboxError(
    'fleet.unknown',
    `the content ${digest.slice(0, 12)} is not in the object store (any more); submit the workspace again`,
  );
}
