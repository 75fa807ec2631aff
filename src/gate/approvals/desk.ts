import { errorMessage } from '../../base/error-message.ts';
import type { MaybePromise } from '../../base/promise.ts';
import { APPROVAL_SCOPES, REFUSALS } from '../../base/words.ts';
import type {
  ApprovalAnswer,
  ApprovalGrant,
  ApprovalRequest,
  ApprovalStore,
  Approvals,
  Approver,
} from '../../model/index.ts';
import { scopesOf, whyOnlyOnce } from './presentation.ts';

/** What a desk works with. */
interface ApprovalDeskOptions {
  readonly store: () => MaybePromise<ApprovalStore>;
  /** `undefined`: there is nobody to ask. */
  readonly approver: Approver | undefined;
  /** How long somebody may take to answer. */
  readonly timeoutMs: number;
}

/** An approver that has not settled this long after its time is given up on. */
const GRACE_MS = 1_000;
/** The longest that timers know. */
const LONGEST_MS = 2 ** 31 - 1;

const failed = (detail: string): ApprovalAnswer => ({
  approved: false,
  reason: 'failed',
  by: 'desk',
  detail,
});
const CANCELED = failed('the command was given up on before there was an answer');

const isAborted = (signal: AbortSignal | undefined) => signal?.aborted === true;

/**
 * The one place that turns answers into permission: by what is remembered for exactly this request, else by asking.
 */
export function createApprovalDesk({ store, approver, timeoutMs }: ApprovalDeskOptions): Approvals {
  async function decide(request: ApprovalRequest, signal: AbortSignal | undefined): Promise<ApprovalAnswer> {
    if (isAborted(signal)) return CANCELED;
    const scopes = scopesOf(request);
    const known = await (await store()).granted(request);
    // A stored grant counts only while its scope may still be approved; otherwise the person is asked again.
    if (known !== undefined && isFor(known, request) && scopes.includes(known.scope))
      return { approved: true, scope: known.scope, by: describeGrant(known) };
    if (approver === undefined) return { approved: false, reason: 'nobody', by: 'desk' };
    // A copy: what the approver does to it changes neither what was asked nor what is remembered.
    const answer = checked(await ask(approver, structuredClone(request), timeoutMs, signal), request);
    if (isAborted(signal)) return CANCELED;
    if (answer.approved && answer.scope !== 'once')
      await (await store()).grant(request, answer.scope, answer.by);
    return answer;
  }

  return {
    async decide(request, signal) {
      try {
        return await decide(structuredClone(request), signal);
      } catch (error) {
        return failed(errorMessage(error));
      }
    },
  };
}

/** The store has looked; an answer for something else must not come from a mistake in it. */
function isFor(grant: ApprovalGrant, request: ApprovalRequest): boolean {
  if (grant.request.fingerprint !== request.fingerprint || grant.request.principal !== request.principal)
    return false;
  return grant.scope === 'always' || (request.session !== undefined && grant.session === request.session);
}

function describeGrant({ id, scope, grantedAt, grantedBy }: ApprovalGrant): string {
  const what = scope === 'always' ? 'for always' : 'for this session';
  return `remembered ${what}: ${grantedBy}, ${new Date(grantedAt).toISOString()} (grant ${id})`;
}

/** Asks, and stops waiting for an approver that does not keep its time. */
async function ask(
  approver: Approver,
  request: ApprovalRequest,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  const over = new AbortController();
  let stop = (_: ApprovalAnswer) => {};
  const stopped = new Promise<ApprovalAnswer>((resolve) => {
    stop = (answer) => {
      over.abort();
      resolve(answer);
    };
  });
  const cancel = () => stop(CANCELED);
  const timer = setTimeout(
    () => stop({ approved: false, reason: 'expired', by: 'desk' }),
    Math.min(timeoutMs + GRACE_MS, LONGEST_MS),
  );
  signal?.addEventListener('abort', cancel, { once: true });
  try {
    return await Promise.race([approver.ask(request, { timeoutMs, signal: over.signal }), stopped]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', cancel);
  }
}

/** An approver may be somebody else's code: only what is an answer in every respect is one. */
function checked(answer: unknown, request: ApprovalRequest): ApprovalAnswer {
  if (typeof answer !== 'object' || answer === null) return failed('the approver gave no answer');
  const { approved, scope, reason, by, detail } = answer as Readonly<Record<string, unknown>>;
  if (typeof by !== 'string') return failed('the approver does not say who answered');
  if (approved === false) {
    const known = REFUSALS.find((name) => name === reason) ?? 'denied';
    return { approved, reason: known, by, ...(typeof detail === 'string' ? { detail } : {}) };
  }
  const known = APPROVAL_SCOPES.find((name) => name === scope);
  if (approved !== true || known === undefined)
    return failed('the approver gave an answer without a meaning');
  if (known === 'session' && request.session === undefined)
    return { approved, scope: 'once', by: `${by} (for the session, but there is none: once)` };
  if (!scopesOf(request).includes(known))
    return { approved, scope: 'once', by: `${by} (once: ${whyOnlyOnce(request)})` };
  return { approved, scope: known, by };
}
