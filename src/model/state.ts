import type { MaybePromise } from '../base/promise.ts';
import type { TaintSharing } from '../base/words.ts';
import type {
  ApprovalAnswer,
  ApprovalGrant,
  ApprovalRequest,
  ApprovalScope,
  QueuedRequest,
} from './approval.ts';
import type { Taint } from './decision.ts';
import type { Reservation } from './gate-ports.ts';
import type { SessionInfo } from './session.ts';

/**
 * What has to be remembered, in a file beside us or a server far away, shared by every process of a user (or of a fleet).
 * Each method is atomic, and throws or rejects with a `SandboxError` `state.unusable` when the store cannot be used; the
 * caller refuses then.
 */
export interface State {
  readonly budget: BudgetStore;
  readonly approvals: ApprovalStore;
  readonly sessions: SessionStore;
  close(): MaybePromise<void>;
}

/** Actions in a sliding window of 3,600 seconds. */
export interface BudgetStore {
  /** Actions of the window, reserved ones included. */
  used(principal: string): MaybePromise<number>;
  /** `undefined`: `limit` is reached, and nothing is recorded. */
  reserve(principal: string, limit: number): MaybePromise<Reservation | undefined>;
  /** Forgets the actions of a principal; returns how many there were. */
  reset(principal: string): MaybePromise<number>;
}

/** A stored request. Times in milliseconds since 1970. */
export interface StoredApproval {
  /** Unguessable. */
  readonly id: string;
  readonly request: ApprovalRequest;
  /** `withdrawn`: its asker gave it up; `abandoned`: its asker is gone. */
  readonly state: QueuedRequest['state'];
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly scope: ApprovalScope | undefined;
  readonly answeredAt: number | undefined;
  readonly answeredBy: string | undefined;
}

/** Requests that wait for an answer, and what was answered once and for longer. */
export interface ApprovalStore {
  /**
   * Stores a request that waits; returns its id. It waits no longer than this process lives, unless `forLater`: then
   * another one comes for the answer.
   */
  post(
    request: ApprovalRequest,
    expiresAt: number,
    options?: { readonly forLater?: boolean },
  ): MaybePromise<string>;
  find(id: string): MaybePromise<StoredApproval | undefined>;
  /** Newest last; those that wait, or all of the last day. */
  list(which: 'pending' | 'all'): MaybePromise<readonly StoredApproval[]>;
  /** False: it does not wait (any more), so nothing changed. The first answer stands. */
  answer(id: string, answer: ApprovalAnswer): MaybePromise<boolean>;
  /**
   * What became of a request that its asker waits for: an answer, which is used up by this call, or `undefined` while
   * there is none. Settles what is expired.
   */
  take(id: string): MaybePromise<ApprovalAnswer | undefined>;
  /** The asker went away: a request that still waits cannot be answered any more. */
  withdraw(id: string): MaybePromise<void>;
  /** An answer that was remembered for exactly this request, in its session or for always. */
  granted(request: ApprovalRequest): MaybePromise<ApprovalGrant | undefined>;
  /** Remembers. */
  grant(request: ApprovalRequest, scope: ApprovalGrant['scope'], by: string): MaybePromise<void>;
  grants(): MaybePromise<readonly ApprovalGrant[]>;
  /** False: there is no such grant. */
  revoke(id: string): MaybePromise<boolean>;
}

/** Sessions of agents with their taints, which are never taken away. */
export interface SessionStore {
  /**
   * Notes that a session is used; makes it if there is none. `new` until it is announced. Throws `session.invalid` if it
   * belongs to another principal.
   */
  use(id: string, principal: string): MaybePromise<'new' | 'known'>;
  /** Notes that the plug-ins that are asked about a new session allowed it. */
  announce(id: string, principal: string): MaybePromise<void>;
  taint(id: string, principal: string, taint: Taint, reason: string): MaybePromise<void>;
  /**
   * Taints of the session; shared with its `user`, those of every session of the principal that is used at the same time, too:
   * the session has them from then on, whatever becomes of the others.
   */
  taints(id: string, principal: string, sharing: TaintSharing): MaybePromise<readonly Taint[]>;
  find(id: string): MaybePromise<SessionInfo | undefined>;
  /** Newest last. */
  list(principal: string): MaybePromise<readonly SessionInfo[]>;
  /** Ends a session, and what was granted for it. False: the principal has none of that id that is open. */
  end(id: string, principal: string): MaybePromise<boolean>;
}
