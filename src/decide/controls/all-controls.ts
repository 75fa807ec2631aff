import type { Reservation } from '../../model/gate-ports.ts';
import { andThen } from '../../util/promise.ts';
import type { Control, Deciding, Objection } from '../control.ts';
import { look } from '../look.ts';
import { budgetRefusal, refusalOf } from '../refusal.ts';
import { approved } from './approved.ts';
import { recorded } from './recorded.ts';

/** What the session was exposed to: known before anything is judged. */
const sessionTaints: Control = {
  name: 'session-taints',
  isNeeded: ({ session }) => session !== undefined,
  async decide(deciding) {
    const { request, ports } = deciding;
    const { session } = ports;
    if (session === undefined) return undefined;
    await session.begin?.();
    for (const taint of request.taints ?? []) await session.taint(taint, 'said with a command');
    deciding.taints = await session.taints(request.taints ?? []);
    return undefined;
  },
};

/** Which program it is, where it starts and with which variables. That there is none is said after the policy has spoken. */
const resolved: Control = {
  name: 'resolved',
  isNeeded: ({ resolve }) => resolve !== undefined,
  decide(deciding) {
    const { request, ports } = deciding;
    deciding.resolved = ports.resolve?.(request.command, request);
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
  return { status: 'setup-failed', error: { code, message, stage: undefined, errno: undefined, path } };
}

/** What was given up meanwhile is not counted, remembered or launched. */
const wanted: Control = {
  name: 'wanted',
  isNeeded: ({ policy, session, record }) =>
    session !== undefined || record !== undefined || policy.security.maxActionsPerHour !== undefined,
  decide: ({ request }) => (request.signal?.().aborted === true ? { status: 'canceled' } : undefined),
};

const reserved = new WeakMap<Deciding, Reservation>();

/** At most so many actions an hour. What cannot be given back stays counted. */
const counted: Control = {
  name: 'counted',
  isNeeded: ({ policy, budget }) => policy.security.maxActionsPerHour !== undefined && budget !== undefined,
  async decide(deciding) {
    const { policy, budget } = deciding.ports;
    const limit = policy.security.maxActionsPerHour;
    if (limit === undefined || budget === undefined) return undefined;
    const reservation = await budget.reserve(limit);
    if (reservation === undefined) return { status: 'denied', error: budgetRefusal(limit) };
    reserved.set(deciding, reservation);
    return undefined;
  },
  refused: async (deciding) => {
    try {
      await reserved.get(deciding)?.release();
    } catch {
      // It stays counted.
    }
  },
  async ended(deciding, { started }) {
    const reservation = reserved.get(deciding);
    await (started ? reservation?.commit() : reservation?.release());
  },
};

/** What the command shows to its session is remembered before it runs: afterwards it cannot be taken back. */
const exposed: Control = {
  name: 'exposed',
  isNeeded: ({ session }) => session !== undefined,
  async decide({ ports, seen, approval }) {
    // A question that is answered elsewhere: whether it runs is not known yet.
    const isOpen = ports.approvals === 'elsewhere' && seen?.decision.verdict === 'ask' && !approval;
    if (seen === undefined || isOpen) return undefined;
    const { judgement, decision, effects } = seen;
    for (const { taint, reason } of judgement.exposures(decision, effects(), ports.plan))
      await ports.session?.taint(taint, reason);
    return undefined;
  },
};

/** Hooks are told what became of a command that was started. */
const told: Control = {
  name: 'told',
  isNeeded: ({ tellHooks }) => tellHooks !== undefined,
  async ended({ request, ports, resolved, warnings }, { result, started }) {
    if (!started || result === undefined) return;
    const said = await ports.tellHooks?.(request.command, resolved?.cwd ?? result.cwd, result);
    warnings.push(...(said ?? []));
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
];
