import { errorMessage } from '../base/error-message.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { andThen, type MaybePromise } from '../base/promise.ts';
import { TAINTS, type TaintSharing } from '../base/words.ts';
import { loadAddon } from '../confine/native/load.ts';
import {
  type AuditOptions,
  type AuditTrail,
  type DecisionPorts,
  type EventLimit,
  type SessionMemory,
  WITHOUT,
  within,
} from '../gate/index.ts';
import { TOOL_NAME } from '../judge/index.ts';
import {
  type ActionBudget,
  type AgentSession,
  type Approvals,
  type Approver,
  type AskedPlugIns,
  type AuditSink,
  type GateOptions,
  type GitGuard,
  type Policy,
  type Reviewer,
  reviewerSettings,
  type SandboxOptions,
  type State,
  type Taint,
  type ToolHook,
} from '../model/index.ts';
import { type Environment, ensureStateDirectory } from '../workspace/index.ts';
import { operatorPolicy } from './resolve/policy-layers.ts';
import { checkSessionId, sessionOf } from './session/agent-session.ts';
import {
  auditDirectory,
  defaultPrincipal,
  hasState,
  type LazyState,
  lazyState,
  openOwnState,
  openOwnStream,
  type StateSettings,
  stateDirectory,
} from './state.ts';
import { timelyBudget, timelySink } from './timely-ports.ts';

/** Ports to everything with a memory. What the policy does not ask for is not loaded. */
export interface StatefulPorts extends Pick<DecisionPorts, 'principal' | 'once' | 'record' | 'tellHooks'> {
  readonly session: AgentSession | undefined;
  readonly budget: ActionBudget;
  readonly reviewer: Reviewer | undefined;
  readonly gitGuard: GitGuard | undefined;
  readonly hooks: readonly ToolHook[];
  readonly state: LazyState;
  /** Answers questions; `undefined`: there is nobody to ask, and no stored approval. */
  approvals(): MaybePromise<Approvals | undefined>;
  /**
   * Notes that a session is used. Rejects with `session.invalid` if it belongs to another principal, or begins and a hook
   * refuses it.
   */
  startSession(session: Pick<AgentSession, 'id' | 'principal'>): Promise<void>;
  close(): Promise<void>;
}

/** What they are made from. */
interface StatefulPortsParts {
  readonly policy: Policy;
  readonly options: Pick<SandboxOptions, 'gate' | 'principal' | 'session' | 'tool'>;
  /** Of the caller: what reviewers and plug-ins that are programs are started with. */
  readonly env: Environment;
  /** Canonical. */
  readonly workspace: string;
  /** Canonical roots that commands can write: what lies there is nobody's plug-in. */
  readonly writable: () => readonly string[];
  /** Whether decisions are recorded where the policy does not say. */
  readonly auditByDefault?: boolean;
}

/**
 * Makes the ports of one sandbox.
 * @throws {SandboxError} for a state directory, an audit key, a plug-in or a session that cannot be used.
 */
export async function createStatefulPorts(parts: StatefulPortsParts): Promise<StatefulPorts> {
  const { policy, options } = parts;
  const given = options.gate ?? {};
  const principal = principalOf(options);
  const directory = stateDirectory();
  const state = lazyState(directory, () => policy.state);
  const named = options.session;
  const session = typeof named === 'string' ? sessionOf(checkSessionId(named), principal, state) : named;
  const plugins = await pluginsOf(parts, { principal, session: session?.id });
  const hooks = [...plugins, ...(given.hooks ?? [])].map((hook) => ofTool(hook, options.tool));
  const limit = { within, timeoutMs: policy.approval.reviewerTimeoutMs };
  if (session !== undefined) await startSession(session, hooks, limit, state);
  session?.onEnd(() => tellEnd(session, hooks, limit));
  const trail = given.audit === undefined ? await trailOf(parts, directory) : undefined;

  return {
    principal,
    session,
    budget: given.budget
      ? timelyBudget(given.budget, limit.timeoutMs)
      : budgetOf(principal, state, policy.state),
    reviewer: given.reviewer ?? (await reviewerFor(parts)),
    gitGuard: given.gitGuard ?? (policy.hooks.gitGuard ? await ownGitGuard(parts.env) : undefined),
    hooks,
    once: given.once,
    record: recorder(given.audit ? timelySink(given.audit, limit.timeoutMs) : trail, policy.audit),
    state,
    approvals: () => {
      const { ask } = policy.approval;
      if (ask === 'nobody') return undefined;
      // Without anybody to ask there may still be an answer that was remembered, but not where nothing ever was.
      const asked = given.approver ?? (ask === 'terminal' ? given.terminal : undefined);
      const isAsked = asked !== undefined || ask === 'queue';
      if (!isAsked && policy.state.url === undefined && !hasState(directory)) return undefined;
      return openDesk(policy.approval, asked, given, state);
    },
    startSession: (begun) => startSession(begun, hooks, limit, state),
    tellHooks: hooks.some((hook) => hook.afterToolUse !== undefined)
      ? async (command, cwd, { status, exitCode, durationMs }) => {
          const { afterToolUse } = await import('./stateful-parts.ts');
          const input = { command, cwd, tool: TOOL_NAME };
          return afterToolUse(hooks, TOOL_NAME, input, { status, exitCode, durationMs }, limit);
        }
      : WITHOUT.tellHooks,
    close: async () => {
      await trail?.close();
      await state.close();
    },
  };
}

/** The hook as it is for commands of one tool of an agent. `tool`: `undefined`: it is not known which. */
function ofTool(hook: ToolHook, tool: string | undefined): ToolHook {
  const { afterToolUse } = hook;
  if (tool === undefined) return hook;
  return {
    name: hook.name,
    beforeToolUse: (_, input) => hook.beforeToolUse(tool, input),
    ...(afterToolUse && { afterToolUse: (_, input, result) => afterToolUse.call(hook, tool, input, result) }),
    ...(hook.sessionStart && { sessionStart: (session) => hook.sessionStart?.(session) ?? {} }),
    ...(hook.sessionEnd && { sessionEnd: (session) => hook.sessionEnd?.(session) }),
  };
}

/** One principal for everything: what is counted for one must not be approved for another. */
function principalOf({ principal, session }: StatefulPortsParts['options']): string {
  const owner = typeof session === 'object' ? session.principal : undefined;
  if (principal !== undefined && owner !== undefined && principal !== owner)
    throw new SandboxError(
      'session.invalid',
      `the session belongs to ${owner}, and the sandbox is to be of ${principal}; open a session for that one`,
    );
  return principal ?? owner ?? defaultPrincipal();
}

/** What is counted for one principal; without a server that the policy can do without, nothing is. */
export function budgetOf(
  principal: string,
  state: () => MaybePromise<State>,
  settings: StateSettings,
): ActionBudget {
  const { url } = settings;
  if (url === undefined || settings.onFailure === 'refuse')
    return {
      used: () => andThen(state(), ({ budget }) => budget.used(principal)),
      reserve: (limit) => andThen(state(), ({ budget }) => budget.reserve(principal, limit)),
    };
  return {
    used: () =>
      unlessLost(
        async () => (await state()).budget.used(principal),
        () => 0,
      ),
    reserve: (limit) =>
      unlessLost(
        async () => (await state()).budget.reserve(principal, limit),
        (why) => ({ commit: () => {}, release: () => {}, warning: `not counted: ${why}` }),
      ),
  };
}

/** Goes on with something else where the server of the state cannot be used, and nowhere else. */
async function unlessLost<T, U>(work: () => Promise<T>, instead: (why: string) => U): Promise<T | U> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SandboxError) || !error.code.startsWith('fleet.')) throw error;
    return instead(error.message);
  }
}

/** What is remembered of the session of an agent. */
export function memoryOf(
  { id, principal, taint }: AgentSession,
  state: () => MaybePromise<State>,
  { url, onFailure }: StateSettings,
): SessionMemory {
  const remembered = (given: readonly Taint[], sharing: TaintSharing) =>
    andThen(state(), ({ sessions }) =>
      andThen(sessions.use(id, principal), () =>
        andThen(sessions.taints(id, principal, sharing), (known) => [...new Set([...given, ...known])]),
      ),
    );
  if (url === undefined || onFailure === 'refuse') return { id, taint, begin: () => {}, taints: remembered };
  // The exposure of the session is unknown: it counts as exposed to everything.
  return {
    id,
    taint,
    begin: () => {},
    taints: (given, sharing) =>
      unlessLost(
        async () => remembered(given, sharing),
        () => TAINTS,
      ),
  };
}

/** A session that begins may be refused by a hook. */
async function startSession(
  { id, principal }: Pick<AgentSession, 'id' | 'principal'>,
  hooks: readonly ToolHook[],
  limit: EventLimit,
  state: () => MaybePromise<State>,
): Promise<void> {
  const begun = await (await state()).sessions.use(id, principal);
  if (begun === 'known' || !hooks.some((hook) => hook.sessionStart !== undefined)) return;
  const { sessionStart } = await import('./stateful-parts.ts');
  const answer = await sessionStart(hooks, { id, principal }, limit);
  const { sessions } = await state();
  if (answer.allowed) {
    await sessions.announce(id, principal);
    return;
  }
  await sessions.end(id, principal);
  throw new SandboxError(
    'session.invalid',
    `a hook refuses the session ${id}: ${answer.reason ?? 'it gave no reason'}`,
  );
}

/** What fails when a session ends is nobody's business any more. */
async function tellEnd(
  { id, principal }: AgentSession,
  hooks: readonly ToolHook[],
  limit: EventLimit,
): Promise<void> {
  if (!hooks.some((hook) => hook.sessionEnd !== undefined)) return;
  const { sessionEnd } = await import('./stateful-parts.ts');
  await sessionEnd(hooks, { id, principal }, limit);
}

async function pluginsOf(
  { policy, options, env, workspace, writable }: StatefulPortsParts,
  asker: Pick<AskedPlugIns, 'principal' | 'session'>,
): Promise<readonly ToolHook[]> {
  const { plugins } = policy.hooks;
  if (plugins.length === 0) return [];
  const { loadHooks, programAsker } = await import('./stateful-parts.ts');
  const { pluginsAsked } = options.gate ?? {};
  return loadHooks(plugins, {
    ...{ workspace, writable: writable() },
    askProgram: programAsker(env, policy.approval.reviewerTimeoutMs),
    wasAsked:
      pluginsAsked && ((tool, { command, cwd }) => pluginsAsked({ ...asker, tool, command, cwd, plugins })),
  });
}

async function reviewerFor({
  policy,
  env,
  workspace,
  writable,
}: StatefulPortsParts): Promise<Reviewer | undefined> {
  const reviewer = reviewerSettings(policy);
  if (reviewer === undefined) return undefined;
  const { requireTrustedProgram, reviewerOf } = await import('./stateful-parts.ts');
  if (reviewer.kind === 'command') {
    try {
      await requireTrustedProgram(reviewer.argv, { workspace, writable: writable() });
    } catch (error) {
      throw new SandboxError('hook.unusable', `the reviewer cannot be used: ${errorMessage(error)}`, {
        cause: error,
      });
    }
  }
  return reviewerOf(reviewer, env, policy.approval.reviewerTimeoutMs);
}

async function ownGitGuard(env: Environment): Promise<GitGuard> {
  const [{ createGitGuard, readAliases }, { parseShell }] = await Promise.all([
    import('./stateful-parts.ts'),
    import('../gate/decide/judgement.ts'),
  ]);
  return createGitGuard({ parse: parseShell, aliasesAt: (place) => readAliases(place, env) });
}

const KEPT_BY_DEFAULT_DAYS = 90;

/** The audit trail of the state directory. What cannot be recorded is refused, or a warning, as the policy says. */
async function trailOf(
  { policy, auditByDefault = false }: StatefulPortsParts,
  directory: string,
): Promise<AuditTrail | undefined> {
  if (!(policy.audit.enabled ?? auditByDefault)) return undefined;
  const { openAudit, loadAuditKey } = await import('./stateful-parts.ts');
  const { hmacKeyFile, onFailure, keepDays } = policy.audit;
  const path = auditDirectory(directory);
  const trail = openAudit(path, {
    lock: loadAddon(),
    hmacKey: hmacKeyFile === undefined ? undefined : loadAuditKey(hmacKeyFile),
    stream: auditStream(policy),
    // What was turned on with something else must not fill a disk.
    keepDays: keepDays ?? (policy.audit.enabled === true ? undefined : KEPT_BY_DEFAULT_DAYS),
  });
  try {
    ensureStateDirectory(directory);
    ensureStateDirectory(path);
  } catch (error) {
    // Where others can write there is no trail, whatever the policy makes of failures.
    const untrusted = error instanceof SandboxError && error.code === 'state.untrusted';
    if (onFailure === 'refuse' || untrusted) throw error;
  }
  return trail;
}

/** @throws {SandboxError} `policy.invalid` where the policy wants a stream and names no server. */
function auditStream({ audit, state }: Policy): AuditOptions['stream'] {
  if (audit.stream === 'off') return undefined;
  if (state.url === undefined)
    throw new SandboxError(
      'policy.invalid',
      `audit.stream is ${audit.stream}, and there is no server: state.url has to name one`,
    );
  return { open: () => openOwnStream(state), required: audit.stream === 'require' };
}

/** Appends a record; where the policy wants no more, a failure is a sentence instead of an exception. */
function recorder(audit: AuditSink | undefined, { onFailure }: Policy['audit']): StatefulPorts['record'] {
  if (audit === undefined) return WITHOUT.record;
  return async (record) => {
    try {
      await audit.append(record);
      return undefined;
    } catch (error) {
      if (onFailure === 'refuse') throw error;
      return `not recorded: ${errorMessage(error)}`;
    }
  };
}

async function openDesk(
  { ask, timeoutMs }: Policy['approval'],
  asked: Approver | undefined,
  { onQueued, asking, once }: GateOptions,
  state: LazyState,
): Promise<Approvals> {
  const { createApprovalDesk, createQueueApprover } = await import('./stateful-parts.ts');
  const store = () => andThen(state(), ({ approvals }) => approvals);
  const queue = () => createQueueApprover(store, { onPosted: onQueued });
  const approver = asked ?? (ask === 'queue' ? queue() : undefined);
  const desk = createApprovalDesk({ store, approver, timeoutMs });
  // Questions about connections go to the queue: the person who approved the command may have left.
  const whileItRuns =
    once === undefined || ask !== 'queue'
      ? desk
      : createApprovalDesk({ store, approver: queue(), timeoutMs });
  return {
    decide: (request, signal) => {
      if (request.connection !== undefined) return whileItRuns.decide(request, signal);
      return asking === undefined ? desk.decide(request, signal) : asking(() => desk.decide(request, signal));
    },
  };
}

/**
 * Ends a session of this user from outside, and tells the hooks of the policy. `env`: of the caller.
 * @throws {SandboxError} `session.invalid` if there is no such session that is open.
 */
export async function endSession(id: string, env: Environment, policyFile?: string): Promise<void> {
  const policy = await operatorPolicy(policyFile);
  const { state, principal } = await openOwnState(undefined, policy.state);
  const found = await state.sessions.find(id);
  await state.close();
  if (found === undefined || found.principal !== principal || found.endedAt !== undefined)
    throw new SandboxError(
      'session.invalid',
      `there is no open session ${id} of this user (sandbox-run session list shows them)`,
    );
  const session = sessionOf(
    id,
    principal,
    lazyState(stateDirectory(), () => policy.state),
  );
  // There is no workspace here; no plug-in may lie where the state is.
  const ports = await createStatefulPorts({
    policy,
    options: { session },
    env,
    workspace: stateDirectory(),
    writable: () => [],
  });
  await session.end();
  await ports.close();
}
