import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { LOOKS_OUTSIDE } from '../../base/words.ts';
import type { AuditRecord, AuditSink, EventRecord, RecordStream } from '../../model/index.ts';
import { encodeRecord } from './encode-record.ts';
import type { FileLock } from './older-files.ts';
import { REMEMBERED_MS, Recognizer } from './patterns.ts';
import { TrailPublisher } from './publisher.ts';
import { parseRecord } from './stored-record.ts';
import { auditFailure, openTrail, type Trail, type TrailLine } from './trail.ts';

/** How long a process that ends keeps publishing to the stream. */
const LAST_PUBLISHING_MS = 1_000;
/** Records written in one transaction at most, so that no other process waits long for the lock. */
const MOST_RECORDS = 256;
const MOST_CHARACTERS = 1024 * 1024;

/** How a trail is opened. */
export interface AuditOptions {
  /** The addon; for a trail in files, as older versions wrote it. */
  readonly lock: FileLock;
  /** See `loadAuditKey`. */
  readonly hmacKey?: Uint8Array | undefined;
  /** Milliseconds since 1970. */
  readonly clock?: () => number;
  /** Days to retain: older records are removed when a day begins, unless they are also streamed. Default: all. */
  readonly keepDays?: number | undefined;
  /** A second destination of the trail. */
  readonly stream?:
    | {
        readonly open: () => Promise<RecordStream>;
        /** A decision counts as written only when most of the servers have it. */
        readonly required: boolean;
      }
    | undefined;
}

interface Entry {
  readonly fields: string;
  /** The caller that appended it waits for the disk. */
  readonly durable: boolean;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** At most this many records before our first one are read, so that patterns span processes. */
const MOST_LOOK_RECORDS = 4_000;
/** Waits so that the command starts first, and perhaps the next one too. */
const DELAY_MS = 50;

/**
 * Looks for patterns in records of this process and of others, after they were written. Raises events through `append`; an
 * event that cannot be written is lost, and the next append reports why.
 */
class TrailObserver {
  private readonly append: (record: AuditRecord) => Promise<void>;
  private readonly clock: () => number;
  private readonly recognizer = new Recognizer();
  private readonly own: { readonly first: number; readonly end: number }[] = [];
  private trail: Trail | undefined;
  /** Number of the last record that was checked for being conspicuous. */
  private ahead = 0;
  /** The recognizer knows the records up to this number, or does not need them; `undefined`: nothing was conspicuous yet. */
  private shown: number | undefined;
  private finished = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(append: (record: AuditRecord) => Promise<void>, clock: () => number) {
    this.append = append;
    this.clock = clock;
  }

  wrote(trail: Trail, first: number, count: number): void {
    this.own.push({ first, end: first + count });
    if (this.trail === undefined) this.ahead = first - 1;
    this.trail = trail;
    if (!this.finished) this.timer ??= setTimeout(() => this.look(trail), DELAY_MS);
  }

  /** Checks the records that are left; later ones are not checked. */
  finish(): void {
    this.finished = true;
    if (this.timer === undefined) return;
    clearTimeout(this.timer);
    if (this.trail !== undefined) this.look(this.trail);
  }

  private look(trail: Trail): void {
    this.timer = undefined;
    const since = this.clock() - REMEMBERED_MS;
    try {
      this.shown ??= this.beforeConspicuous(trail, since);
      if (this.shown === undefined) return;
      for (const row of trail.lines(this.shown)) {
        this.lookAt(row, since);
        this.shown = row.seq;
      }
    } catch {
      // The trail was removed while it was open: the next append reports it.
    }
  }

  /** The number after which the recognizer must read; `undefined`: no record of ours can raise an event yet, so none must be read. */
  private beforeConspicuous(trail: Trail, since: number): number | undefined {
    for (const { seq, line } of trail.lines(this.ahead)) {
      if (this.isOwn(seq) && isConspicuous(line))
        return trail.lastBefore(since, Math.max(0, seq - MOST_LOOK_RECORDS), seq - 1);
      this.ahead = seq;
    }
    return undefined;
  }

  /** Whether this process wrote a record. Call it with ascending numbers. */
  private isOwn(seq: number): boolean {
    const { own } = this;
    while (own[0] !== undefined && own[0].end <= seq) own.shift();
    return own[0] !== undefined && own[0].first <= seq;
  }

  private lookAt({ seq, line }: TrailLine, since: number): void {
    const ours = this.isOwn(seq);
    if (isBefore(line, since) || isNothing(line, ours)) return;
    const record = parseRecord(line);
    if (record === undefined) return;
    for (const event of this.recognizer.show(record, ours)) this.append(event).catch(() => {});
  }
}

/** The start of a record, which shows its type and time without parsing. */
const startOf = (line: string) => line.slice(0, 160);

/** Parts of a record that make a launched command count for a pattern: unusual options, and reads out of its reach. */
const COUNTING = [',"flags":["', `,"code":"${LOOKS_OUTSIDE}",`];
const counts = (line: string) => COUNTING.some((part) => line.includes(part));

/**
 * Whether a pattern may end with a decision: a person was asked, nothing was launched, a file is run, or it counts. Quotes in
 * texts of a record are escaped, so only fields match.
 */
function isConspicuous(line: string): boolean {
  if (!startOf(line).includes('"type":"decision"')) return false;
  const isLaunched = line.includes(',"outcome":"launch",') || line.includes(',"outcome":"allow",');
  return !isLaunched || line.includes(',"approval":{') || line.includes(',"executes":["') || counts(line);
}

/**
 * Recognizes, without parsing, records that no pattern needs: results, and allowed commands of other processes that wrote
 * nothing. Quotes in texts of a record are escaped, so only fields match.
 */
function isNothing(line: string, isOwn: boolean): boolean {
  if (startOf(line).includes('"type":"result"')) return true;
  if (isOwn || counts(line)) return false;
  return line.includes(',"verdict":"allow","risk":') && !line.includes(',"files":{"writes":["');
}

function isBefore(line: string, since: number): boolean {
  const time = /"time":"([^"]*)"/.exec(startOf(line))?.[1];
  return time !== undefined && Date.parse(time) < since;
}

/**
 * The audit trail in a directory, which must exist and be ours by the time of the first record (`ensureStateDirectory`).
 * Opens nothing before that. Any number of processes may write to it.
 */
export class AuditTrail implements AuditSink {
  readonly #directory: string;
  readonly #stream: AuditOptions['stream'];
  readonly #options: AuditOptions;
  readonly #clock: () => number;
  readonly #observer: TrailObserver;
  readonly #publisher: TrailPublisher | undefined;
  readonly #queue: Entry[] = [];
  readonly #pending = new Set<Promise<unknown>>();
  #trail: Promise<Trail> | undefined;
  #draining: Promise<void> | undefined;
  #closed = false;
  #hasAppended = false;

  constructor(directory: string, options: AuditOptions) {
    const { clock = Date.now, stream } = options;
    this.#directory = directory;
    this.#options = options;
    this.#stream = stream;
    this.#clock = clock;
    this.#observer = new TrailObserver((record) => this.#enqueue(record), clock);
    this.#publisher = stream && new TrailPublisher(directory, () => this.#opened(), stream.open);
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

  /**
   * Goes on after a break at the end of the trail: a record says what is missing. Settles with that record when it is on
   * the disk, or with nothing where the end is whole.
   */
  async acknowledge(principal: string): Promise<EventRecord | undefined> {
    const trail = await this.#opened();
    const record = trail.acknowledge(principal, this.#writing());
    await trail.durable();
    return record;
  }

  /** Waits for what is being written; nothing can be appended any more. */
  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
    this.#observer.finish();
    while (this.#pending.size > 0) await Promise.allSettled(this.#pending);
    await this.#draining;
    if (this.#publisher !== undefined) {
      // Publishes the observer's events, and records that could not be published before.
      if (this.#hasAppended) this.#publisher.publish().catch(() => {});
      await this.#publisher.close(LAST_PUBLISHING_MS);
    }
    await this.#trail?.then((trail) => trail.close()).catch(() => {});
  }

  /** Waits only for a decision that must be published before it counts; other failures are left to the next publication. */
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

  /** What cannot be opened is opened again with the next record. */
  #opened(): Promise<Trail> {
    const { lock, hmacKey: key } = this.#options;
    this.#trail ??= openTrail(this.#directory, { lock, key }).catch((error: unknown) => {
      this.#trail = undefined;
      throw error;
    });
    return this.#trail;
  }

  #writing() {
    const { hmacKey: key, keepDays } = this.#options;
    // What the stream does not have yet would be lost.
    return { key, clock: this.#clock, keepDays: this.#stream === undefined ? keepDays : undefined };
  }

  async #drain(): Promise<void> {
    while (this.#queue.length > 0) {
      try {
        const trail = await this.#opened();
        this.#write(trail, this.#takeSome());
      } catch (error) {
        for (const entry of this.#queue.splice(0)) entry.reject(error);
        break;
      }
      // Others have their turn, in this process and for the lock.
      if (this.#queue.length > 0) await turn();
    }
    this.#draining = undefined;
  }

  #write(trail: Trail, entries: readonly Entry[]): void {
    try {
      const records = entries.map(({ fields }) => fields);
      this.#observer.wrote(trail, trail.append(records, this.#writing()), entries.length);
    } catch (error) {
      for (const { reject } of entries) reject(error);
      return;
    }
    const waiting = entries.filter(({ durable }) => durable);
    for (const entry of entries) if (!entry.durable) entry.resolve();
    if (waiting.length === 0) return;
    trail.durable().then(
      () => waiting.forEach(({ resolve }) => void resolve()),
      (error: unknown) => waiting.forEach(({ reject }) => void reject(error)),
    );
  }

  #takeSome(): readonly Entry[] {
    let characters = 0;
    const after = this.#queue.findIndex(({ fields }, index) => {
      characters += fields.length;
      return index > 0 && (index >= MOST_RECORDS || characters > MOST_CHARACTERS);
    });
    return this.#queue.splice(0, after === -1 ? this.#queue.length : after);
  }
}

/** Opens the audit trail in a directory. */
export const openAudit = (directory: string, options: AuditOptions): AuditTrail =>
  new AuditTrail(directory, options);

/** The next turn of the event loop. */
function turn(): Promise<void> {
  return new Promise((done) => setImmediate(done));
}
