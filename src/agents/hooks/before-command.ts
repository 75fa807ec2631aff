import { realpathSync } from 'node:fs';
import { isBeneath } from '../../base/absolute-path.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { shellWords } from '../../base/shell-quote.ts';
import {
  createDecider,
  type Decided,
  type DecisionPorts,
  presentQuestion,
  type Seen,
} from '../../gate/index.ts';
import type { ApprovalRequest, SandboxOptions } from '../../model/index.ts';
import {
  type Checker,
  checkOnly,
  createChecker,
  issueAskedTicket,
  issueTicket,
  type KernelPart,
  newOnce,
  refusalForModel,
} from '../../run/index.ts';
import { currentDirectoryOf } from '../../workspace/index.ts';
import { requireAfter } from './after-event.ts';
import type { BeforeCommand, HookAnswer, HookCall, HookMode } from './hook-adapter.ts';
import { callWords, rewrittenWords } from './rewrite.ts';
import { type AgentMemory, ofAgent, recordOf } from './session-memory.ts';

/** How long a ticket waits for the person: the agent's question stays open until it is answered. */
const TICKET_LIFETIME_MS = 3_600_000;
/** How long an answer of plug-ins is valid for a command that no person is asked about; a later run asks them again. */
const ASKED_LIFETIME_MS = 300_000;
/** Rows of a command that a question shows: the agent shows all of it beside the question. */
const MOST_ROWS = 3;
const UNANSWERED =
  'It is run only after a yes. An agent that reads this got none: it was not run. Tell the user what it is for, or do it in another way.';

/** A command, where it starts, and the agent's name for the call. */
interface About {
  readonly command: string;
  readonly cwd: string;
  readonly call: string | undefined;
  readonly isBackground: boolean;
}

/** Decides about a command that an agent wants to run. Whatever fails is thrown, and is a refusal. */
export async function beforeCommand(
  event: BeforeCommand,
  options: HookCall,
  memory: AgentMemory,
  project: string | undefined,
): Promise<HookAnswer> {
  const { tool } = event;
  const checker = await openChecker(options, project, { session: memory.id, tool });
  try {
    requireAfter(checker.policy, options);
    const { command, call, isBackground } = event;
    const about = { command, call, isBackground, cwd: startOf(checker, options, event.cwd) };
    if (options.mode === 'rewrite') return await rewrite(event, options, memory, checker, about);
    const decided = await decideForAgent(checker, memory, about);
    if (!decided.allowed) return refusal(event, decided);
    await decided.ended?.({ result: undefined, started: true });
    if (decided.decision?.verdict === 'ask' && decided.seen !== undefined) {
      const { makeRequest } = await checker.ports();
      return { verdict: 'ask', reason: questionFor(requestFor(command, decided.seen, makeRequest)) };
    }
    return isForAgent(decided.seen)
      ? { verdict: 'allow', reason: 'sandbox-run: the policy allows it' }
      : { verdict: 'none' };
  } finally {
    await checker.close();
  }
}

function refusal(
  { command }: BeforeCommand,
  { decision, objection }: Decided & { readonly allowed: false },
): HookAnswer {
  if (objection.status === 'canceled') throw new SandboxError('command.denied', 'the command was given up');
  const { code, message } = objection.error;
  // What does not work is no decision: the agent is told that there is none.
  if (decision === undefined) throw new SandboxError(code, message);
  // What is allowed was said when the session began.
  return { verdict: 'deny', reason: refusalForModel({ command, code, message, decision }, undefined) };
}

/** The command runs through this program, which decides again, records and counts. */
async function rewrite(
  event: BeforeCommand,
  options: HookCall,
  memory: AgentMemory,
  checker: Checker,
  about: About,
): Promise<HookAnswer> {
  const { command, isBackground, timeoutMs: asked, tool } = event;
  // What plug-ins and reviewer say is said once, though it is decided twice where the agent asks.
  const said = new Map<string, unknown>();
  const decided = await decideForRun(checker, memory, about, said);
  if (!decided.allowed) return refusal(event, decided);
  const isQuestion = decided.decision?.verdict === 'ask';
  const timeoutMs = timeLimit(options.sandbox.timeout, checker.policy.limits.timeoutMs, asked, isBackground);
  const rewritten = {
    ...{ command, workspace: checker.workspace, session: memory.id, timeoutMs, isBackground },
    // Plug-ins are told what becomes of it.
    tool: checker.policy.hooks.plugins.length === 0 ? undefined : tool,
    asked: await proofOfAsking(checker, decided, event, isQuestion && event.canAsk),
  };
  const withWords = (words: readonly string[]) =>
    event.withCommand(shellWords([...callWords(options), ...words]), timeoutMs);
  if (!isQuestion || !event.canAsk) {
    const words = rewrittenWords({ ...rewritten, approval: undefined }, options);
    options.onRewritten?.(words);
    return {
      verdict: 'allow',
      reason: `sandbox-run: ${isQuestion ? 'it runs if somebody approves it' : 'the policy allows it'}, in the sandbox`,
      input: withWords(words),
    };
  }

  // Exactly as it will run: the search path of the agent's shell may be another one.
  const path = checker.environment.variables.PATH ?? '';
  const run = { session: memory.id, tool, timeout: timeoutMs, env: { PATH: path } };
  // Only here, as it takes time: an answer is good for a run on this very host alone.
  const running = await openChecker(options, checker.workspace, run, 'tried');
  try {
    const now = await decideForRun(running, memory, about, said);
    if (!now.allowed || now.seen === undefined)
      return refusal(event, now as Decided & { readonly allowed: false });
    const once = newOnce();
    const { makeRequest } = await running.ports();
    const request = requestFor(command, now.seen, makeRequest, once);
    const ticket = await issueTicket(
      request,
      once,
      "whoever the agent's question was answered by",
      TICKET_LIFETIME_MS,
    );
    return {
      verdict: 'ask',
      reason: questionFor(request),
      input: withWords(rewrittenWords({ ...rewritten, approval: { ticket, path } }, options)),
    };
  } finally {
    await running.close();
  }
}

/** A ticket that says that the plug-ins were asked about this command; `undefined`: none was. */
async function proofOfAsking(
  checker: Checker,
  { seen }: Decided,
  { command, tool }: BeforeCommand,
  waitsForAnswer: boolean,
): Promise<string | undefined> {
  // Those that have a say here: a checker of another kind has none.
  if (checker.stateful.hooks.length === 0 || seen === undefined) return undefined;
  const { makeRequest } = await checker.ports();
  const request = requestFor(command, seen, makeRequest);
  const { principal, session } = request;
  const { plugins } = checker.policy.hooks;
  return issueAskedTicket(
    request,
    { tool, command, cwd: seen.judgement.cwd, principal, session, plugins },
    waitsForAnswer ? TICKET_LIFETIME_MS : ASKED_LIFETIME_MS,
  );
}

const requestFor = (
  command: string,
  { decision, judgement, effects }: Seen,
  makeRequest: DecisionPorts['makeRequest'],
  once = '',
): ApprovalRequest =>
  makeRequest({
    ...{ command, cwd: judgement.cwd, decision, effects: effects() },
    ...{ changed: [], details: [], once },
  });

/** For the person that the agent asks; where there is none the model reads it, and has to know what became of the command. */
function questionFor(request: ApprovalRequest): string {
  // The agent's own, as each of its commands has it.
  const environment = request.environment.filter((variable) => !variable.startsWith('PATH='));
  return `${presentQuestion({ ...request, environment }, { commandRows: MOST_ROWS })}${UNANSWERED}`;
}

/**
 * Milliseconds; 0: none. The agent may want less than the operator's limit, never more. A command in the background has a
 * limit only if the operator gave the hook one, as a job of the library has.
 */
function timeLimit(
  ofHook: number | undefined,
  ofPolicy: number,
  asked: number | undefined,
  isBackground: boolean,
): number {
  if (isBackground) return ofHook ?? 0;
  if (asked === undefined || asked === 0) return ofPolicy;
  const whole = Math.max(1, Math.round(asked));
  return ofPolicy === 0 ? whole : Math.min(ofPolicy, whole);
}

/**
 * What decides about the command of one event. Where the agent runs the commands itself nothing counts on the kernel.
 * @throws {SandboxError} as `createChecker`.
 */
export async function openChecker(
  { mode, sandbox, around, createChecker: create = createChecker }: HookCall,
  workspace: string | undefined,
  more: SandboxOptions,
  kernel?: KernelPart,
): Promise<Checker> {
  const options = { ...sandbox, workspace: workspace ?? currentDirectoryOf(around), ...more };
  return create(options, around, { ...checkerParts(mode), ...(kernel && { kernel }) });
}

/** What decides in a mode. */
export const checkerParts = (mode: HookMode) =>
  ({ kernel: mode === 'rewrite' ? 'planned' : 'none', guards: true, records: true }) as const;

/** Where a command starts: a run of ours starts in the workspace if it cannot start where the agent is. */
function startOf({ workspace }: Checker, { mode, around }: HookCall, given: string | undefined): string {
  const cwd = given ?? currentDirectoryOf(around);
  if (mode === 'decide') return cwd;
  try {
    const real = realpathSync(cwd);
    return isBeneath(real, workspace) ? real : workspace;
  } catch {
    return workspace;
  }
}

/** The agent asks what the policy asks, and runs the command itself, if it does. */
async function decideForAgent(
  checker: Checker,
  memory: AgentMemory,
  { command, cwd, call }: About,
): Promise<Decided> {
  const ports: DecisionPorts = {
    ...(await checker.ports()),
    ...{ session: memory, approvals: 'elsewhere' },
    outcome: (seen) => (isForAgent(seen) ? 'allow' : 'left_to_agent'),
  };
  return createDecider(ports)({
    command,
    cwd,
    env: ofAgent(checker.resolved.around.env),
    id: recordOf(memory, call),
  });
}

/** The policy allows `npm test` because the sandbox holds whatever the project makes of it; where the agent runs it none does. */
function isForAgent(seen: Seen | undefined): boolean {
  return seen?.decision.verdict === 'allow' && seen.judgement.isPlain();
}

/** A run of ours follows, which decides again, counts and records: here only what is refused is on record. */
async function decideForRun(
  checker: Checker,
  memory: AgentMemory,
  { command, cwd, call, isBackground }: About,
  said: Map<string, unknown>,
): Promise<Decided> {
  const ports = await checker.ports();
  const silent: DecisionPorts = {
    ...checkOnly({ ...ports, session: memory }),
    ...{ record: ports.record, outcome: () => undefined },
  };
  // Like the run itself: a background command changes the workspace at once, because nobody waits for its end.
  const effect = isBackground ? ('direct' as const) : undefined;
  return createDecider(silent)({ command, cwd, effect, said, id: recordOf(memory, call) });
}
