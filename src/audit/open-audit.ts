import { SandboxError } from '../errors/sandbox-error.ts';
import type { AuditRecord, AuditSink, EventRecord } from '../model/audit-record.ts';
import type { RecordStream } from '../model/record-stream.ts';
import { auditFailure } from './day-file.ts';
import { encodeRecord } from './encode-record.ts';
import { TrailObserver } from './observer.ts';
import { TrailPublisher } from './publisher.ts';
import { type Acknowledged, type FileLock, TrailWriter, type Written } from './trail-writer.ts';

/** How long another process may hold the lock before we give up. It holds it for well under a millisecond. */
const LOCK_TIMEOUT_MS = 5_000;
/** What a process that ends gives to the stream, which it need not wait for. */
const LAST_PUBLISHING_MS = 1_000;
/** Records written at once, so that no process waits long for the lock. */
const MOST_RECORDS = 256;
const MOST_CHARACTERS = 1024 * 1024;

/** How a trail is opened. */
export interface AuditOptions {
  /** The addon. */
  readonly lock: FileLock;
  /** See `loadAuditKey`. */
  readonly hmacKey?: Uint8Array | undefined;
  /** Milliseconds since 1970. */
  readonly clock?: () => number;
  /** Where the trail goes, too. */
  readonly stream?:
    | {
        readonly open: () => Promise<RecordStream>;
        /** A decision counts as written only when most of the servers have it. */
        readonly required: boolean;
      }
    | undefined;
}

/** An audit trail that is written to. */
export interface AuditTrail extends AuditSink {
  /**
   * Goes on after a break at the end of the trail: what is torn is kept in a file beside it, and a record says what is
   * missing. Settles with that record when it is on the disk, or with nothing where the end is whole.
   */
  acknowledge(principal: string): Promise<EventRecord | undefined>;
  /** Waits for what is being written; nothing can be appended any more. */
  close(): Promise<void>;
}

interface Entry {
  readonly fields: string;
  /** The caller that appended it waits for the disk. */
  readonly durable: boolean;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * The audit trail in a directory, which must exist and be ours by the time of the first record (`ensureStateDirectory`).
 * Opens nothing before that. Any number of processes may write to it.
 */
export function openAudit(directory: string, options: AuditOptions): AuditTrail {
  return new Trail(directory, options);
}

class Trail implements AuditTrail {
  readonly #directory: string;
  readonly #stream: AuditOptions['stream'];
  readonly #writer: TrailWriter;
  readonly #observer: TrailObserver;
  readonly #publisher: TrailPublisher | undefined;
  readonly #queue: Entry[] = [];
  readonly #pending = new Set<Promise<unknown>>();
  #draining: Promise<void> | undefined;
  #closed = false;
  #hasAppended = false;

  constructor(directory: string, { lock, hmacKey: key, clock = Date.now, stream }: AuditOptions) {
    this.#directory = directory;
    this.#stream = stream;
    this.#writer = new TrailWriter(directory, { lock, key, clock });
    this.#observer = new TrailObserver(directory, (record) => this.#enqueue(record), clock);
    this.#publisher = stream && new TrailPublisher(directory, stream.open);
  }

  async append(record: AuditRecord): Promise<void> {
    if (this.#closed) throw new SandboxError('audit.failed', `the audit trail ${this.#directory} was closed`);
    try {
      await this.#enqueue(record);
      this.#hasAppended = true;
      await this.#publish(record);
    } catch (error) {
      throw auditFailure(this.#directory, error);
    }
  }

  async acknowledge(principal: string): Promise<EventRecord | undefined> {
    await this.#takeLock();
    let done: Acknowledged | undefined;
    try {
      done = this.#writer.acknowledge(principal);
    } finally {
      this.#writer.unlock();
    }
    await done?.written.file.durable();
    return done?.record;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
    this.#observer.finish();
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
    await this.#draining;
    if (this.#publisher !== undefined) {
      // What the observer raised, and what could not be published before.
      if (this.#hasAppended) this.#publisher.publish().catch(() => {});
      await this.#publisher.close(LAST_PUBLISHING_MS);
    }
    this.#writer.close();
  }

  /** Whoever need not wait leaves what fails to the next publication. */
  async #publish(record: AuditRecord): Promise<void> {
    const published = this.#publisher?.publish();
    if (this.#stream?.required === true && record.type === 'decision') await published;
    else published?.catch(() => {});
  }

  /** Records that arrive in one turn of the event loop are written together. */
  #enqueue(record: AuditRecord): Promise<void> {
    const fields = encodeRecord(record);
    const appended = new Promise<void>((resolve, reject) => {
      this.#queue.push({ fields, durable: record.type === 'decision', resolve, reject });
    });
    this.#draining ??= turn().then(() => this.#drain());
    this.#pending.add(appended);
    const forget = () => this.#pending.delete(appended);
    appended.then(forget, forget);
    return appended;
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      try {
        await this.#takeLock();
      } catch (error) {
        for (const entry of this.#queue.splice(0)) entry.reject(error);
        break;
      }
      this.#writeSome();
      // Others have their turn, in this process and for the lock.
      if (this.#queue.length > 0) await turn();
    }
    this.#draining = undefined;
  }

  async #takeLock(): Promise<void> {
    const end = performance.now() + LOCK_TIMEOUT_MS;
    for (let wait = 0; !this.#writer.lock(); wait = 1) {
      if (performance.now() > end)
        throw auditFailure(
          this.#directory,
          new Error(`another process keeps it locked for ${LOCK_TIMEOUT_MS / 1000} s (fuser shows it)`),
        );
      await (wait === 0 ? turn() : new Promise<void>((done) => setTimeout(done, wait)));
    }
  }

  #writeSome(): void {
    const entries = this.#takeSome();
    try {
      let written: Written;
      try {
        written = this.#writer.write(entries.map(({ fields }) => fields));
      } finally {
        this.#writer.unlock();
      }
      this.#settle(entries, written);
    } catch (error) {
      for (const entry of entries) entry.reject(error);
    }
  }

  #takeSome(): readonly Entry[] {
    let characters = 0;
    const after = this.#queue.findIndex(({ fields }, index) => {
      characters += fields.length;
      return index > 0 && (index >= MOST_RECORDS || characters > MOST_CHARACTERS);
    });
    return this.#queue.splice(0, after === -1 ? this.#queue.length : after);
  }

  #settle(entries: readonly Entry[], written: Written): void {
    this.#observer.wrote(written, entries.length);
    const waiting = entries.filter(({ durable }) => durable);
    for (const entry of entries) if (!entry.durable) entry.resolve();
    if (waiting.length === 0) return;
    written.file.durable().then(
      () => waiting.forEach(({ resolve }) => void resolve()),
      (error: unknown) => waiting.forEach(({ reject }) => void reject(error)),
    );
  }
}

/** The next turn of the event loop. */
function turn(): Promise<void> {
  return new Promise((done) => setImmediate(done));
}
