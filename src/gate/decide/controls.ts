import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { andThen, isPromise, type MaybePromise } from '../../base/promise.ts';
import type { CommandEffects } from '../../judge/index.ts';
import {
  type ApprovalAnswer,
  type ApprovalRequest,
  type Approvals,
  type Decision,
  type DecisionRecord,
  decisiveReason,
  type ExecutionError,
  type ExecutionResult,
  type Reason,
  type Reservation,
  type ResultRecord,
} from '../../model/index.ts';
import type { Judgement } from './judge.ts';
import {
  type Control,
  type Deciding,
  type Objection,
  type ResolvedCommand,
  type Seen,
  WITHOUT,
} from './ports.ts';
import { approvalRefusal, budgetRefusal, errorOf, refusalOf, VOID } from './refusal.ts';

/** What was decided is on record before anything starts, and how it ended afterwards. */
const recorded: Control = {
  name: 'recorded',
  isNeeded: ({ record }) => record !== WITHOUT.record,
  async decide(deciding) {
    const outcome = deciding.ports.outcome(deciding.seen);
    if (outcome !== undefined) await write(deciding, decisionRecord(deciding, outcome));
    return undefined;
  },
  async refused(deciding, objection) {
    const outcome = objection.status === 'canceled' ? 'canceled' : objection.error.code;
    // If that is what failed, there is nothing more to be done: the command does not run.
    if (outcome !== 'audit.failed') await write(deciding, decisionRecord(deciding, outcome));
  },
  async ended(deciding, { result }) {
    if (result !== undefined) await write(deciding, resultRecord(deciding, result));
  },
};

async function write({ ports, warnings }: Deciding, record: DecisionRecord | ResultRecord): Promise<void> {
  try {
    const warning = await ports.record(record);
    if (warning !== undefined) warnings.push(warning);
  } catch (error) {
    if (error instanceof SandboxError) throw error;
    // The application's own sink may throw any error.
    const why = errorMessage(error);
    throw new SandboxError('audit.failed', `the audit trail cannot be written: ${why}`, { cause: error });
  }
}

/** For a decision only: another program runs the command, if any does. */
const NO_ENFORCEMENT: DecisionRecord['report'] = {
  backend: 'none',
  passedOver: [],
  landlockAbi: 0,
  processTree: 'none',
  controls: [],
};

const about = ({ id, ports, request }: Deciding) => ({
  request: id,
  principal: ports.principal,
  session: ports.session.id,
  ...(request.job === undefined ? {} : { job: request.job }),
});

function decisionRecord(deciding: Deciding, outcome: string): DecisionRecord {
  const { request, ports, seen, resolved, approval } = deciding;
  const report = ports.plan?.report ?? NO_ENFORCEMENT;
  const { writes = [], executes = [], flags = [] } = seen?.effects() ?? {};
  return {
    type: 'decision',
    ...about(deciding),
    command: request.command,
    cwd: resolved?.cwd ?? seen?.judgement.cwd ?? request.cwd ?? '',
    decision: seen?.decision,
    approval,
    outcome,
    profile: ports.policy.profile,
    backend: report.backend,
    report,
    files: { writes, executes },
    ...(flags.length === 0 ? {} : { flags }),
  };
}

function resultRecord(deciding: Deciding, result: ExecutionResult): ResultRecord {
  const {
    status,
    exitCode,
    signal,
    error,
    durationMs,
    outputBytes,
    limit,
    leftBehind,
    connections,
    denials,
  } = result;
  return {
    type: 'result',
    ...about(deciding),
    ...{ status, exitCode, signal, error: error?.code },
    ...(limit === undefined ? {} : { limit }),
    ...(leftBehind.length === 0 ? {} : { leftBehind }),
    ...(connections === undefined ? {} : { connections }),
    ...(denials === undefined ? {} : { denials }),
    ...{ durationMs, outputBytes },
  };
}

const BY_CALLER: ApprovalAnswer = { approved: true, scope: 'once', by: 'the caller' };
const NOT_THE_SAME: Objection = { status: 'denied', error: VOID };

/** What the policy asks is answered, and what was shown is still what would run. */
const approved: Control = {
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
      const now = requestFor(deciding, seen, { details: request.details?.() ?? [], once: '' });
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
  deciding.taints = await ports.session.taints(request.taints ?? [], ports.policy.gate.taints);
  const now = await look(deciding);
  const resolvedNow = ports.resolve(request.command, request);
  return (
    now !== undefined &&
    now.decision.verdict !== 'deny' &&
    programOf(resolvedNow) === programOf(resolved) &&
    isSameRequest(requestFor({ ...deciding, resolved: resolvedNow }, now, how), shown)
  );
}

const isSameRequest = (one: ApprovalRequest, other: ApprovalRequest) =>
  one.fingerprint === other.fingerprint && one.overwrites === other.overwrites;

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
    job: request.job,
    ...how,
  });
}

/** What the policy says about a request now; `undefined`: commands are not judged. */
function look(deciding: Deciding): MaybePromise<Seen | undefined> {
  const { request, ports, resolved, taints, said } = deciding;
  const steps = resolved?.ok === true ? resolved.steps : undefined;
  const judgement = ports.judge?.({ ...request, approved: request.approved === true, taints, said, steps });
  if (judgement === undefined) return undefined;
  const { decision } = judgement;
  return isPromise(decision)
    ? decision.then((decided) => seenAs(judgement, decided))
    : seenAs(judgement, decision);
}

function seenAs(judgement: Judgement, decision: Decision): Seen {
  let effects: CommandEffects | undefined;
  return {
    judgement,
    decision,
    effects: () => {
      effects ??= judgement.effects(decision);
      return effects;
    },
  };
}

/** What the session was exposed to: known before anything is judged. */
const sessionTaints: Control = {
  name: 'session-taints',
  isNeeded: ({ session }) => session !== WITHOUT.session,
  async decide(deciding) {
    const { request, ports } = deciding;
    const { session } = ports;
    await session.begin();
    for (const taint of request.taints ?? []) await session.taint(taint, 'said with a command');
    deciding.taints = await session.taints(request.taints ?? [], ports.policy.gate.taints);
    return undefined;
  },
};

/** Which program it is, where it starts and with which variables. That there is none is said after the policy has spoken. */
const resolved: Control = {
  name: 'resolved',
  isNeeded: ({ resolve }) => resolve !== WITHOUT.resolve,
  decide(deciding) {
    const { request, ports } = deciding;
    deciding.resolved = ports.resolve(request.command, request);
    return undefined;
  },
};

/** What the policy says. A question about a program that is not there is not asked. */
const judged: Control = {
  name: 'judged',
  decide: (deciding) =>
    andThen(look(deciding), (seen): Objection | undefined => {
      deciding.seen = seen;
      const refusal = seen && refusalOf(seen.decision, deciding.request.approved === true);
      if (refusal?.code === 'command.denied') return { status: 'denied', error: refusal };
      return notResolved(deciding);
    }),
};

function notResolved({ resolved }: Deciding): Objection | undefined {
  if (resolved === undefined || resolved.ok) return undefined;
  const { code, message, path } = resolved;
  return { status: 'setup-failed', error: errorOf(code, message, path) };
}

/** What was given up meanwhile is not counted, remembered or launched. */
const wanted: Control = {
  name: 'wanted',
  isNeeded: ({ policy, session, record }) =>
    session !== WITHOUT.session ||
    record !== WITHOUT.record ||
    policy.security.maxActionsPerHour !== undefined,
  decide: ({ request }) => (request.signal?.().aborted === true ? { status: 'canceled' } : undefined),
};

const reserved = new WeakMap<Deciding, Reservation>();

/** At most so many actions an hour. What cannot be given back stays counted. */
const counted: Control = {
  name: 'counted',
  isNeeded: ({ policy, budget }) =>
    policy.security.maxActionsPerHour !== undefined && budget !== WITHOUT.budget,
  async decide(deciding) {
    const { policy, budget } = deciding.ports;
    const limit = policy.security.maxActionsPerHour;
    if (limit === undefined) return undefined;
    const reservation = await budget.reserve(limit);
    if (reservation === undefined) return { status: 'denied', error: budgetRefusal(limit) };
    reserved.set(deciding, reservation);
    const { durable, warning } = reservation;
    if (warning !== undefined) deciding.warnings.push(warning);
    if (durable !== undefined) {
      // May reject before it is awaited, or after another control has objected: that is no unhandled rejection.
      durable.catch(() => {});
      deciding.beforeStart.push(durable);
    }
    return undefined;
  },
  refused: async (deciding) => {
    try {
      await reserved.get(deciding)?.release();
    } catch {
      // The action stays counted.
    }
  },
  async ended(deciding, { started }) {
    const reservation = reserved.get(deciding);
    await (started ? reservation?.commit() : reservation?.release());
  },
};

/**
 * What the command shows to its session is remembered before it runs: afterwards it cannot be taken back. So is that of one
 * which somebody else is asked about: whether it runs is not known, and the next command may be here before that is.
 */
const exposed: Control = {
  name: 'exposed',
  isNeeded: ({ session }) => session !== WITHOUT.session,
  async decide({ ports, seen }) {
    if (seen === undefined) return undefined;
    const { judgement, decision, effects } = seen;
    for (const { taint, reason } of judgement.exposures(decision, effects(), ports.plan))
      await ports.session.taint(taint, reason);
    return undefined;
  },
};

/** Informs hooks about the result of a command that was started. */
const told: Control = {
  name: 'told',
  isNeeded: ({ tellHooks }) => tellHooks !== WITHOUT.tellHooks,
  async ended({ request, ports, resolved, warnings }, { result, started }) {
    if (!started || result === undefined) return;
    warnings.push(...(await ports.tellHooks(request.command, resolved?.cwd ?? result.cwd, result)));
  },
};

const begun = new WeakMap<Deciding, () => void>();

/** The files that it makes are its own: to remove them is no loss. */
const owned: Control = {
  name: 'owned',
  isNeeded: ({ judge, policy }) =>
    judge !== undefined && policy.security.autonomy === 'contained' && policy.workspace.undo !== 'always',
  decide(deciding) {
    const { seen } = deciding;
    if (seen !== undefined && !seen.judgement.onlyReads())
      begun.set(deciding, seen.judgement.begins(seen.effects()));
    return undefined;
  },
  follows: (deciding) => begun.has(deciding),
  ended(deciding, { result }) {
    if (result !== undefined) begun.get(deciding)?.();
  },
};

/** THE registry of controls: what a request passes on its way to the launch, in this order. */
export const CONTROLS: readonly Control[] = [
  sessionTaints,
  resolved,
  judged,
  approved,
  wanted,
  counted,
  exposed,
  recorded,
  told,
  owned,
];
