import { visibleLine } from '../../base/visible-text.ts';
import { type BackgroundJob, OutputLog, portsInWords } from '../../run/index.ts';
import type { ToolOutcome } from '../shell-tool.ts';

/** Jobs that may run, or be about to, at the same time. */
export const MOST_JOBS = 16;
/** Jobs that have ended and whose output can still be read. */
const MOST_ENDED = 32;

/** A command in the background and what it wrote. */
export interface Job {
  /** What a model calls it. */
  readonly id: string;
  readonly command: string;
  readonly running: BackgroundJob;
  readonly log: OutputLog;
}

/** The background jobs of one client. */
export class JobTable {
  readonly #jobs = new Map<string, Job>();
  #active = 0;
  #count = 0;
  #told = '';

  /**
   * Starts one; `too-many`: {@link MOST_JOBS} run already. `begin` gives a job, or the result if there is none, and has to
   * hand its output to the log.
   */
  async start(
    command: string,
    begin: (log: OutputLog) => Promise<BackgroundJob | ToolOutcome>,
  ): Promise<Job | ToolOutcome | 'too-many'> {
    if (this.#active >= MOST_JOBS) return 'too-many';
    this.#active += 1;
    const log = new OutputLog();
    try {
      const running = await begin(log);
      if (!('launched' in running)) {
        this.#active -= 1;
        return running;
      }
      this.#count += 1;
      const job: Job = { id: `job-${this.#count}`, command, running, log };
      this.#jobs.set(job.id, job);
      const over = () => {
        this.#active -= 1;
        log.end();
        this.#forgetOldest();
      };
      running.wait().then(over, over);
      return job;
    } catch (error) {
      this.#active -= 1;
      throw error;
    }
  }

  find(id: string): Job | undefined {
    return this.#jobs.get(id);
  }

  /** Those that can be asked about, oldest first. */
  all(): readonly Job[] {
    return [...this.#jobs.values()];
  }

  /** Those that run, oldest first. */
  running(): readonly Job[] {
    return this.all().filter((job) => job.running.result === undefined);
  }

  /** A line for each that runs, for a model; `undefined`: it was told just that, or has started none. */
  async news(): Promise<string | undefined> {
    const running = this.running();
    if (running.length === 0 && this.#told === '') return undefined;
    const text = (await Promise.all(running.map(lineFor))).join('\n');
    if (text === this.#told) return undefined;
    this.#told = text;
    return text === '' ? 'In the background: nothing runs any more.' : text;
  }

  #forgetOldest(): void {
    const ended = this.all().filter(({ running }) => running.result !== undefined);
    for (const { id } of ended.slice(0, Math.max(ended.length - MOST_ENDED, 0))) this.#jobs.delete(id);
  }
}

/** Length at which a command is cut off in a line about its job. */
const LONGEST_COMMAND = 60;

/** The command of a job, as short as it is named in a line. */
export const shortCommandOf = ({ command }: Job): string => visibleLine(command, LONGEST_COMMAND);

async function lineFor(job: Job): Promise<string> {
  const { id, running } = job;
  const ports = (await running.ports()).filter(({ port }) => port !== undefined);
  const reached = ports.length === 0 ? '' : `, reach it at ${portsInWords(ports)}`;
  return `In the background: ${id} runs ${JSON.stringify(shortCommandOf(job))}${reached}; shell_kill ends it`;
}
