import { randomBytes } from 'node:crypto';
import { closeSync, linkSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { RecordStream } from '../../model/index.ts';
import { auditFailure } from './day-file.ts';
import { openLine, readHead } from './record-line.ts';
import { beginning, headPath, type Place, TrailCursor } from './trail-files.ts';

/** How long it is tried to publish while the server cannot be used: a leader is elected sooner. */
const PUBLISH_MS = 15_000;
/** What is published at once; servers take up to 1 MiB, and a line has at most about 256 KiB. */
const MOST_BYTES = 512 * 1024;
const LONGEST_PAUSE_MS = 40;

/** What of a trail is in the stream. */
interface Published {
  /** Where in the stream its last lines are; 0: none are. */
  readonly position: number;
  /** The number of the last record. */
  readonly seq: number;
  /** Behind that record, or before it, in the files of the trail. */
  readonly place: Place;
}

/**
 * Publishes a trail: what is in its files and not in the stream yet, in its order, whichever process wrote it. Any number of
 * processes may do so at the same time; the stream takes what follows its last record of the trail and nothing else, so that
 * nothing is doubled and nothing left out.
 */
export class TrailPublisher {
  readonly #directory: string;
  readonly #open: () => Promise<RecordStream>;
  #stream: Promise<RecordStream> | undefined;
  #trail: string | undefined;
  #published: Published | undefined;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;

  /** Opens the stream with the first publication. */
  constructor(directory: string, open: () => Promise<RecordStream>) {
    this.#directory = directory;
    this.#open = open;
  }

  /**
   * Settles when most of the servers have everything that was written until now. Callers that ask meanwhile share the next
   * publication.
   * @throws {SandboxError} `audit.failed`.
   */
  publish(): Promise<void> {
    if (this.#running === undefined) {
      this.#running = this.#run();
      return this.#running;
    }
    const start = () => this.#run();
    this.#next ??= this.#running.then(start, start);
    return this.#next;
  }

  /** Ends when what runs has ended, or after so many milliseconds: the next process publishes what is left. */
  async close(withinMs: number): Promise<void> {
    const over = new AbortController();
    const ended = (this.#next ?? this.#running ?? Promise.resolve()).catch(() => {});
    await Promise.race([ended, sleep(withinMs, undefined, { signal: over.signal }).catch(() => {})]);
    over.abort();
    const stream = this.#stream;
    this.#stream = undefined;
    // One that is still being opened is closed as soon as it is there.
    await Promise.race([stream?.then((opened) => opened.close()).catch(() => {}), sleep(100)]);
  }

  async #run(): Promise<void> {
    try {
      await this.#publishAll();
    } catch (error) {
      this.#published = undefined;
      throw auditFailure(this.#directory, error);
    } finally {
      this.#running = this.#next;
      this.#next = undefined;
    }
  }

  async #publishAll(): Promise<void> {
    const end = performance.now() + PUBLISH_MS;
    for (let tries = 0; ; tries += 1) {
      try {
        const stream = await this.#opened();
        this.#published ??= await this.#lookFor(stream);
        const next = this.#following(this.#published);
        if (next === undefined) return;
        const position = await stream.append(this.#name(), next.lines, this.#published.position);
        // Others have published meanwhile.
        this.#published = position === undefined ? undefined : { ...next.published, position };
        if (this.#published !== undefined) this.#note(this.#published);
        if (this.#published !== undefined) tries = 0;
      } catch (error) {
        this.#published = undefined;
        const mayPass = error instanceof SandboxError && error.code === 'fleet.unreachable';
        // Without a connection there was time enough for one.
        if (!mayPass || this.#stream === undefined || performance.now() > end) throw error;
      }
      if (this.#published === undefined) await sleep(Math.random() * Math.min(LONGEST_PAUSE_MS, 2 ** tries));
    }
  }

  #opened(): Promise<RecordStream> {
    this.#stream ??= this.#open().catch((error: unknown) => {
      this.#stream = undefined;
      throw error;
    });
    return this.#stream;
  }

  /** What the stream has. @throws {SandboxError} `audit.failed`: it has less than it said before, or more than we wrote. */
  async #lookFor(stream: RecordStream): Promise<Published> {
    const known = this.#noted();
    const last = await stream.last(this.#name());
    if (last === undefined) {
      if (known === undefined) return { position: 0, seq: 0, place: beginning() };
      const { first, name } = await stream.extent();
      // What is older than the stream keeps is gone by its own rules.
      if (first > known.position) return { ...known, position: 0 };
      throw this.#lost(known, 0, name);
    }
    const line = openLine(lastLineOf(last.lines));
    if (line === undefined)
      throw new SandboxError(
        'audit.failed',
        `the last entry of the trail ${this.#name()} in the stream is none of ours (position ${last.position}): somebody wrote there; sandbox-run audit verify --fleet shows it`,
      );
    if (known !== undefined && known.seq > line.seq) {
      const { name } = await stream.extent();
      throw this.#lost(known, line.seq, name);
    }
    const head = this.#head();
    if (line.seq > head)
      throw new SandboxError(
        'audit.failed',
        `the stream has record ${line.seq} of the trail ${this.#directory}, which ends with record ${head}: older files were put in its place; move the directory away to begin a new trail`,
      );
    return { position: last.position, seq: line.seq, place: known?.place ?? beginning() };
  }

  #lost(known: Published, has: number, name: string): SandboxError {
    return new SandboxError(
      'audit.failed',
      `the stream ${name} ends with record ${has} of the trail ${this.#directory}, and had acknowledged record ${known.seq}: somebody removed records; without ${this.#notePath()} they are published again`,
    );
  }

  /** The next lines behind what is published, up to the end that the head knows; `undefined`: there are none. */
  #following(published: Published): { readonly lines: Buffer; readonly published: Published } | undefined {
    const head = this.#head();
    if (head <= published.seq) return undefined;
    const cursor = new TrailCursor(this.#directory, published.place);
    const lines: Buffer[] = [];
    let { seq } = published;
    let bytes = 0;
    let place = published.place;
    for (const line of cursor.lines()) {
      const record = openLine(line);
      if (record !== undefined && record.seq > head) break;
      if (record !== undefined && record.seq > seq) {
        if (bytes > 0 && bytes + line.length > MOST_BYTES) break;
        lines.push(line, NEW_LINE);
        bytes += line.length + 1;
        ({ seq } = record);
      }
      ({ place } = cursor);
    }
    if (lines.length === 0) return undefined;
    return { lines: Buffer.concat(lines), published: { position: published.position, seq, place } };
  }

  #head(): number {
    const fd = openSync(headPath(this.#directory), 'r');
    try {
      return readHead(fd)?.seq ?? 0;
    } finally {
      closeSync(fd);
    }
  }

  #name(): string {
    this.#trail ??= trailName(this.#directory, true);
    return this.#trail ?? '';
  }

  #notePath(): string {
    return join(this.#directory, 'published');
  }

  /** Where to go on, so that nobody has to read the whole trail; what counts is what the stream has. */
  #note(published: Published): void {
    const path = `${this.#notePath()}.${process.pid}`;
    writeFileSync(path, `${JSON.stringify(published)}\n`, { mode: 0o600 });
    renameSync(path, this.#notePath());
  }

  #noted(): Published | undefined {
    return notedIn(this.#directory);
  }
}

const NEW_LINE = Buffer.from('\n');

function lastLineOf(lines: Buffer): Buffer {
  const end = lines.at(-1) === 10 ? lines.length - 1 : lines.length;
  return lines.subarray(lines.lastIndexOf(10, end - 1) + 1, end);
}

/** What was noted of the last publication of a trail; `undefined`: nothing was. */
export function notedIn(directory: string): Published | undefined {
  let text: string;
  try {
    text = readFileSync(join(directory, 'published'), 'utf8');
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined;
    throw error;
  }
  const [, position, seq, name, offset] =
    /^\{"position":(\d{1,16}),"seq":(\d{1,16}),"place":\{"name":"(\d{4}-\d\d-\d\d\.jsonl)","offset":(\d{1,16})\}\}\n$/.exec(
      text,
    ) ?? [];
  if (name === undefined)
    throw new SandboxError(
      'audit.failed',
      `${join(directory, 'published')} is damaged; remove it, and what the stream does not have is published again`,
    );
  return { position: Number(position), seq: Number(seq), place: { name, offset: Number(offset) } };
}

/**
 * What a trail is called in the stream: the machine, the user, and something that no other trail has. It stays with the
 * directory. `undefined`: it has no name, and none is given.
 */
export function trailName(directory: string, give: boolean): string | undefined {
  const path = join(directory, 'name');
  for (let tries = 0; ; tries += 1) {
    try {
      const [, name] = /^([A-Za-z0-9_-]{1,120})\n$/.exec(readFileSync(path, 'utf8')) ?? [];
      if (name !== undefined) return name;
      throw new SandboxError(
        'audit.failed',
        `${path} is damaged; it has the name of the trail in the stream`,
      );
    } catch (error) {
      if (errnoOf(error) !== 'ENOENT' || tries > 0) throw error;
      if (!give) return undefined;
    }
    const host = hostname()
      .replaceAll(/[^A-Za-z0-9-]/g, '-')
      .slice(0, 63);
    const unfinished = `${path}.${process.pid}`;
    writeFileSync(unfinished, `${host}_${process.geteuid?.()}_${randomBytes(6).toString('hex')}\n`, {
      mode: 0o600,
    });
    try {
      // Of several that give it a name, one does.
      linkSync(unfinished, path);
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error;
    } finally {
      rmSync(unfinished, { force: true });
    }
  }
}
