import { setTimeout as delay } from 'node:timers/promises';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { parsedJson } from '../base/parsed-json.ts';
import { JobRecord } from '../model/fleet.ts';
import { compareAndSet, type Queue } from './queue.ts';

const [FIRST_RETRY_MS, LONGEST_RETRY_MS] = [50, 2000];

/** Where a job stands, with the revision by which that can be changed. */
interface Standing {
  /** `undefined`: somebody deleted it, or it is not understood. That is no reason to run a job a second time. */
  readonly record: JobRecord | undefined;
  readonly isDeleted: boolean;
  readonly revision: number;
}

/** The record of a job; `undefined`: nobody has claimed it. @throws what the server says. */
export async function standingOf(queue: Queue, job: string): Promise<Standing | undefined> {
  const entry = await queue.records.get(job);
  if (entry === null) return undefined;
  const isDeleted = entry.operation !== 'PUT';
  return { record: isDeleted ? undefined : readRecord(entry.value), isDeleted, revision: entry.revision };
}

const CLAIM = Buffer.from('{"state":"claimed",');

/** Whether a value begins like a claim, which a submitter that waits for the end of a job need not read. */
export const isClaim = (value: Uint8Array) => CLAIM.equals(value.subarray(0, CLAIM.length));

/** A record of a job; `undefined`: it is none. */
export function readRecord(value: Uint8Array): JobRecord | undefined {
  const read = JobRecord.safeParse(parsedJson(value));
  return read.success ? read.data : undefined;
}

/**
 * Writes the record of a job, if it is still that of `revision` (0: there is none): again and again, until the server has said
 * something. `undefined`: there is another one, or it was given up. `isOurs` tells whether a record is the one that was written:
 * the answer to that may have been lost.
 * @throws {SandboxError} `fleet.refused`, with `untilRefused`.
 */
export async function writeRecord(
  queue: Queue,
  job: string,
  {
    text,
    revision,
    isOurs,
    signal,
    untilRefused = false,
  }: {
    /** The record as JSON. */
    readonly text: string;
    readonly revision: number;
    readonly isOurs: (record: JobRecord) => boolean;
    readonly signal: AbortSignal;
    /** Reject if permission to write is denied. A worker retries instead: a result must not be lost while permissions are changed. */
    readonly untilRefused?: boolean;
  },
): Promise<number | undefined> {
  let behind = revision;
  for (let wait = FIRST_RETRY_MS; !signal.aborted; wait = Math.min(2 * wait, LONGEST_RETRY_MS)) {
    try {
      const written = await compareAndSet(queue, queue.names.records, job, text, behind);
      if (written !== undefined) return written;
      const standing = await standingOf(queue, job);
      // Our own claim that somebody deleted is still nobody else's; where there was none, there was one that is not ours.
      if (standing?.isDeleted === true && revision === 0) return undefined;
      if (standing !== undefined && !standing.isDeleted)
        return standing.record !== undefined && isOurs(standing.record) ? standing.revision : undefined;
      // None: it is being written, or all that was there was dropped.
      behind = standing?.revision ?? 0;
    } catch (error) {
      if (untilRefused && error instanceof SandboxError && error.code === 'fleet.refused') throw error;
      // Whether it was written is unknown: the next try tells.
    }
    await delay(wait, undefined, { signal }).catch(() => {});
  }
  return undefined;
}
