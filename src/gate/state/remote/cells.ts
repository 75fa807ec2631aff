import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { z } from 'zod';
import { SandboxError } from '../../../base/errors/sandbox-error.ts';
import { parsedJson } from '../../../base/parsed-json.ts';
import type { MaybePromise } from '../../../base/promise.ts';
import { retried } from '../../../base/retried.ts';
import type { Value } from '../../../base/value.ts';
import type { KeyValue, KeyValueEntry } from '../../../model/index.ts';

/** How long anything is tried for: others that write the same key come first, or the servers elect a leader. */
const PATIENCE_MS = 15_000;
/** The longest pause before another try; random, so that those that met once do not meet again. */
const LONGEST_PAUSE_MS = 40;

/** What a change makes of a value. Without `value` nothing is written. */
type Step<T, R> = { readonly result: R; readonly value?: T };

/** One word of a key for any text: nobody's text leads to the key of another one. */
export const keyWord = (text: string): string => createHash('sha256').update(text).digest('hex').slice(0, 40);

/** Values of one kind, as JSON, each changed by comparing and setting. */
export class Cells<Schema extends z.ZodType> {
  readonly #store: KeyValue;
  readonly #schema: Schema;

  constructor(store: KeyValue, schema: Schema) {
    this.#store = store;
    this.#schema = schema;
  }

  async read(key: string): Promise<Value<Schema> | undefined> {
    const entry = await answered(() => this.#store.get(key));
    return entry && this.decode(entry);
  }

  async list(pattern: string): Promise<readonly Value<Schema>[]> {
    return (await answered(() => this.#store.list(pattern))).map((entry) => this.decode(entry));
  }

  /**
   * Changes a value, atomically. `step` is called again when another one wrote meanwhile, or when the answer to a write was
   * lost: by something in the value that only this call writes it must know that its change is there, and change nothing.
   * @throws {SandboxError} what the store rejects with, once no try is left; the change may have been made.
   */
  async change<R>(
    key: string,
    step: (value: Value<Schema> | undefined) => MaybePromise<Step<Value<Schema>, R>>,
  ): Promise<R> {
    const end = performance.now() + PATIENCE_MS;
    let failure: unknown;
    for (let tries = 0; ; tries += 1) {
      try {
        const entry = await this.#store.get(key);
        const { result, value } = await step(entry && this.decode(entry));
        if (value === undefined) return result;
        if ((await this.#store.put(key, JSON.stringify(value), entry?.revision ?? 0)) !== undefined)
          return result;
        failure = undefined;
      } catch (error) {
        if (!mayPass(error)) throw error;
        failure = error;
      }
      if (performance.now() > end)
        throw (
          failure ??
          new SandboxError('fleet.unreachable', `others change ${key} all the time; it was given up`)
        );
      await sleep(Math.random() * Math.min(LONGEST_PAUSE_MS, 2 ** tries));
    }
  }

  /**
   * Takes away the value that `isIt` knows. False: it is not there. An answer that was lost is taken for a yes where the
   * value is gone.
   */
  async remove(key: string, isIt: (value: Value<Schema>) => boolean): Promise<boolean> {
    const end = performance.now() + PATIENCE_MS;
    for (let isUnknown = false; ; ) {
      try {
        const entry = await this.#store.get(key);
        if (entry === undefined || !isIt(this.decode(entry))) return isUnknown;
        if (await this.#store.remove(key, entry.revision)) return true;
      } catch (error) {
        if (!mayPass(error) || performance.now() > end) throw error;
        isUnknown = true;
      }
      await sleep(Math.random() * LONGEST_PAUSE_MS);
    }
  }

  /** @throws {SandboxError} `state.unusable`: nobody of ours wrote it. */
  decode({ key, value }: KeyValueEntry): Value<Schema> {
    const read = this.#schema.safeParse(parsedJson(value));
    if (read.success) return read.data as Value<Schema>;
    const [problem] = read.error.issues;
    throw new SandboxError(
      'state.unusable',
      `the value ${key} of the fleet's state was not written by this version of sandbox-run (${problem?.path.join('.')}: ${problem?.message})`,
    );
  }
}

/** What is read, once a leader answers. */
const answered = <T>(read: () => Promise<T>): Promise<T> =>
  retried(read, { mayPass, forMs: PATIENCE_MS, pause: () => sleep(Math.random() * LONGEST_PAUSE_MS) });

const mayPass = (error: unknown) => error instanceof SandboxError && error.code === 'fleet.unreachable';
