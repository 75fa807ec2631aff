import type { ApprovalView } from '../../../gate/index.ts';
import type { ApprovalScope } from '../../../model/index.ts';

// What the page and its server say to each other; the page's own code is in browser/.

/** The header that carries the token. No form and no page of another origin can send it: that takes a preflight. */
export const TOKEN_HEADER = 'x-sandbox-run-token';

/** All that waits, as the page gets it whenever that changes. */
export interface PendingRequests {
  /** The server's clock. */
  readonly now: number;
  readonly requests: readonly PendingRequest[];
}

/** A request that waits. All texts are fit to be shown; the page shows them as text and knows nothing of its own. */
export interface PendingRequest extends ApprovalView {
  readonly id: string;
  readonly expiresAt: number;
  /** How it can be approved, and what each of that means. */
  readonly scopes: readonly { readonly scope: ApprovalScope; readonly meaning: string }[];
}

/** What commands changed in previews and waits, as the page gets it whenever that changes. */
export interface WaitingChanges {
  readonly sets: readonly WaitingSet[];
}

/** A change set of which something waits. Texts are fit to be shown. */
export interface WaitingSet {
  readonly id: string;
  readonly command: string;
  readonly workspace: string;
  /** The change set that its command ran on. */
  readonly on: string | undefined;
  /** How much was changed, in words. */
  readonly counts: string;
  readonly changes: readonly WaitingChange[];
  /** Further ones that are not listed. */
  readonly more: number;
}

/** One thing that was changed. */
export interface WaitingChange {
  /** The raw path, which identifies the change; not for display. */
  readonly path: string;
  /** What kind of change it is: a character. */
  readonly mark: string;
  readonly text: string;
  /** It is in the workspace already. */
  readonly isApplied: boolean;
}

/** What is asked of changes, by the path of a request; each with an id, and with a path where it is about one. */
export const CHANGE_REQUESTS = {
  diff: '/changes/diff',
  apply: '/changes/apply',
  discard: '/changes/discard',
} as const;
