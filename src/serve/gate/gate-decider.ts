import { randomBytes } from 'node:crypto';
import {
  createDecider,
  type DecisionPorts,
  type Objection,
  type SessionMemory,
  WITHOUT,
} from '../../gate/index.ts';
import { type Assembly, budgetOf, requestMakerOf } from '../../run/index.ts';
import type { ResultOf } from '../protocol/tables.ts';

/**
 * Decides for programs that run their commands themselves, in containers say: nothing counts on enforcement by us. An
 * `allow` says that the policy has no objection, and is on record before it is returned.
 */
export function createGateDecider(
  assembly: Assembly,
  onProblem: ((message: string) => void) | undefined,
): GateDecide {
  return async ({ command, principal, session, requestId, signal }) => {
    const decide = createDecider(await portsFor(assembly, principal, session));
    const decided = await decide({
      ...{ command, cwd: assembly.workspace, signal: () => signal, autonomy: assembly.policy.gate.autonomy },
      // A client may use the same id again.
      id: `gate:${requestId}:${randomBytes(8).toString('hex')}`,
    });
    for (const warning of decided.warnings) onProblem?.(warning);
    if (!decided.allowed) return { decision: 'deny', reason: reasonOf(decided.objection) };
    // If the commit fails, the action stays reserved, and so counted.
    await decided.ended?.({ result: undefined, started: true });
    return { decision: 'allow' };
  };
}

async function portsFor(
  assembly: Assembly,
  principal: string,
  session: string | undefined,
): Promise<DecisionPorts> {
  const { policy, stateful } = assembly;
  const budget = budgetOf(principal, stateful.state, policy.state);
  return {
    ...{ ...WITHOUT, policy, plan: undefined, principal, budget, outcome: () => 'allow' },
    judge: await assembly.judge(budget),
    makeRequest: requestMakerOf(assembly, principal, session),
    session: memoryOf(assembly, principal, session),
    approvals: stateful.approvals,
    record: stateful.record,
  };
}

/**
 * The session of requests that name none: one for each principal, which no client can name. What it was exposed to counts for
 * such requests alone, unless the policy shares taints; and for them the taints of all sessions of the principal count, or a
 * container could leave its session out in order to be asked about nothing.
 */
const sessionWithoutName = (principal: string) => `gate:${principal}`;

function memoryOf({ stateful }: Assembly, principal: string, session: string | undefined): SessionMemory {
  return {
    id: session,
    begin: async () => {
      if (session !== undefined) await stateful.startSession({ id: session, principal });
    },
    taints: async (_, sharing) => {
      const { sessions } = await stateful.state();
      if (session !== undefined) return sessions.taints(session, principal, sharing);
      return sessions.taints(sessionWithoutName(principal), principal, 'user');
    },
    taint: async (taint, reason) =>
      (await stateful.state()).sessions.taint(
        session ?? sessionWithoutName(principal),
        principal,
        taint,
        reason,
      ),
  };
}

/** What failed on this host is not told outside of it. */
function reasonOf(objection: Objection): string {
  if (objection.status === 'canceled') return 'the request was withdrawn';
  if (objection.error.code === 'audit.failed')
    return 'the decision could not be recorded, so the answer is no';
  return objection.error.message;
}

/** A question that came in whole and well-formed. */
export interface GateRequest {
  readonly requestId: string;
  readonly command: string;
  readonly session: string | undefined;
  readonly tool: string | undefined;
  /** Who asks, by what the kernel says: `uid:N`. */
  readonly principal: string;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

/** The answer. */
export type GateAnswer = ResultOf<'gate.check'>;

/** Decides, and has it on record before it returns. */
export type GateDecide = (request: GateRequest) => Promise<GateAnswer>;

/** Told after each answer, for a log. */
export type OnAnswer = (request: GateRequest, answer: GateAnswer) => void;

/** How a gate decides, within which time, and what it records. */
interface AnswererOptions {
  readonly decide: GateDecide;
  /** After that the answer is no. The decider has a time limit of its own for people; this one is for what it forgot. */
  readonly timeoutMs: number;
  readonly onAnswer?: OnAnswer | undefined;
}

/**
 * Makes of a decider one that always answers: a failure, silence and a request that nobody waits for any more are a no.
 * A late yes changes nothing.
 */
export function createAnswerer({ decide, timeoutMs, onAnswer }: AnswererOptions): GateDecide {
  return async (request) => {
    const { decision, reason } = (await settle(decide, request, timeoutMs)) ?? {};
    const answer: GateAnswer = {
      // Whatever a decider says that is not exactly a yes is a no.
      decision: decision === 'allow' ? 'allow' : 'deny',
      ...(reason === undefined ? {} : { reason }),
    };
    onAnswer?.(request, answer);
    return answer;
  };
}

const no = (reason: string): GateAnswer => ({ decision: 'deny', reason });

function settle(
  decide: GateDecide,
  request: GateRequest,
  timeoutMs: number,
): Promise<GateAnswer | undefined> {
  const { signal } = request;
  if (signal.aborted) return Promise.resolve(no(whyAborted(signal)));
  return new Promise<GateAnswer | undefined>((done) => {
    const controller = new AbortController();
    const finish = (answer: GateAnswer | undefined) => {
      clearTimeout(timer);
      signal.removeEventListener('abort', withdraw);
      done(answer);
    };
    const giveUp = (reason: string) => {
      finish(no(reason));
      controller.abort();
    };
    const withdraw = () => giveUp(whyAborted(signal));
    const timer = setTimeout(() => giveUp('no decision was made in time'), timeoutMs);
    signal.addEventListener('abort', withdraw);
    Promise.resolve()
      .then(() => decide({ ...request, signal: controller.signal }))
      .then(finish, () => finish(no('the gate could not decide')));
  });
}

function whyAborted({ reason }: AbortSignal): string {
  return typeof reason === 'string' ? reason : 'the request was withdrawn';
}
