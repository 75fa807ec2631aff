import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import type { JobNarrowing } from '../model/fleet.ts';
import { NARROWINGS, type SandboxOptions } from '../model/index.ts';
import { type OpenSandbox, openSandbox, removeTree } from '../run/index.ts';
import { OF_THIS_PROCESS } from '../workspace/index.ts';

/** Sandboxes of the worker's own workspace that are kept open, one for each way to narrow the policy. */
const MOST_KEPT = 16;

/** A sandbox for one job; `done` gives it up. */
export interface JobSandbox {
  readonly sandbox: OpenSandbox;
  /** Canonical; of a job that brings a workspace its own. */
  readonly workspace: string;
  done(): Promise<void>;
}

/** The sandboxes of a worker: all under its policy, some with less. */
export class JobSandboxes {
  readonly #options: SandboxOptions;
  readonly #scratch: string;
  readonly #kept = new Map<string, Promise<OpenSandbox>>();

  /** `scratch`: where workspaces of jobs are made. */
  constructor(options: SandboxOptions, scratch: string) {
    this.#options = options;
    this.#scratch = scratch;
  }

  /** The sandbox of the workspace of the worker. */
  async own(narrow: JobNarrowing = {}): Promise<JobSandbox> {
    const key = JSON.stringify(narrow);
    let opened = this.#kept.get(key);
    const isKept = opened !== undefined || this.#kept.size < MOST_KEPT;
    opened ??= openSandbox({ ...this.#options, narrow }, OF_THIS_PROCESS);
    if (isKept && !this.#kept.has(key)) {
      this.#kept.set(key, opened);
      opened.catch(() => this.#kept.delete(key));
    }
    const sandbox = await opened;
    const done = async () => {
      if (!isKept) await sandbox.close();
    };
    return { sandbox, workspace: sandbox.workspace, done };
  }

  /** A sandbox with a workspace of its own, which `fill` fills. It goes with it. */
  async fresh(
    narrow: JobNarrowing | undefined,
    fill: (directory: string) => Promise<void>,
  ): Promise<JobSandbox> {
    const directory = await mkdtemp(join(this.#scratch, 'sandbox-run-job-'));
    const remove = () => removeTree(directory);
    try {
      await fill(directory);
      const options = { ...this.#options, narrow, workspace: directory, isCopy: true };
      const sandbox = await openSandbox(options, OF_THIS_PROCESS);
      const done = () => sandbox.close().finally(remove);
      return { sandbox, workspace: directory, done };
    } catch (error) {
      await remove();
      throw error;
    }
  }

  async close(): Promise<void> {
    const opened = [...this.#kept.values()];
    this.#kept.clear();
    await Promise.allSettled(opened.map(async (sandbox) => (await sandbox).close()));
  }
}

/** The shorter of two times; 0 is for ever. */
export function shorter(policy: number, said: number | undefined): number {
  return said === undefined ? policy : NARROWINGS.shorter(policy, said);
}

/** What is kept of output: what was asked for, and never more than the policy keeps. */
export function smallerOutput<Limit extends number | { readonly head: number; readonly tail: number }>(
  policy: number,
  said: Limit | undefined,
): Limit | number | undefined {
  if (said === undefined) return undefined;
  const bytes = typeof said === 'number' ? said : said.head + said.tail;
  return bytes <= policy ? said : policy;
}

/**
 * What a job takes away from the policy, read as a file in a workspace is: what would give anything is refused.
 * @throws {SandboxError} `usage.invalid`.
 */
export async function checkNarrowing(narrow: JobNarrowing | undefined): Promise<void> {
  if (narrow?.policy === undefined) return;
  const { checkNarrowingPolicy } = await import('../run/validation.ts');
  try {
    await checkNarrowingPolicy(narrow.policy);
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    throw new SandboxError('usage.invalid', `the job: ${error.message}`);
  }
}
