import { randomBytes, randomUUID } from 'node:crypto';
import type { GateAnswer, GateDecide, GateRequest } from '../gate/server/ports.ts';
import type { GateState, MaybePromise } from '../gate/state/state.ts';
import type { ApprovalAnswer } from '../model/approval.ts';
import type { AuditSink, DecisionRecord } from '../model/audit-record.ts';
import type { Decision } from '../model/decision.ts';
import type { ExecutionError } from '../model/execution-result.ts';
import type { Policy } from '../model/policy.ts';
import type { CommandEffects } from '../policy/effects.ts';
import { decisiveReason } from '../policy/evaluate.ts';
import { exposuresOf } from './exposures.ts';
import type { Examiner } from './judge.ts';
import { approvalRefusal, budgetRefusal, refusalOf, unusableGate, VOID } from './refusal.ts';

/** What somebody is asked about a command that a container wants to run. */
export interface GateQuestion {
  readonly command: string;
  /** Canonical. */
  readonly cwd: string;
  readonly decision: Decision;
  readonly effects: CommandEffects;
  readonly principal: string;
  readonly session: string | undefined;
  /** Of this question alone. */
  readonly once: string;
}

/** Asks somebody. What is not a clear yes is a no; it settles in time. */
export type GateAsk = (question: GateQuestion, signal: AbortSignal) => Promise<ApprovalAnswer>;

/** What a decider is made of. */
export interface GateDeciderParts {
  /** Judges without counting on enforcement: it is not us who runs the command. */
  readonly examineFor: (principal: string) => Examiner;
  readonly policy: Policy;
  /** Canonical; where every command is taken to start. */
  readonly workspace: string;
  readonly state: () => MaybePromise<GateState>;
  /** Notes that a session is used; rejects if it is not the principal's, or refused. */
  readonly startSession: (session: {
    readonly id: string;
    readonly principal: string;
  }) => MaybePromise<unknown>;
  readonly ask: GateAsk;
  /** What an answer is bound to. */
  readonly fingerprintOf: (question: GateQuestion) => string;
  /** A record that cannot be written makes the answer a no. */
  readonly audit: AuditSink | undefined;
}

/** How a request was settled, before it is put on record. */
interface Settled {
  /** `undefined`: it is allowed. */
  readonly refusal: Pick<ExecutionError, 'code' | 'message'> | undefined;
  readonly decision?: Decision | undefined;
  readonly effects?: CommandEffects | undefined;
  readonly approval?: ApprovalAnswer | undefined;
  /** An action that was counted and can be given back. */
  readonly reservation?: string | undefined;
}

/** Nothing of it is enforced by us: the container runs the command, or does not. */
const NO_ENFORCEMENT: DecisionRecord['report'] = {
  backend: 'none',
  passedOver: [],
  landlockAbi: 0,
  processTree: 'none',
  controls: [],
};

/**
 * Decides for a gate server: the session and its taints, the policy, somebody who is asked, the budget. An `allow` says
 * that the policy has no objection, and is on record before it is returned.
 */
export function createGateDecider(parts: GateDeciderParts): GateDecide {
  return async (request) => {
    const { reservation, ...settled } = await settle(parts, request);
    const recorded = await record(parts, request, settled);
    const answer = answerOf(settled, recorded);
    if (reservation !== undefined) await count(parts, reservation, answer.decision);
    return answer;
  };
}

function answerOf({ refusal }: Settled, recorded: boolean): GateAnswer {
  if (refusal !== undefined) return { decision: 'deny', reason: refusal.message };
  if (recorded) return { decision: 'allow' };
  return { decision: 'deny', reason: 'the decision could not be recorded, so the answer is no' };
}

/** What cannot be given back stays counted. */
async function count(parts: GateDeciderParts, reservation: string, decision: GateAnswer['decision']) {
  try {
    const { budget } = await parts.state();
    await (decision === 'allow' ? budget.commit(reservation) : budget.release(reservation));
  } catch {
    // See above.
  }
}

async function record(parts: GateDeciderParts, request: GateRequest, settled: Settled): Promise<boolean> {
  const { command, principal, session, requestId } = request;
  const { decision, approval, effects, refusal } = settled;
  try {
    await parts.audit?.append({
      type: 'decision',
      // A client may use the same id again.
      request: `gate:${requestId}:${randomBytes(8).toString('hex')}`,
      principal,
      session,
      command,
      cwd: parts.workspace,
      decision,
      approval,
      outcome: refusal?.code ?? 'allow',
      files: { writes: effects?.writes ?? [], executes: effects?.executes ?? [] },
      profile: parts.policy.profile,
      backend: 'none',
      report: NO_ENFORCEMENT,
    });
    return true;
  } catch {
    return false;
  }
}

/**
 * What a request without a session taints: one that belongs to the principal, that no client can name, and that is in use
 * at the same time as all its others. Without it a container could leave the session out whenever it does something that
 * it does not want to be remembered.
 */
const sessionWithoutName = (principal: string) => `gate:${principal}`;

async function settle(parts: GateDeciderParts, request: GateRequest): Promise<Settled> {
  const { policy, workspace, ask } = parts;
  const { command, principal, signal } = request;
  const { session } = request;
  let settled: Omit<Settled, 'refusal'> = {};
  try {
    const { sessions, budget } = await parts.state();
    const examine = parts.examineFor(principal);
    const judge = async () => {
      const examination = examine({
        command,
        cwd: workspace,
        // Without a name: those of every session of the principal.
        taints: await sessions.taints(session ?? '', principal),
      });
      const decision = await examination.decision;
      return { decision, effects: examination.effects(decision) };
    };

    if (session !== undefined) await parts.startSession({ id: session, principal });
    const { decision, effects } = await judge();
    settled = { decision, effects };
    const objection = refusalOf(decision, false);
    if (objection !== undefined) {
      if (objection.code === 'command.denied') return { ...settled, refusal: objection };
      const once = randomUUID();
      const question = { command, cwd: workspace, decision, effects, principal, session, once };
      const asked = parts.fingerprintOf(question);
      const approval = await ask(question, signal);
      settled = { ...settled, approval };
      if (approval.approved !== true)
        return { ...settled, refusal: notApproved(objection, decision, approval, policy) };
      // Time has passed: what was shown must still be what would run, and not be refused.
      const again = await judge();
      const now = refusalOf(again.decision, true);
      if (now !== undefined) return { ...settled, refusal: now };
      if (parts.fingerprintOf({ ...question, ...again }) !== asked) return { ...settled, refusal: VOID };
    }
    if (signal.aborted) return { ...settled, refusal: WITHDRAWN };
    const limit = policy.security.maxActionsPerHour;
    if (limit !== undefined) {
      const reservation = await budget.reserve(principal, limit);
      if (reservation === undefined) return { ...settled, refusal: budgetRefusal(limit) };
      settled = { ...settled, reservation };
    }
    for (const { taint, reason } of exposuresOf(policy, undefined, decision, effects))
      await sessions.taint(session ?? sessionWithoutName(principal), principal, taint, reason);
    return { ...settled, refusal: undefined };
  } catch (error) {
    return { ...settled, refusal: unusableGate(error) };
  }
}

/** Without advice on options of a command line that nobody here has used. */
function notApproved(
  objection: ExecutionError,
  decision: Decision,
  approval: ApprovalAnswer & { readonly approved: false },
  policy: Policy,
): ExecutionError {
  const why = decisiveReason(decision)?.message ?? 'no reason was given';
  const message = `the policy asks before it allows this, and nobody is there to answer: ${why}`;
  return approvalRefusal({ ...objection, message }, approval, policy.approval.timeoutMs);
}

const WITHDRAWN = { code: 'command.denied', message: 'the request was withdrawn' } as const;
