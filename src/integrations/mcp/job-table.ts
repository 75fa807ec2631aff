import type { BackgroundJob } from '../../run/launch/jobs.ts';
import type { ToolOutcome } from '../shell-tool.ts';
import { createJobLog, type JobLog } from './job-log.ts';

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
