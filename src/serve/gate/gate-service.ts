import { SandboxError } from '../../errors/sandbox-error.ts';
import { createAnswerer } from '../../gate/server/answer.ts';
import type { GateServer, OnAnswer, RefusedMessage } from '../../gate/server/ports.ts';
import { createRefusalReport } from '../../gate/server/refusal-report.ts';
import { ambiguousUid } from '../../host/ambiguous-uid.ts';
import type { ApprovalAnswer } from '../../model/approval.ts';
import type { AuditSink } from '../../model/audit-record.ts';
import type { SandboxOptions } from '../../model/options.ts';
import { loadAddon } from '../../native/load.ts';
import { approvalRequestMaker, givenVariables } from '../../run/approval-request.ts';
import { type Checker, createChecker, guardsOf } from '../../run/checker.ts';
import { commandRules } from '../../run/command-rules.ts';
import { createGate, type Gate } from '../../run/gate.ts';
import { createGateDecider, type GateAsk, type GateQuestion } from '../../run/gate-decider.ts';
import { resolvePolicy } from '../../run/resolve-policy.ts';

import { lazyState, stateDirectory } from '../../run/state.ts';
import { listenForClients } from '../core/listener.ts';
import { gateOffer } from './gate-offer.ts';

/** Beyond what people and the reviewer may take: for the store, the disk and the judge. */
const MARGIN_MS = 15_000;

/** What a gate server is made from. */
export interface GateServiceOptions {
  /** Whose policy decides. */
  readonly sandbox: SandboxOptions;
  readonly socket: string;
  /** Besides the user of this process. */
  readonly allowedUids: readonly number[];
  readonly onAnswer?: OnAnswer;
  readonly onRefusal?: (refused: RefusedMessage, count: number) => void;
  readonly onProblem: (message: string) => void;
}

/**
 * Starts a gate.
 * @throws {SandboxError} as `createChecker`; `gate.unusable`; `addon.unavailable`.
 */
export async function startGateService(options: GateServiceOptions): Promise<GateServer> {
  const addon = loadAddon();
  const allowedUids = new Set([...options.allowedUids, process.geteuid?.() ?? -1]);
  refuseAmbiguous(allowedUids);
  const resolved = await resolvePolicy(options.sandbox);
  const { policy, workspace } = resolved;
  const gate = await createGate({
    policy,
    options: options.sandbox,
    workspace,
    writable: () => [workspace, ...commandRules(resolved, undefined).writable],
    auditByDefault: true,
  });
  const checker = await createChecker(
    { ...options.sandbox, gate: { ...options.sandbox.gate, ...guardsOf(gate) } },
    { enforced: false },
  );
  const audit = auditOf(gate, options.onProblem);
  const decide = createGateDecider({
    examineFor: checker.examineFor,
    policy,
    workspace,
    state: lazyState(stateDirectory()),
    startSession: gate.startSession,
    ...askDesk(gate, checker, givenVariables(resolved)),
    audit,
  });
  const timeoutMs = policy.approval.timeoutMs + policy.approval.reviewerTimeoutMs + MARGIN_MS;
  const answer = createAnswerer({ decide, timeoutMs, onAnswer: options.onAnswer });
  const { report, flush } = createRefusalReport({ audit, onRefusal: options.onRefusal });

  const offer = gateOffer({ answer, report, onProblem: options.onProblem });
  const close = async () => {
    await flush();
    await gate.close();
  };
  try {
    const own = process.geteuid?.();
    const listener = await listenForClients(offer, {
      ...{ path: options.socket, name: 'the gate', sharedDirectory: true, addon },
      admits: ({ uid }) => allowedUids.has(uid),
      // Where others may ask everybody can connect; otherwise the mode keeps them out.
      forOthers: [...allowedUids].some((uid) => uid !== own),
    });
    return {
      close: async () => {
        await listener.close('the gate server is stopping');
        await close();
      },
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function refuseAmbiguous(uids: ReadonlySet<number>): void {
  const ambiguous = ambiguousUid();
  if (ambiguous === undefined || !uids.has(ambiguous)) return;
  throw new SandboxError(
    'gate.unusable',
    `user ${ambiguous} may not ask here: in this user namespace everybody who has no place in it looks like that; start the gate outside of it`,
  );
}

/** Rejects what could not be recorded, unless the policy wants a warning. */
function auditOf({ record }: Gate, warn: GateServiceOptions['onProblem']): AuditSink | undefined {
  if (record === undefined) return undefined;
  return {
    append: async (entry) => {
      const warning = await record(entry);
      if (warning !== undefined) warn(warning);
    },
  };
}

const NOBODY: ApprovalAnswer = { approved: false, reason: 'nobody', by: 'nobody' };

/** Asks whoever the policy names, and tells what an answer is bound to. */
function askDesk(
  gate: Gate,
  { policy, variables }: Checker,
  given: ReadonlySet<string>,
): { readonly ask: GateAsk; readonly fingerprintOf: (question: GateQuestion) => string } {
  const requestOf = ({ command, cwd, decision, effects, principal, session, once }: GateQuestion) =>
    approvalRequestMaker({ policy, plan: undefined, given, principal, session })({
      ...{ command, cwd, decision, effects, variables, once },
      ...{ changed: [], details: [] },
    });
  return {
    ask: async (question, signal) => {
      const desk = await gate.desk();
      return desk === undefined ? NOBODY : desk.decide(requestOf(question), signal);
    },
    fingerprintOf: (question) => requestOf(question).fingerprint,
  };
}
