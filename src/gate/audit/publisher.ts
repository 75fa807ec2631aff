import { randomBytes } from 'node:crypto';
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errnoOf } from '../../base/errno-of.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { oneAtATime } from '../../base/one-at-a-time.ts';
import type { RecordStream } from '../../model/index.ts';
import { openLine } from './record-line.ts';
import { auditFailure, type Trail } from './trail.ts';

/** How long it is tried to publish while the server cannot be used: a leader is elected sooner. */
const PUBLISH_MS = 15_000;
/** What is published at once; servers take up to 1 MiB, and a line has at most about 256 KiB. */
const MOST_BYTES = 512 * 1024;
const LONGEST_PAUSE_MS = 40;

/** How much of a trail is in the stream. */
interface Published {
  /** Where in the stream its last lines are; 0: none are. */
  readonly position: number;
  /** The number of the last record. */
  readonly seq: number;
}

/**
 * Publishes a trail: what is in it and not in the stream yet, in its order, whichever process wrote it. Any number of
 * processes may do so at the same time; the stream takes what follows its last record of the trail and nothing else, so that
 * nothing is doubled and nothing left out.
 */
export class TrailPublisher {
  readonly #trailOf: () => Promise<Trail>;
  readonly #directory: string;
  readonly #open: () => Promise<RecordStream>;
  #stream: Promise<RecordStream> | undefined;
  #name: string | undefined;
  #published: Published | undefined;
  #running: Promise<void> = Promise.resolve();
  readonly #runOnce = oneAtATime(() => this.#run());

  /** Opens the stream with the first publication. */
  constructor(directory: string, trail: () => Promise<Trail>, open: () => Promise<RecordStream>) {
    this.#directory = directory;
    this.#trailOf = trail;
    this.#open = open;
  }

  /**
   * Settles when most of the servers have everything that was written until now. Callers that ask meanwhile share the next
   * publication.
   * @throws {SandboxError} `audit.failed`.
   */
  publish(): Promise<void> {
    this.#running = this.#runOnce();
    return this.#running;
  }

  /** Ends when what runs has ended, or after so many milliseconds: the next process publishes what is left. */
  async close(withinMs: number): Promise<void> {
    const over = new AbortController();
    const ended = this.#running.catch(() => {});
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
    }
  }

  async #publishAll(): Promise<void> {
    const end = performance.now() + PUBLISH_MS;
    const trail = await this.#trailOf();
    for (let tries = 0; ; tries += 1) {
      try {
        const stream = await this.#opened();
        this.#published ??= await this.#lookFor(stream, trail);
        const next = following(trail, this.#published);
        if (next === undefined) return;
        const position = await stream.append(this.#nameOf(), next.lines, this.#published.position);
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
  async #lookFor(stream: RecordStream, trail: Trail): Promise<Published> {
    const known = this.#noted();
    const last = await stream.last(this.#nameOf());
    if (last === undefined) {
      if (known === undefined) return { position: 0, seq: 0 };
      const { first, name } = await stream.extent();
      // What is older than the stream keeps is gone by its own rules.
      if (first > known.position) return { ...known, position: 0 };
      throw this.#lost(known, 0, name);
    }
    const line = openLine(lastLineOf(last.lines));
    if (line === undefined)
      throw new SandboxError(
        'audit.failed',
        `the last entry of the trail ${this.#nameOf()} in the stream is none of ours (position ${last.position}): somebody wrote there; sandbox-run audit verify --fleet shows it`,
      );
    if (known !== undefined && known.seq > line.seq) {
      const { name } = await stream.extent();
      throw this.#lost(known, line.seq, name);
    }
    const head = trail.head()?.seq ?? 0;
    if (line.seq > head)
      throw new SandboxError(
        'audit.failed',
        `the stream has record ${line.seq} of the trail ${this.#directory}, which ends with record ${head}: an older one was put in its place; move the directory away to begin a new trail`,
      );
    return { position: last.position, seq: line.seq };
  }

  #lost(known: Published, has: number, name: string): SandboxError {
    return new SandboxError(
      'audit.failed',
      `the stream ${name} ends with record ${has} of the trail ${this.#directory}, and had acknowledged record ${known.seq}: somebody removed records; without ${this.#notePath()} they are published again`,
    );
  }

  #nameOf(): string {
    this.#name ??= trailName(this.#directory, true);
    return this.#name ?? '';
  }

  #notePath(): string {
    return join(this.#directory, 'published');
  }

  /** What the stream must not have less of; what counts is what it has. */
  #note(published: Published): void {
    const path = `${this.#notePath()}.${process.pid}`;
    writeFileSync(path, `${JSON.stringify(published)}\n`, { mode: 0o600 });
    renameSync(path, this.#notePath());
  }

  #noted(): Published | undefined {
    return notedIn(this.#directory);
  }
}

/** The next lines behind what is published, up to the end that the head knows; `undefined`: there are none. */
function following(trail: Trail, { seq, position }: Published) {
  const lines: string[] = [];
  let [bytes, last] = [0, seq];
  for (const { seq: number, line } of trail.lines(seq, trail.head()?.seq ?? 0)) {
    if (bytes > 0 && bytes + line.length > MOST_BYTES) break;
    lines.push(`${line}\n`);
    bytes += line.length + 1;
    last = number;
  }
  return lines.length === 0
    ? undefined
    : { lines: Buffer.from(lines.join('')), published: { position, seq: last } };
}

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
  // Older versions wrote more fields.
  const [, position, seq] = /^\{"position":(\d{1,16}),"seq":(\d{1,16})[,}].*\n$/.exec(text) ?? [];
  if (seq === undefined)
    throw new SandboxError(
      'audit.failed',
      `${join(directory, 'published')} is damaged; remove it, and what the stream does not have is published again`,
    );
  return { position: Number(position), seq: Number(seq) };
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
      // If several processes create it at once, only one link succeeds.
      linkSync(unfinished, path);
    } catch (error) {
      if (errnoOf(error) !== 'EEXIST') throw error;
    } finally {
      rmSync(unfinished, { force: true });
    }
  }
}
