import { z } from 'zod';
import { maybe, text, texts, time, type Value } from '../base/value.ts';
import { APPROVAL_SCOPES, CHANGE_SET_STATES, REFUSALS, REQUEST_STATES } from '../base/words.ts';
import { ChangeSet } from './change-set.ts';
import { Command, JobOrigin } from './command.ts';
import { Decision } from './decision.ts';

export const ApprovalScope = z.enum(APPROVAL_SCOPES);
export type ApprovalScope = Value<typeof ApprovalScope>;

/** One simple command of a request, with what the policy said about it. */
export const ApprovalPart = z
  .strictObject({
    source: text.describe('as it was written'),
    executable: maybe(text).describe('canonical path; missing: none was found, or it is no program'),
    remarks: texts.describe('sentences of the checks that stumbled on words of this part'),
  })
  .describe('a simple command');
export type ApprovalPart = Value<typeof ApprovalPart>;

/** A connection that a command which runs wants to make, to what the policy does not list. */
export const WantedConnection = z.strictObject({
  host: text.describe('the name that led there, or the address'),
  port: z.number().int(),
  program: text.describe('as the process calls itself, which may be anything'),
  pid: z.number().int(),
});
export type WantedConnection = Value<typeof WantedConnection>;

/** A rule that would answer the question from now on. It is written only after the person who answers has seen and accepted it. */
export const ProposedRule = z.strictObject({
  program: text,
  words: texts.describe('as in commands.rules, where a last * stands for any further words'),
  directory: text.describe('canonical: the workspace'),
});
export type ProposedRule = Value<typeof ProposedRule>;

/**
 * Everything that a person has to see in order to decide about a command, and the fingerprint that binds the answer to
 * exactly that. It is stored, and shown by other processes.
 */
export const ApprovalRequest = z.strictObject({
  fingerprint: text.describe('SHA-256 of everything that an approval is bound to'),
  principal: text,
  session: maybe(text),
  command: Command,
  cwd: text.describe('canonical'),
  decision: Decision,
  parts: z.array(ApprovalPart),
  environment: texts.describe(
    'what differs from the variables that the policy gives every command: NAME=value or -NAME',
  ),
  profile: text,
  touches: texts
    .optional()
    .describe('what its words say that it would write or reach; missing: made by an older version'),
  lost: texts.optional().describe('files that would be gone; missing: none that is known by name'),
  reached: texts
    .optional()
    .describe(
      'hosts, remotes with their addresses, and commits that a push would send; missing: none is known',
    ),
  confinement: texts.describe('what the command would be kept from, a sentence each'),
  host: text.optional().describe('the machine that asks, where several have one queue'),
  job: JobOrigin.optional().describe('of a fleet; missing: the command is run for none'),
  overwrites: text
    .optional()
    .describe(
      'SHA-256 of the state of what it would write over: an answer that is used later is void where that changed; one that is remembered is good for other states, too',
    ),
  unseen: texts
    .optional()
    .describe(
      'what it may run that nobody can know beforehand: an answer approves whatever that then is, and is good for once only; missing: nothing that is known of',
    ),
  rule: ProposedRule.optional().describe('missing: none would answer the question'),
  connection: WantedConnection.optional().describe(
    'what is asked about while the command runs: an answer is good for every connection to this host and port; missing: the command itself',
  ),
});
export type ApprovalRequest = Value<typeof ApprovalRequest>;

/** What became of a request. */
export const ApprovalAnswer = z.union([
  z.strictObject({
    approved: z.literal(true),
    scope: ApprovalScope,
    by: text.describe('who or what answered, for the audit trail: terminal, web page, remembered, …'),
  }),
  z.strictObject({
    approved: z.literal(false),
    reason: z.enum(REFUSALS),
    by: text,
    detail: text.optional().describe('one sentence, for failed'),
  }),
]);
export type ApprovalAnswer = Value<typeof ApprovalAnswer>;

/** A request in the queue. */
export const QueuedRequest = z.strictObject({
  id: text,
  state: z.enum(REQUEST_STATES),
  createdAt: time,
  expiresAt: time,
  ...ApprovalRequest.shape,
});
export type QueuedRequest = Value<typeof QueuedRequest>;

/** An approval that is remembered. */
export const ApprovalGrant = z.strictObject({
  id: text,
  scope: ApprovalScope.exclude(['once']),
  session: maybe(text),
  grantedAt: time,
  grantedBy: text,
  request: ApprovalRequest,
});
export type ApprovalGrant = Value<typeof ApprovalGrant>;

/** A line of `sandbox-run approvals watch --json`. */
export const WatchedRequest = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('pending'), request: QueuedRequest }),
  z.strictObject({ type: z.literal('changes'), changes: ChangeSet }).describe('of a preview; they wait'),
  z.strictObject({
    type: z.literal('settled'),
    id: text,
    state: z
      .enum([...REQUEST_STATES, ...CHANGE_SET_STATES, 'discarded'])
      .describe('of changes: applied, undone or discarded'),
  }),
]);
/** A request, or changes, as watchers of the queue get it. */
export type WatchedRequest = Value<typeof WatchedRequest>;

/** Answers requests. Only an answer that clearly approves is an approval. */
export interface Approver {
  /** Settles after `timeoutMs` at the latest, with `expired`, and soon after `signal` is aborted. */
  ask(request: ApprovalRequest, options: ApprovalOptions): Promise<ApprovalAnswer>;
}

/** How an approver is to ask. */
export interface ApprovalOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

/** Puts rules into the policy of the user. */
export interface RuleWriter {
  /** Which text would be put into which file. */
  preview(rule: ProposedRule): { readonly path: string; readonly text: string };
  /** @throws {SandboxError} where the file cannot be changed without losing something. */
  write(rule: ProposedRule): void;
}

/** Who answers what the policy asks. Never rejects: only an answer that clearly approves is an approval. */
export interface Approvals {
  decide(request: ApprovalRequest, signal?: AbortSignal): Promise<ApprovalAnswer>;
}

/** What somebody says to a request that waits. */
export type PersonalAnswer =
  | { readonly approved: true; readonly scope: ApprovalScope }
  | { readonly approved: false };
