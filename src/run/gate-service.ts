import { SandboxError } from '../errors/sandbox-error.ts';
import { createAnswerer } from '../gate/server/answer.ts';
import { serveSocket } from '../gate/server/connection/socket-server.ts';
import { serveFolder } from '../gate/server/folder/folder-server.ts';
import type { GateServer, OnAnswer, RefusedMessage } from '../gate/server/ports.ts';
import { createRefusalReport } from '../gate/server/refusal-report.ts';
import { ambiguousUid } from '../host/ambiguous-uid.ts';
import type { ApprovalAnswer } from '../model/approval.ts';
import type { AuditSink } from '../model/audit-record.ts';
import type { SandboxOptions } from '../model/options.ts';
import { loadAddon } from '../native/load.ts';
import { approvalRequestMaker, givenVariables } from './approval-request.ts';
import { type Checker, createChecker, guardsOf } from './checker.ts';
import { commandRules } from './command-rules.ts';
import { createGate, type Gate } from './gate.ts';
import { createGateDecider, type GateAsk, type GateQuestion } from './gate-decider.ts';
import { resolvePolicy } from './resolve-policy.ts';

import { lazyState, stateDirectory } from './state.ts';

/** Beyond what people and the reviewer may take: for the store, the disk and the judge. */
const MARGIN_MS = 15_000;

/** What a gate server is made from. */
export interface GateServiceOptions {
  /** Whose policy decides. */
  readonly sandbox: SandboxOptions;
  readonly socket?: string | undefined;
  readonly folders?: { readonly requests: string; readonly responses: string } | undefined;
  /** Besides the user of this process. */
  readonly allowedUids: readonly number[];
  readonly onAnswer?: OnAnswer;
  readonly onRefusal?: (refused: RefusedMessage, count: number) => void;
  readonly onProblem?: (message: string) => void;
}

/**
 * Starts the servers of a gate.
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

  const servers: GateServer[] = [];
  const close = async () => {
    await Promise.all(servers.map((server) => server.close()));
    await flush();
    await gate.close();
  };
  try {
    const { socket, folders, onProblem } = options;
    const { tryLock, peerCredentials: peerOf } = addon;
    if (folders !== undefined) {
      const limits = { requestAgeMs: policy.approval.timeoutMs };
      servers.push(
        await serveFolder({ ...folders, allowedUids, tryLock, answer, report, onProblem, limits }),
      );
    }
    if (socket !== undefined) {
      servers.push(await serveSocket({ path: socket, allowedUids, peerOf, tryLock, answer, report }));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { close };
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
      if (warning !== undefined) warn?.(warning);
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
