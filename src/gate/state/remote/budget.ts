import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { deferred } from '../../../base/deferred.ts';
import { SandboxError } from '../../../base/errors/sandbox-error.ts';
import type { Value } from '../../../base/value.ts';
import type { BudgetStore, FleetStore, Reservation } from '../../../model/index.ts';
import { Cells, keyWord } from './cells.ts';

const WINDOW_MS = 3_600_000;
/** How long an action is known by its id: meanwhile it can be released, or looked up to see whether the write was done. */
const KNOWN_MS = 120_000;
const SLOT_MS = 1_000;

const Actions = z.strictObject({
  principal: z.string(),
  /** Id and time. */
  recent: z.array(z.tuple([z.string(), z.number()])),
  /** How many by the second that they are not younger than: at most 3,600, however many actions there are. */
  older: z.record(z.string().regex(/^\d+$/), z.number().int().positive()),
});
type Actions = Value<typeof Actions>;
type Recent = Actions['recent'][number];

/** What one caller wants done with the actions of a principal; settled once it is written. */
interface Wish {
  /** Changes `actions`; false: nothing was to be changed. Called again when another one wrote meanwhile. */
  readonly apply: (actions: { recent: Recent[]; used: number }, now: number) => boolean;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * The budget of a fleet: all actions of the last hour of a principal in one value, so that whoever writes it has counted
 * all of them. Time is that of the store. What one process wants at the same time is written at once, so that those that
 * compete for the value are processes and not commands.
 */
export class FleetBudget implements BudgetStore {
  readonly #store: FleetStore;
  /** By principal, while one of them is being written. */
  readonly #wishes = new Map<string, Wish[]>();

  constructor(store: FleetStore) {
    this.#store = store;
  }

  async used(principal: string): Promise<number> {
    const now = await this.#store.clock.now();
    const found = await (await this.#cells(principal)).read(KEY);
    return found === undefined ? 0 : countOf(inWindow(checked(found, principal), now));
  }

  async reserve(principal: string, limit: number): Promise<Reservation | undefined> {
    const id = randomBytes(9).toString('base64url');
    let isReserved = false;
    await this.#want(principal, (actions, now) => {
      // The answer to a write was lost.
      if (actions.recent.some(([known]) => known === id)) return false;
      isReserved = actions.used < limit;
      if (!isReserved) return false;
      actions.recent.push([id, now]);
      actions.used += 1;
      return true;
    });
    if (!isReserved) return undefined;
    let isCommitted = false;
    return {
      // The reservation counts already: nothing has to be written.
      commit: () => {
        isCommitted = true;
      },
      release: async () => {
        if (isCommitted) return;
        await this.#want(principal, (actions) => {
          const at = actions.recent.findIndex(([known]) => known === id);
          if (at === -1) return false;
          actions.recent.splice(at, 1);
          actions.used -= 1;
          return true;
        });
      },
    };
  }

  async reset(principal: string): Promise<number> {
    const now = await this.#store.clock.now();
    let forgotten = 0;
    await (await this.#cells(principal)).change(KEY, (found) => {
      const actions = inWindow(found === undefined ? nothing(principal) : checked(found, principal), now);
      // Nothing is left where the answer to our own write was lost.
      forgotten = Math.max(forgotten, countOf(actions));
      return countOf(actions) === 0
        ? { result: undefined }
        : { result: undefined, value: nothing(principal) };
    });
    return forgotten;
  }

  async #cells(principal: string): Promise<Cells<typeof Actions>> {
    return new Cells(await this.#store.alone(keyWord(principal)), Actions);
  }

  async #want(principal: string, apply: Wish['apply']): Promise<void> {
    const settled = deferred<void>();
    const wish = { apply, done: () => settled.resolve(), failed: settled.reject };
    const waiting = this.#wishes.get(principal);
    if (waiting !== undefined) waiting.push(wish);
    else {
      const first = [wish];
      this.#wishes.set(principal, first);
      void this.#writeAll(principal, first);
    }
    await settled.promise;
  }

  async #writeAll(principal: string, waiting: Wish[]): Promise<void> {
    while (waiting.length > 0) {
      const wishes = waiting.splice(0);
      try {
        await (await this.#cells(principal)).change(KEY, async (found) => {
          const now = await this.#store.clock.now();
          const actions = inWindow(found === undefined ? nothing(principal) : checked(found, principal), now);
          const open = { recent: [...actions.recent], used: countOf(actions) };
          const isChanged = wishes.map(({ apply }) => apply(open, now)).includes(true);
          return isChanged
            ? { result: undefined, value: { ...actions, recent: open.recent } }
            : { result: undefined };
        });
        for (const { done } of wishes) done();
      } catch (error) {
        for (const { failed } of wishes) failed(error);
      }
    }
    this.#wishes.delete(principal);
  }
}

const KEY = 'budget';
const nothing = (principal: string): Actions => ({ principal, recent: [], older: {} });

const countOf = ({ recent, older }: Actions) =>
  Object.values(older).reduce((sum, count) => sum + count, recent.length);

/** Without what has left the window; what is old enough is a number for its second, and leaves with the end of that. */
function inWindow({ principal, recent, older }: Actions, now: number): Actions {
  const slots: Record<string, number> = Object.fromEntries(
    Object.entries(older).filter(([slot]) => Number(slot) * SLOT_MS > now - WINDOW_MS),
  );
  const known: Recent[] = [];
  for (const [id, at] of recent) {
    if (at <= now - WINDOW_MS) continue;
    if (at > now - KNOWN_MS) {
      known.push([id, at]);
      continue;
    }
    const slot = String(Math.ceil(at / SLOT_MS));
    slots[slot] = (slots[slot] ?? 0) + 1;
  }
  return { principal, recent: known, older: slots };
}

function checked(actions: Actions, principal: string): Actions {
  if (actions.principal === principal) return actions;
  throw new SandboxError('state.unusable', `the actions of ${principal} are those of another principal`);
}
