import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { ApprovalDesk } from '../gate/approvals/desk.ts';
import { budgetOf } from '../gate/principal-budget.ts';
import type { GateState, MaybePromise } from '../gate/state/state.ts';
import type { Approver } from '../model/approval.ts';
import type { AuditSink } from '../model/audit-record.ts';
import type { Taint } from '../model/decision.ts';
import type { Command } from '../model/execution-request.ts';
import type { ExecutionResult } from '../model/execution-result.ts';
import type { ActionBudget, GitGuard, Reviewer, ToolHook } from '../model/gate-ports.ts';
import type { Policy } from '../model/policy.ts';
import { andThen } from '../util/promise.ts';
import type { SandboxOptions } from './sandbox-options.ts';
import { type AgentSession, checkSessionId, sessionOf } from './session.ts';
import { defaultPrincipal, lazyState, stateDirectory } from './state.ts';

/** Everything with a memory that stands between a decision and a launch. What the policy does not ask for is not loaded. */
export interface Gate {
  readonly principal: string;
  readonly session: AgentSession | undefined;
  readonly budget: ActionBudget;
  readonly reviewer: Reviewer | undefined;
  readonly gitGuard: GitGuard | undefined;
  readonly hooks: readonly ToolHook[];
  /** `undefined`: nothing is recorded. */
  readonly audit: AuditSink | undefined;
  /** Taints in force: those given and those of the session. */
  taints(given: readonly Taint[]): MaybePromise<readonly Taint[]>;
  /** Who answers; `undefined`: nobody, and nothing was ever remembered. */
  desk(): MaybePromise<ApprovalDesk | undefined>;
  /** Tells the hooks; returns sentences about those that failed. */
  afterToolUse(command: Command, cwd: string, result: ExecutionResult): Promise<readonly string[]>;
  close(): Promise<void>;
}

/** What a gate is made from. */
export interface GateParts {
  readonly policy: Policy;
  readonly options: Pick<SandboxOptions, 'gate' | 'principal' | 'session'>;
}

/**
 * Makes the gate of one sandbox.
 * @throws {SandboxError} for a state directory, an audit key, a plug-in or a session that cannot be used.
 */
export async function createGate({ policy, options }: GateParts): Promise<Gate> {
  const given = options.gate ?? {};
  const principal = options.principal ?? defaultPrincipal();
  const directory = stateDirectory();
  const state = lazyState(directory);
  const session = sessionFor(options.session, principal, state);
  if (session !== undefined) await (await state()).sessions.use(session.id, session.principal);

  return {
    principal: session?.principal ?? principal,
    session,
    budget: given.budget ?? budgetOf(principal, () => andThen(state(), (opened) => opened.budget)),
    reviewer: given.reviewer,
    gitGuard: given.gitGuard,
    hooks: given.hooks ?? [],
    audit: given.audit,
    taints: (extra) => (session === undefined ? extra : taintsOf(session, extra, state)),
    desk: () => {
      const { ask, timeoutMs } = policy.approval;
      if (ask === 'nobody') return undefined;
      // Without anybody to ask there may still be an answer that was remembered, but not where nothing ever was.
      const isAsked = given.approver !== undefined || ask === 'queue';
      if (!isAsked && !existsSync(join(directory, 'gate.db'))) return undefined;
      return openDesk(given.approver, timeoutMs, state);
    },
    afterToolUse: async () => [],
    close: async () => {},
  };
}

function sessionFor(
  session: AgentSession | string | undefined,
  principal: string,
  state: () => MaybePromise<GateState>,
): AgentSession | undefined {
  return typeof session === 'string' ? sessionOf(checkSessionId(session), principal, state) : session;
}

function taintsOf(
  { id, principal }: AgentSession,
  given: readonly Taint[],
  state: () => MaybePromise<GateState>,
): MaybePromise<readonly Taint[]> {
  return andThen(state(), ({ sessions }) =>
    andThen(sessions.use(id, principal), () =>
      andThen(sessions.taints(id, principal), (remembered) => [...new Set([...given, ...remembered])]),
    ),
  );
}

async function openDesk(
  approver: Approver | undefined,
  timeoutMs: number,
  state: () => MaybePromise<GateState>,
): Promise<ApprovalDesk> {
  const { createApprovalDesk } = await import('../gate/approvals/desk.ts');
  return createApprovalDesk({
    store: () => andThen(state(), ({ approvals }) => approvals),
    approver,
    timeoutMs,
  });
}
