import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Value } from '../../../base/value.ts';
import { REQUEST_STATES } from '../../../base/words.ts';
import {
  type ApprovalAnswer,
  ApprovalGrant,
  ApprovalRequest,
  ApprovalScope,
  type ApprovalStore,
  type FleetStore,
  type StoredApproval,
} from '../../../model/index.ts';
import { answerOf, DAY_MS, processAskers, unguessableId } from '../approval-store.ts';
import { Cells, keyWord } from './cells.ts';
import { epochOf, type FleetSessions } from './sessions.ts';

const Approval = z.strictObject({
  id: z.string(),
  request: ApprovalRequest,
  state: z.enum(REQUEST_STATES),
  createdAt: z.number(),
  expiresAt: z.number(),
  scope: ApprovalScope.optional(),
  answeredAt: z.number().optional(),
  answeredBy: z.string().optional(),
  asker: z.string().optional(),
  /** By which call it was answered, and taken: it knows its own where the answer to its write was lost. */
  answer: z.string().optional(),
  take: z.string().optional(),
});
type Approval = Value<typeof Approval>;

const Grant = z.strictObject({
  grant: ApprovalGrant,
  /** How often its session had ended when it was given. */
  epoch: z.number().int(),
});
type Grant = Value<typeof Grant>;

const newMark = () => randomBytes(9).toString('base64url');

/** Requests and grants of a fleet. A request is one value, a grant another, found by what it is for. */
export class FleetApprovals implements ApprovalStore {
  readonly #store: FleetStore;
  readonly #sessions: FleetSessions;
  readonly #requests: Cells<typeof Approval>;
  readonly #grants: Cells<typeof Grant>;
  readonly #askers = processAskers();

  constructor(store: FleetStore, sessions: FleetSessions) {
    this.#store = store;
    this.#sessions = sessions;
    this.#requests = new Cells(store.shortLived, Approval);
    this.#grants = new Cells(store.values, Grant);
  }

  async post(request: ApprovalRequest, expiresAt: number, { forLater = false } = {}): Promise<string> {
    const { clock } = this.#store;
    const now = await clock.now();
    const id = unguessableId();
    const asker = forLater ? undefined : this.#askers.self();
    const posted: Approval = {
      ...{ id, request, state: 'pending', createdAt: now },
      // Our own clock said when, and others go by that of the store.
      expiresAt: now + (expiresAt - clock.host()),
      ...(asker !== undefined && { asker }),
    };
    // One that is there has been written by this call.
    await this.#requests.change(requestKey(id), (found) => ({
      result: undefined,
      ...(found === undefined && { value: posted }),
    }));
    return id;
  }

  async find(id: string): Promise<StoredApproval | undefined> {
    if (!isId(id)) return undefined;
    const found = await this.#requests.read(requestKey(id));
    return found && this.#seen(found);
  }

  async list(which: 'pending' | 'all'): Promise<readonly StoredApproval[]> {
    const found = await this.#requests.list(requestKey('*'));
    const seen = await Promise.all(found.map((one) => this.#seen(one)));
    return seen
      .filter((one) => one !== undefined && (which === 'all' || one.state === 'pending'))
      .filter((one) => one !== undefined)
      .sort((one, other) => one.createdAt - other.createdAt || (one.id < other.id ? -1 : 1));
  }

  async answer(id: string, answer: ApprovalAnswer): Promise<boolean> {
    if (!isId(id)) return false;
    const mark = newMark();
    const answered = await this.#requests.change(requestKey(id), async (found) => {
      if (found?.answer === mark) return { result: found };
      const now = await this.#store.clock.now();
      if (found === undefined || this.#stateOf(found, now) !== 'pending') return { result: undefined };
      const value: Approval = {
        ...found,
        state: answer.approved ? 'approved' : 'denied',
        ...(answer.approved && { scope: answer.scope }),
        ...{ answeredAt: now, answeredBy: answer.by, answer: mark },
      };
      return { result: value, value };
    });
    // Now, because the asker may be gone by the time it would do so. Where that fails it is asked again.
    if (answered !== undefined && answer.approved && answer.scope !== 'once')
      await this.grant(answered.request, answer.scope, answer.by);
    return answered !== undefined;
  }

  async take(id: string): Promise<ApprovalAnswer | undefined> {
    if (!isId(id)) return answerOf(undefined);
    const mark = newMark();
    return this.#requests.change(requestKey(id), async (found) => {
      if (found === undefined) return { result: answerOf(undefined) };
      const state = expired(found, await this.#store.clock.now());
      if (state === 'pending') return { result: undefined };
      const isOurs = state === 'used' && found.take === mark;
      const result = answerOf({ ...viewOf(found), state: isOurs ? 'approved' : state });
      return state === 'approved' ? { result, value: { ...found, state: 'used', take: mark } } : { result };
    });
  }

  async withdraw(id: string): Promise<void> {
    if (!isId(id)) return;
    await this.#requests.change(requestKey(id), (found) => {
      const waits = found?.state === 'pending' || found?.state === 'approved';
      return { result: undefined, ...(waits && { value: { ...found, state: 'withdrawn' as const } }) };
    });
  }

  async granted(request: ApprovalRequest): Promise<ApprovalGrant | undefined> {
    const always = await this.#grants.read(grantKey(request, 'always'));
    if (always !== undefined && isFor(always, request, 'always')) return always.grant;
    if (request.session === undefined) return undefined;
    const found = await this.#grants.read(grantKey(request, 'session'));
    if (found === undefined || !isFor(found, request, 'session')) return undefined;
    return (await this.#isInForce(found)) ? found.grant : undefined;
  }

  async grant(request: ApprovalRequest, scope: ApprovalGrant['scope'], by: string): Promise<void> {
    const session = scope === 'session' ? request.session : undefined;
    // For a session where there is none it would never hold.
    if (scope === 'session' && session === undefined) return;
    const known = session === undefined ? undefined : await this.#sessions.read(session, request.principal);
    // What was approved for a session that has ended since is over with it.
    if (known?.endedAt !== undefined) return;
    const grant = {
      ...{ id: unguessableId(), scope, grantedAt: await this.#store.clock.now(), grantedBy: by, request },
      session,
    };
    // Replaces an equal grant: revoking the one that is shown must not leave a second one behind.
    await this.#grants.change(grantKey(request, scope), (found) =>
      found?.grant.id === grant.id
        ? { result: undefined }
        : { result: undefined, value: { grant, epoch: epochOf(known) } },
    );
  }

  async grants(): Promise<readonly ApprovalGrant[]> {
    const found = await this.#grants.list('grant.>');
    const inForce = await Promise.all(found.map((one) => this.#isInForce(one)));
    return found
      .filter((_, index) => inForce[index])
      .map(({ grant }) => grant)
      .sort((one, other) => one.grantedAt - other.grantedAt || (one.id < other.id ? -1 : 1));
  }

  async revoke(id: string): Promise<boolean> {
    const found = (await this.#grants.list('grant.>')).find(({ grant }) => grant.id === id);
    if (found === undefined) return false;
    const { request, scope } = found.grant;
    return this.#grants.remove(grantKey(request, scope), ({ grant }) => grant.id === id);
  }

  /** One for a session ends with it, also if the session's id is used again. */
  async #isInForce({ grant, epoch }: Grant): Promise<boolean> {
    if (grant.scope === 'always') return true;
    if (grant.session === undefined) return false;
    const session = await this.#sessions.read(grant.session, grant.request.principal);
    return session?.endedAt === undefined && epochOf(session) === epoch;
  }

  /** A request with its present state, for readers of the queue; `undefined`: it has expired. */
  async #seen(found: Approval): Promise<StoredApproval | undefined> {
    const now = await this.#store.clock.now();
    if (found.createdAt < now - DAY_MS) return undefined;
    const state = this.#stateOf(found, now);
    // Only this machine knows that the asking process is gone: others must see that too.
    if (state === 'abandoned' && found.state !== state)
      await this.#requests.change(requestKey(found.id), (latest) => ({
        result: undefined,
        ...(latest?.state === found.state && { value: { ...latest, state } }),
      }));
    return { ...viewOf(found), state };
  }

  #stateOf(found: Approval, now: number): Approval['state'] {
    const state = expired(found, now);
    const waits = state === 'pending' || state === 'approved';
    return waits && found.asker !== undefined && this.#askers.isGone(found.asker) ? 'abandoned' : state;
  }
}

/** Requests, and approvals that nobody fetched, expire for all processes at the same time. */
function expired({ state, expiresAt }: Approval, now: number): Approval['state'] {
  return (state === 'pending' || state === 'approved') && expiresAt <= now ? 'expired' : state;
}

function viewOf(found: Approval): StoredApproval {
  const { id, request, state, createdAt, expiresAt, scope, answeredAt, answeredBy } = found;
  return { id, request, state, createdAt, expiresAt, scope, answeredAt, answeredBy };
}

const isId = (id: string) => /^[0-9a-f]{24}$/.test(id);
const requestKey = (id: string) => `approval.${id}`;

function grantKey(
  { principal, fingerprint, session }: ApprovalRequest,
  scope: ApprovalGrant['scope'],
): string {
  const of = `grant.${keyWord(principal)}.${keyWord(fingerprint)}`;
  return scope === 'always' ? `${of}.always` : `${of}.session-${keyWord(session ?? '')}`;
}

/** Compares the grant itself, not only its key: a client that can write values could store a grant under another request's key. */
function isFor({ grant }: Grant, request: ApprovalRequest, scope: ApprovalGrant['scope']): boolean {
  return (
    grant.scope === scope &&
    grant.request.fingerprint === request.fingerprint &&
    grant.request.principal === request.principal &&
    (scope === 'always' || grant.session === request.session)
  );
}
