import type { Command } from './command.ts';
import type { Decision } from './decision.ts';

/** How long an approval is good for; shortest first. `session`: as long as one session id; `always`: until it is revoked. */
export const APPROVAL_SCOPES = ['once', 'session', 'always'] as const;
export type ApprovalScope = (typeof APPROVAL_SCOPES)[number];

/** One simple command of a request, with what the policy said about it. */
export interface ApprovalPart {
  /** As it was written. */
  readonly source: string;
  /** Canonical path of its executable; `undefined`: none was found, or it is no program. */
  readonly executable: string | undefined;
  /** Sentences of the checks that stumbled on words of this part. */
  readonly remarks: readonly string[];
}

/**
 * Everything that a person has to see in order to decide about a command, and the fingerprint that binds the answer to
 * exactly that. A value: it is stored and shown by other processes.
 */
export interface ApprovalRequest {
  /** SHA-256, hexadecimal, of everything that matters: see `gate/approvals/fingerprint.ts`. */
  readonly fingerprint: string;
  readonly principal: string;
  readonly session: string | undefined;
  readonly command: Command;
  /** Canonical. */
  readonly cwd: string;
  readonly decision: Decision;
  readonly parts: readonly ApprovalPart[];
  /** What differs in the command's environment from what the policy gives every command: `NAME=value` or `-NAME`. */
  readonly environment: readonly string[];
  readonly profile: string;
  /** What the command would be kept from, a sentence each. */
  readonly confinement: readonly string[];
}

/** What became of a request. */
export type ApprovalAnswer =
  | {
      readonly approved: true;
      readonly scope: ApprovalScope;
      /** Who or what answered, for the audit trail: `terminal`, `command line`, `web page`, `remembered`, …. */
      readonly by: string;
    }
  | {
      readonly approved: false;
      /** `denied`: the person refused; `expired`: no answer in time; `nobody`: there is no one to ask; `failed`: asking failed. */
      readonly reason: 'denied' | 'expired' | 'nobody' | 'failed';
      readonly by: string;
      /** One sentence, for `failed`. */
      readonly detail?: string;
    };

/** A person who can be asked. Only a clear approval counts; every other answer refuses. */
export interface Approver {
  /** Settles after `timeoutMs` at the latest, with `expired`, and soon after `signal` is aborted. */
  ask(request: ApprovalRequest, options: ApprovalOptions): Promise<ApprovalAnswer>;
}

/** How an approver is to ask. */
export interface ApprovalOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}
