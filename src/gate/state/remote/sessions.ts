import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { SandboxError } from '../../../base/errors/sandbox-error.ts';
import type { Value } from '../../../base/value.ts';
import type { TaintSharing } from '../../../base/words.ts';
import { type FleetStore, SessionInfo, type SessionStore, Taint } from '../../../model/index.ts';
import { CONCURRENT_MS } from '../session-store.ts';
import { Cells, keyWord } from './cells.ts';

/** How much older a noted use may be than the last one: not every command writes. */
const REFRESH_MS = 30_000;

const Session = z.strictObject({
  ...SessionInfo.shape,
  /** The hooks were asked about the session and allowed it. */
  announced: z.boolean(),
  /** How often it has ended. */
  epoch: z.number().int(),
  /** By which call it was ended last: it knows its own where the answer to its write was lost. */
  end: z.string().optional(),
});
type Session = Value<typeof Session>;

const Owner = z.strictObject({ principal: z.string() });

/** By the key word of the session. */
const Tainted = z.strictObject({
  principal: z.string(),
  sessions: z.record(z.string(), z.strictObject({ taints: z.array(Taint), lastUsedAt: z.number() })),
});
type Tainted = Value<typeof Tainted>;

/** How often a session has ended: what was granted for it holds for one time only. */
export const epochOf = (session: Session | undefined): number => session?.epoch ?? 0;

/**
 * Sessions and taints of a fleet: a value for each session, one that says whose an id is, and for each principal one with
 * the taints of its sessions in use. That one is written first, so that what fails in between makes the others stricter.
 */
export class FleetSessions implements SessionStore {
  readonly #store: FleetStore;
  readonly #sessions: Cells<typeof Session>;
  readonly #owners: Cells<typeof Owner>;
  readonly #tainted: Cells<typeof Tainted>;

  constructor(store: FleetStore) {
    this.#store = store;
    this.#sessions = new Cells(store.values, Session);
    this.#owners = new Cells(store.values, Owner);
    this.#tainted = new Cells(store.values, Tainted);
  }

  /** One of a principal, as it is stored. */
  async read(id: string, principal: string): Promise<Session | undefined> {
    const found = await this.#sessions.read(sessionKey(id, principal));
    if (found === undefined || (found.id === id && found.principal === principal)) return found;
    throw new SandboxError('state.unusable', `the session ${id} is stored as another one`);
  }

  async use(id: string, principal: string): Promise<'new' | 'known'> {
    return (await this.#used(id, principal)).announced ? 'known' : 'new';
  }

  async announce(id: string, principal: string): Promise<void> {
    await this.#sessions.change(sessionKey(id, principal), (found) => ({
      result: undefined,
      ...(found?.announced === false && { value: { ...found, announced: true } }),
    }));
  }

  async taint(id: string, principal: string, taint: Taint, reason: string): Promise<void> {
    await this.#used(id, principal);
    await this.#add(id, principal, [taint], reason);
  }

  async taints(id: string, principal: string, sharing: TaintSharing): Promise<readonly Taint[]> {
    const now = await this.#store.clock.now();
    const own = await this.read(id, principal);
    if (sharing === 'session') return (own?.taints ?? []).map(({ taint }) => taint);
    const tainted = await this.#tainted.read(taintedKey(principal));
    const found = new Set(own?.taints.map(({ taint }) => taint));
    const before = found.size;
    for (const { taints, lastUsedAt } of Object.values(tainted?.sessions ?? {}))
      if (lastUsedAt > now - CONCURRENT_MS) for (const taint of taints) found.add(taint);
    if (own !== undefined && found.size > before)
      await this.#add(id, principal, [...found], 'another session at the same time');
    return [...found];
  }

  async find(id: string): Promise<SessionInfo | undefined> {
    const owner = await this.#owners.read(ownerKey(id));
    const found = owner && (await this.read(id, owner.principal));
    return found && infoOf(found);
  }

  async list(principal: string): Promise<readonly SessionInfo[]> {
    const found = await this.#sessions.list(`session.${keyWord(principal)}.*`);
    return found
      .map(infoOf)
      .sort((one, other) => one.lastUsedAt - other.lastUsedAt || (one.id < other.id ? -1 : 1));
  }

  async end(id: string, principal: string): Promise<boolean> {
    const mark = randomBytes(9).toString('base64url');
    const wasOpen = await this.#sessions.change(sessionKey(id, principal), async (found) => {
      if (found?.end === mark) return { result: true };
      if (found === undefined || found.endedAt !== undefined) return { result: false };
      const endedAt = await this.#store.clock.now();
      // What was granted for it is over with the epoch.
      return { result: true, value: { ...found, endedAt, epoch: found.epoch + 1, end: mark } };
    });
    if (wasOpen) await this.#changeTainted(principal, id, () => undefined);
    return wasOpen;
  }

  /** Notes a use. */
  async #used(id: string, principal: string): Promise<Session> {
    const now = await this.#store.clock.now();
    const before = await this.read(id, principal);
    if (before === undefined) await this.#claim(id, principal);
    const isFresh = before?.endedAt === undefined && before !== undefined;
    if (isFresh && before.lastUsedAt > now - REFRESH_MS) return before;
    if (before !== undefined && before.taints.length > 0)
      await this.#changeTainted(principal, id, () => ({
        taints: before.taints.map(({ taint }) => taint),
        lastUsedAt: now,
      }));
    return this.#sessions.change(sessionKey(id, principal), (found) => {
      if (found === undefined) {
        const begun = { id, principal, startedAt: now, lastUsedAt: now, endedAt: undefined, taints: [] };
        const value: Session = { ...begun, announced: false, epoch: 0 };
        return { result: value, value };
      }
      // By another one meanwhile, or by ourselves.
      if (found.endedAt === undefined && found.lastUsedAt >= now) return { result: found };
      const announced = found.endedAt === undefined && found.announced;
      const value: Session = { ...found, endedAt: undefined, lastUsedAt: now, announced };
      return { result: value, value };
    });
  }

  /** @throws {SandboxError} `session.invalid`: it is somebody else's. */
  async #claim(id: string, principal: string): Promise<void> {
    const owner = await this.#owners.change(ownerKey(id), (found) =>
      found === undefined ? { result: principal, value: { principal } } : { result: found.principal },
    );
    if (owner !== principal)
      throw new SandboxError(
        'session.invalid',
        `the session ${JSON.stringify(id)} belongs to another principal; use an id of your own`,
      );
  }

  /** Adds taints that it does not have. The others learn of them first, unless it has ended. */
  async #add(id: string, principal: string, taints: readonly Taint[], reason: string): Promise<void> {
    const now = await this.#store.clock.now();
    const before = await this.read(id, principal);
    if (before?.endedAt === undefined)
      await this.#changeTainted(principal, id, (known) => ({
        taints: [...new Set([...(known?.taints ?? []), ...taints])],
        lastUsedAt: Math.max(known?.lastUsedAt ?? 0, before?.lastUsedAt ?? now),
      }));
    await this.#sessions.change(sessionKey(id, principal), (found) => {
      const missing = taints.filter((taint) => !found?.taints.some((known) => known.taint === taint));
      if (found === undefined || missing.length === 0) return { result: undefined };
      const added = missing.map((taint) => ({ taint, reason, at: now }));
      return { result: undefined, value: { ...found, taints: [...found.taints, ...added] } };
    });
  }

  /** Changes what the other sessions of a principal see of one; `undefined`: nothing any more. */
  async #changeTainted(
    principal: string,
    id: string,
    step: (known: Tainted['sessions'][string] | undefined) => Tainted['sessions'][string] | undefined,
  ): Promise<void> {
    const now = await this.#store.clock.now();
    const word = keyWord(id);
    await this.#tainted.change(taintedKey(principal), (found) => {
      const { [word]: known, ...others } = found?.sessions ?? {};
      const changed = step(known);
      if (JSON.stringify(changed) === JSON.stringify(known)) return { result: undefined };
      const inUse = Object.entries(others).filter(([, one]) => one.lastUsedAt > now - 2 * CONCURRENT_MS);
      const sessions = { ...Object.fromEntries(inUse), ...(changed && { [word]: changed }) };
      return { result: undefined, value: { principal, sessions } };
    });
  }
}

function infoOf({ id, principal, startedAt, lastUsedAt, endedAt, taints }: Session): SessionInfo {
  return { id, principal, startedAt, lastUsedAt, endedAt, taints };
}

const sessionKey = (id: string, principal: string) => `session.${keyWord(principal)}.${keyWord(id)}`;
const ownerKey = (id: string) => `owner.${keyWord(id)}`;
const taintedKey = (principal: string) => `tainted.${keyWord(principal)}`;
