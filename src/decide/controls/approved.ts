import { decisiveReason } from '../../checks/evaluate.ts';
import type { ApprovalAnswer, ApprovalRequest, Approvals } from '../../model/approval.ts';
import type { Decision, Reason } from '../../model/decision.ts';
import type { ExecutionError } from '../../model/execution-result.ts';
import type { Control, Deciding, Objection } from '../control.ts';
import { look } from '../look.ts';
import type { ResolvedCommand, Seen } from '../ports.ts';
import { approvalRefusal, refusalOf, VOID } from '../refusal.ts';

const BY_CALLER: ApprovalAnswer = { approved: true, scope: 'once', by: 'the caller' };
const NOT_THE_SAME: Objection = { status: 'denied', error: VOID };

/** What the policy asks is answered, and what was shown is still what would run. */
export const approved: Control = {
  name: 'approved',
  decide(deciding) {
    const { request, ports, seen } = deciding;
    if (seen === undefined) return undefined;
    if (request.approved === true) {
      if (seen.decision.reasons.some(wasSettledByApproval)) deciding.approval = BY_CALLER;
      return undefined;
    }
    const asked = refusalOf(seen.decision, false);
    if (asked === undefined || ports.approvals === 'elsewhere') return undefined;
    if (typeof request.approved === 'object') {
      deciding.approval = BY_CALLER;
      const now = requestFor(deciding, seen, { details: request.detailsOfCheck?.() ?? [], once: '' });
      return now.fingerprint === request.approved.fingerprint ? undefined : NOT_THE_SAME;
    }
    return ask(deciding, seen, ports.plan === undefined ? forOthers(asked, seen.decision) : asked);
  },
};

/** A question, or what would have been one without `approved`. */
function wasSettledByApproval({ verdict, code }: Reason): boolean {
  return verdict === 'ask' || code === 'approved';
}

/** Without advice on options of a command line that another program does not use. */
function forOthers(asked: ExecutionError, decision: Decision): ExecutionError {
  const why = decisiveReason(decision)?.message ?? 'no reason was given';
  return {
    ...asked,
    message: `the policy asks before it allows this, and nobody is there to answer: ${why}`,
  };
}

async function ask(deciding: Deciding, seen: Seen, asked: ExecutionError): Promise<Objection | undefined> {
  const { request, ports } = deciding;
  const { approvals } = ports;
  const desk: Approvals | undefined = typeof approvals === 'function' ? await approvals() : undefined;
  if (desk === undefined) return { status: 'denied', error: asked };
  const how = { details: request.details?.() ?? [], once: ports.once ?? deciding.id };
  const shown = requestFor(deciding, seen, how);
  const signal = request.signal?.();
  const answer = await desk.decide(shown, signal);
  deciding.approval = answer;
  if (signal?.aborted === true) return { status: 'canceled' };
  if (!answer.approved)
    return {
      status: 'denied',
      error: approvalRefusal(asked, answer, ports.policy.approval.timeoutMs),
    };
  return (await isStill(deciding, shown, how)) ? undefined : NOT_THE_SAME;
}

/** Time has passed: what was shown must still be what would run, and not be refused. */
async function isStill(deciding: Deciding, shown: ApprovalRequest, how: HowAsked): Promise<boolean> {
  const { request, ports, resolved } = deciding;
  if (ports.session !== undefined) deciding.taints = await ports.session.taints(request.taints ?? []);
  const now = await look(deciding);
  const resolvedNow = ports.resolve?.(request.command, request);
  return (
    now !== undefined &&
    now.decision.verdict !== 'deny' &&
    programOf(resolvedNow) === programOf(resolved) &&
    requestFor({ ...deciding, resolved: resolvedNow }, now, how).fingerprint === shown.fingerprint
  );
}

const programOf = (resolved: ResolvedCommand | undefined) => (resolved?.ok === true ? resolved.program : '');

interface HowAsked {
  readonly details: readonly string[];
  readonly once: string;
}

function requestFor({ request, ports, resolved }: Deciding, seen: Seen, how: HowAsked): ApprovalRequest {
  return ports.makeRequest({
    ...{ command: request.command, cwd: seen.judgement.cwd, decision: seen.decision },
    effects: seen.effects(),
    variables: resolved?.ok === true ? resolved.variables : undefined,
    changed: Object.keys(request.env ?? {}),
    ...how,
  });
}
