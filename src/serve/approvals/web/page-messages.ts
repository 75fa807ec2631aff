import type { ApprovalView } from '../../../approvals/approval-view.ts';
import type { ApprovalScope } from '../../../model/approval.ts';

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
