import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { ObjectStore } from '@nats-io/obj';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { natsFailure, whereInstalled } from '../../nats/connection.ts';
import { errorMessage } from '../../util/error-message.ts';
import { BLOBS_KEPT, type Queue } from '../queue.ts';

/** Contents by their SHA-256, in the object store of a queue: what is there is not sent again. */
export class Blobs {
  readonly #queue: Queue;
  readonly #store: ObjectStore;
  /** Known to be there. */
  readonly #there = new Set<string>();

  private constructor(queue: Queue, store: ObjectStore) {
    this.#queue = queue;
    this.#store = store;
  }

  static async open(queue: Queue): Promise<Blobs> {
    const { Objm } = await whereInstalled(() => import('@nats-io/obj'));
    try {
      return new Blobs(queue, await new Objm(queue.js).open(queue.names.blobs));
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

  /** Sends what `open` reads, if no content of this digest is there. True: it was sent. */
  async putAs(digest: string, open: () => Readable): Promise<boolean> {
    if (this.#there.has(digest)) return false;
    try {
      const known = await this.#store.info(digest);
      const age = known === null ? Number.POSITIVE_INFINITY : Date.now() - Date.parse(known.mtime);
      if (age > BLOBS_KEPT / 2) {
        await this.#store.put({ name: digest }, Readable.toWeb(open()) as never);
        this.#there.add(digest);
        return true;
      }
      this.#there.add(digest);
      return false;
    } catch (error) {
      throw natsFailure(error, this.#queue.connection.getServer());
    }
  }

  /**
   * A content, checked against its digest before the last of it is given, and against its size before each piece.
   * @throws {SandboxError} `fleet.unknown`: it is not there; `file.unusable`: it is not what its name says.
   */
  async *get(digest: string, size: number): AsyncGenerator<Uint8Array> {
    const found = await this.#found(digest);
    const hash = createHash('sha256');
    let bytes = 0;
    for await (const piece of found.data as unknown as AsyncIterable<Uint8Array>) {
      bytes += piece.length;
      if (bytes > size) break;
      hash.update(piece);
      yield piece;
    }
    if (bytes !== size || hash.digest('hex') !== digest)
      throw new SandboxError(
        'file.unusable',
        `the content ${digest.slice(0, 12)} in the object store is not what its name says; submit the workspace again`,
      );
  }

  /** A whole content of at most `most` bytes. @throws {SandboxError} as {@link get}. */
  async read(digest: string, most: number): Promise<Buffer> {
    const found = await this.#store.info(digest).catch(() => null);
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

  async #found(digest: string) {
    try {
      const found = await this.#store.get(digest);
      if (found !== null) return found;
    } catch (error) {
      if (!/not found/.test(errorMessage(error)))
        throw natsFailure(error, this.#queue.connection.getServer());
    }
    throw unknown(digest);
  }
}

function unknown(digest: string): SandboxError {
  return new SandboxError(
    'fleet.unknown',
    `the content ${digest.slice(0, 12)} is not in the object store (any more); submit the workspace again`,
  );
}
