import type { BackgroundJob } from '../../run/launch/jobs.ts';
import { createDecoder } from '../../run/output/show.ts';
import type { ToolOutcome } from '../shell-tool.ts';

/** Jobs that may run, or be about to, at the same time. */
export const MOST_JOBS = 16;
/** Jobs that have ended and whose output can still be read. */
const MOST_ENDED = 32;

/** A command in the background and what it wrote. */
export interface Job {
  /** What a model calls it. */
  readonly id: string;
  readonly running: BackgroundJob;
  readonly log: JobLog;
}

/** The background jobs of one client. */
export interface JobTable {
  /**
   * Starts one; `too-many`: {@link MOST_JOBS} run already. `begin` gives a job, or the result if there is none, and has to
   * hand its output to the log.
   */
  start(
    begin: (log: JobLog) => Promise<BackgroundJob | ToolOutcome>,
  ): Promise<Job | ToolOutcome | 'too-many'>;
  find(id: string): Job | undefined;
  /** Ids of those that can be asked about, oldest first. */
  ids(): readonly string[];
}

/** Makes an empty one. */
export function createJobTable(): JobTable {
  const jobs = new Map<string, Job>();
  let active = 0;
  let count = 0;

  function forgetOldest(): void {
    const ended = [...jobs.values()].filter(({ running }) => running.result !== undefined);
    for (const { id } of ended.slice(0, Math.max(ended.length - MOST_ENDED, 0))) jobs.delete(id);
  }

  return {
    async start(begin) {
      if (active >= MOST_JOBS) return 'too-many';
      active += 1;
      const log = createJobLog();
      try {
        const running = await begin(log);
        if (!('launched' in running)) {
          active -= 1;
          return running;
        }
        count += 1;
        const job: Job = { id: `job-${count}`, running, log };
        jobs.set(job.id, job);
        const over = () => {
          active -= 1;
          log.end();
          forgetOldest();
        };
        running.wait().then(over, over);
        return job;
      } catch (error) {
        active -= 1;
        throw error;
      }
    },
    find: (id) => jobs.get(id),
    ids: () => [...jobs.keys()],
  };
}

/** Characters that are kept of the output of a job: its last ones. */
const KEPT = 128 * 1024;

/** A part of what a job wrote. */
interface LogPart {
  readonly output: string;
  /** Where the next part begins: characters from the start of the job. */
  readonly next: number;
  /** Characters that were asked for and are not kept any more. */
  readonly leftOut: number;
  /** There is more behind this part already. */
  readonly more: boolean;
}

/** The output of a job as text for a model, to be read piece by piece. */
interface JobLog {
  write(bytes: Uint8Array): void;
  /** Nothing more will come. */
  end(): void;
  /** At most so many characters, from `since`, or from where the last part ended. */
  read(since: number | undefined, most: number): LogPart;
}

/** Makes an empty one, which keeps its last `limit` characters. */
export function createJobLog(limit = KEPT): JobLog {
  const decoder = createDecoder(true);
  let text = '';
  /** Characters before `text`. */
  let gone = 0;
  let cursor = 0;

  function add(piece: string): void {
    text += piece;
    // Not each time: cutting copies what is left.
    if (text.length > 2 * limit) drop(text.length - limit);
  }

  function drop(count: number): void {
    const from = isInsidePair(text, count) ? count + 1 : count;
    text = text.slice(from);
    gone += from;
  }

  return {
    write: (bytes) => add(decoder.write(bytes)),
    end: () => add(decoder.end()),
    read(since = cursor, most) {
      const asked = Math.min(since, gone + text.length);
      const from = Math.max(asked, gone);
      const end = from - gone + most;
      const output = text.slice(from - gone, isInsidePair(text, end) ? end - 1 : end);
      const next = from + output.length;
      cursor = next;
      return { output, next, leftOut: from - asked, more: next < gone + text.length };
    },
  };
}

/** Between the halves of a character that takes two. */
function isInsidePair(text: string, at: number): boolean {
  return /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(Math.max(at - 1, 0), at + 1));
}
