import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { LOOKS_OUTSIDE } from '../../base/words.ts';
import type { AuditRecord, AuditSink, EventRecord, RecordStream } from '../../model/index.ts';
import { auditFailure } from './day-file.ts';
import { encodeRecord } from './encode-record.ts';
import { REMEMBERED_MS, Recognizer } from './patterns.ts';
import { TrailPublisher } from './publisher.ts';
import { parseRecord } from './stored-record.ts';
import { type Place, somewhatBefore, TrailCursor } from './trail-files.ts';
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
  /** Older days are removed when a new one begins, unless the trail goes elsewhere, too. Default: none is. */
  readonly keepDays?: number | undefined;
  /** Where the trail goes, too. */
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

/**
 * How much of the trail before our first record is looked at, so that a process knows what others did before it: what is
 * remembered, in steps that double. So long that no burst pushes it out of sight at once, and is read in a few milliseconds.
 */
const FIRST_LOOK_BYTES = 128 * 1024;
const MOST_LOOK_BYTES = 4 * 1024 * 1024;
/** The command shall start first, and one after it perhaps as well. */
const DELAY_MS = 50;

/**
 * Looks for patterns in what was written, by us and by others, after it was written. Raises events through `append`; one that
 * cannot be written is lost, the next append says why.
 */
class TrailObserver {
  private readonly directory: string;
  private readonly append: (record: AuditRecord) => Promise<void>;
  private readonly clock: () => number;
  private readonly recognizer = new Recognizer();
  private readonly own: { readonly first: number; readonly end: number }[] = [];
  private ahead: TrailCursor | undefined;
  private cursor: TrailCursor | undefined;
  private finished = false;
  private timer: NodeJS.Timeout | undefined;

  constructor(directory: string, append: (record: AuditRecord) => Promise<void>, clock: () => number) {
    this.directory = directory;
    this.append = append;
    this.clock = clock;
  }

  wrote({ file, first, offset }: Written, count: number): void {
    this.own.push({ first, end: first + count });
    this.ahead ??= new TrailCursor(this.directory, { name: file.name, offset });
    if (!this.finished) this.timer ??= setTimeout(() => this.look(), DELAY_MS);
  }

  /** Looks at what was not looked at yet, and at nothing from then on. */
  finish(): void {
    this.finished = true;
    if (this.timer === undefined) return;
    clearTimeout(this.timer);
    this.look();
  }

  private look(): void {
    this.timer = undefined;
    const since = this.clock() - REMEMBERED_MS;
    try {
      this.cursor ??= this.cursorBeforeConspicuous(since);
      for (const line of this.cursor?.lines() ?? []) this.lookAt(line, since);
    } catch {
      // The trail was removed while it was open: the next append reports it.
    }
  }

  /** As long as nothing that we wrote can raise an event, what was before it does not have to be known. */
  private cursorBeforeConspicuous(since: number): TrailCursor | undefined {
    if (this.ahead === undefined) return undefined;
    let { place } = this.ahead;
    for (const line of this.ahead.lines()) {
      const start = startOf(line);
      if (this.isOwn(start) && isConspicuous(line, start))
        return new TrailCursor(this.directory, placeBefore(this.directory, place, since));
      ({ place } = this.ahead);
    }
    return undefined;
  }

  /** Asked in the order of the trail. */
  private isOwn(start: string): boolean {
    const { own } = this;
    const seq = Number(/^\{"seq":(\d+)/.exec(start)?.[1]);
    while (own[0] !== undefined && own[0].end <= seq) own.shift();
    return own[0] !== undefined && own[0].first <= seq;
  }

  private lookAt(line: Buffer, since: number): void {
    const start = startOf(line);
    const ours = this.isOwn(start);
    if (isBefore(start, since) || isNothing(line, start, ours)) return;
    const record = parseRecord(line);
    if (record === undefined) return;
    for (const event of this.recognizer.show(record, ours)) this.append(event).catch(() => {});
  }
}

/** A place before `begin` where a record is from before `since`. */
function placeBefore(directory: string, begin: Place, since: number): Place {
  let place = begin;
  for (let bytes = FIRST_LOOK_BYTES; bytes <= MOST_LOOK_BYTES; bytes *= 2) {
    const earlier = somewhatBefore(directory, begin, bytes);
    if (earlier.name === place.name && earlier.offset === place.offset) break;
    place = earlier;
    if (beginsBefore(directory, place, since)) break;
  }
  return place;
}

function beginsBefore(directory: string, place: Place, since: number): boolean {
  let lines = 0;
  for (const line of new TrailCursor(directory, place).lines()) {
    lines += 1;
    // The first one is the rest of a line.
    if (lines === 2) return isBefore(startOf(line), since);
  }
  return false;
}

/** What tells records apart without parsing them. */
function startOf(line: Buffer): string {
  return line.toString('latin1', 0, 160);
}

/** What was launched counts by them: unusual options, and a look outside of what it may read. */
const COUNTING = [',"flags":["', `,"code":"${LOOKS_OUTSIDE}",`];
const counts = (line: Buffer) => COUNTING.some((part) => line.includes(part));

/** A pattern may end with it: a person was asked, it was not launched, it runs a file, or counts. In a text, quotes are escaped. */
function isConspicuous(line: Buffer, start: string): boolean {
  if (!start.includes('"type":"decision"')) return false;
  const isLaunched = line.includes(',"outcome":"launch",') || line.includes(',"outcome":"allow",');
  return !isLaunched || line.includes(',"approval":{') || line.includes(',"executes":["') || counts(line);
}

/**
 * Records that no pattern needs, recognized without parsing them: results, and what others were allowed and wrote nothing.
 * In a text of a record the quotes would be escaped.
 */
function isNothing(line: Buffer, start: string, isOwn: boolean): boolean {
  if (start.includes('"type":"result"')) return true;
  if (isOwn || counts(line)) return false;
  return line.includes(',"verdict":"allow","risk":') && !line.includes(',"files":{"writes":["');
}

function isBefore(start: string, since: number): boolean {
  const time = /"time":"([^"]*)"/.exec(start)?.[1];
  return time !== undefined && Date.parse(time) < since;
}

/**
 * The audit trail in a directory, which must exist and be ours by the time of the first record (`ensureStateDirectory`).
 * Opens nothing before that. Any number of processes may write to it.
 */
export class AuditTrail implements AuditSink {
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

  constructor(directory: string, { lock, hmacKey: key, clock = Date.now, keepDays, stream }: AuditOptions) {
    this.#directory = directory;
    this.#stream = stream;
    this.#writer = new TrailWriter(directory, {
      ...{ lock, key, clock },
      // What the stream does not have yet would be lost.
      keepDays: stream === undefined ? keepDays : undefined,
    });
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

  /**
   * Goes on after a break at the end of the trail: what is torn is kept in a file beside it, and a record says what is
   * missing. Settles with that record when it is on the disk, or with nothing where the end is whole.
   */
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

  /** Waits for what is being written; nothing can be appended any more. */
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

/** As {@link AuditTrail}. */
export const openAudit = (directory: string, options: AuditOptions): AuditTrail =>
  new AuditTrail(directory, options);

/** The next turn of the event loop. */
function turn(): Promise<void> {
  return new Promise((done) => setImmediate(done));
}
