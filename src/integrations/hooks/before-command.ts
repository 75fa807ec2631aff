import { decisiveReason } from '../../policy/evaluate.ts';
import { issueTicket, newOnce } from '../../run/approval-ticket.ts';
import { boundariesOf, refusalForModel } from '../../run/model-message.ts';
import { budgetRefusal, refusalOf } from '../../run/refusal.ts';
import { visibleLine } from '../../util/visible-text.ts';
import type { BeforeCommand, HookAnswer } from './hook-adapter.ts';
import type { HookOptions } from './hook-options.ts';
import {
  exposuresHere,
  type HookChecker,
  type JudgedCommand,
  judgeCommand,
  openChecker,
  startOf,
} from './judge-command.ts';
import { recordBefore } from './records.ts';
import { rewrittenCommand } from './rewrite.ts';
import type { SessionMemory } from './session-memory.ts';

/** How long whoever is asked may take: the agent's question stays open for as long as nobody answers. */
const TICKET_LIFETIME_MS = 3_600_000;
/** The most of a command that a question shows. */
const SHOWN_CHARACTERS = 2_000;

/** Decides about a command that an agent wants to run. Whatever fails is thrown, and is a no. */
export async function beforeCommand(
  event: BeforeCommand,
  options: HookOptions,
  memory: SessionMemory,
  project: string | undefined,
): Promise<HookAnswer> {
  const checker = await openChecker(options, project, { session: memory.id });
  try {
    const cwd = startOf(checker, options, event.cwd);
    const judged = await judgeCommand(checker, event.command, cwd, await memory.taints());
    if (judged.decision.verdict === 'deny') return await refuse(event, checker, memory, judged);
    return options.mode === 'rewrite'
      ? await rewrite(event, options, memory, { checker, judged, cwd })
      : await decide(event, checker, memory, judged);
  } finally {
    await checker.close();
  }
}

async function refuse(
  event: BeforeCommand,
  checker: HookChecker,
  memory: SessionMemory,
  judged: JudgedCommand,
  error = refusalOf(judged.decision, false) ?? budgetRefusal(0),
): Promise<HookAnswer> {
  await recordBefore(checker, event, memory, judged, error.code);
  const { command } = event;
  const { code, message } = error;
  const boundaries = checker.plan && boundariesOf(checker.plan);
  return {
    verdict: 'deny',
    reason: refusalForModel({ command, code, message, decision: judged.decision }, boundaries),
  };
}

/** The agent runs it, if it does. What it would show the agent is remembered before, as it cannot be taken back. */
async function decide(
  event: BeforeCommand,
  checker: HookChecker,
  memory: SessionMemory,
  judged: JudgedCommand,
): Promise<HookAnswer> {
  const { verdict } = judged.decision;
  const limit = checker.policy.security.maxActionsPerHour;
  // What is asked about counts as well: whether it was run cannot be known in time.
  if (limit !== undefined && !(await memory.countAction(limit)))
    return refuse(event, checker, memory, judged, budgetRefusal(limit));
  if (verdict !== 'ask')
    for (const { taint, reason } of exposuresHere(checker, judged)) await memory.taint(taint, reason);
  // The policy allows `npm test` because the sandbox holds whatever the project makes of it; here none does.
  const isAllowed = verdict === 'allow' && judged.isPlain();
  await recordBefore(checker, event, memory, judged, isAllowed ? 'allow' : 'left_to_agent');
  if (verdict === 'ask') return { verdict, reason: whyAsked(judged) };
  return isAllowed ? { verdict: 'allow', reason: 'sandbox-run: the policy allows it' } : { verdict: 'none' };
}

/** It runs through this program, which decides again, records and counts. */
async function rewrite(
  event: BeforeCommand,
  options: HookOptions,
  memory: SessionMemory,
  {
    checker,
    judged,
    cwd,
  }: { readonly checker: HookChecker; readonly judged: JudgedCommand; readonly cwd: string },
): Promise<HookAnswer> {
  const { command, isBackground, timeoutMs: asked } = event;
  const timeoutMs = timeLimit(options.sandbox.timeout, checker.policy.limits.timeoutMs, asked, isBackground);
  const about = { command, workspace: checker.workspace, session: memory.id, timeoutMs };
  const changed = (approval?: { readonly ticket: string; readonly path: string }) =>
    event.withCommand(rewrittenCommand({ ...about, approval }, options));
  if (judged.decision.verdict === 'allow')
    return {
      verdict: 'allow',
      reason: 'sandbox-run: the policy allows it, in the sandbox',
      input: changed(),
    };

  // Exactly as it will run: the search path of the agent's shell may be another one.
  const path = checker.variables.PATH ?? '';
  const env = { PATH: path };
  const run = { session: memory.id, timeout: timeoutMs, env };
  // Only here, as it takes time: an answer is good for a run on this very host alone.
  const running = await openChecker(options, checker.workspace, run, { tried: true });
  try {
    const { decision, effects, ...now } = await judgeCommand(running, command, cwd, await memory.taints());
    if (decision.verdict === 'deny')
      return await refuse(event, running, memory, { decision, effects, ...now });
    const once = newOnce();
    const request = running.approvalRequestOf({ command, cwd: now.cwd, decision, effects, once });
    const ticket = await issueTicket(
      request,
      once,
      "whoever the agent's question was answered by",
      TICKET_LIFETIME_MS,
    );
    const shown = visibleLine(command, SHOWN_CHARACTERS);
    return {
      verdict: 'ask',
      reason: `${whyAsked({ decision, effects, ...now })} In the sandbox it would run: ${shown}`,
      input: changed({ ticket, path }),
    };
  } finally {
    await running.close();
  }
}

const whyAsked = ({ decision }: JudgedCommand) =>
  `sandbox-run asks: ${visibleLine(decisiveReason(decision)?.message.replace(/\.$/, '') ?? 'no reason was given', SHOWN_CHARACTERS)}.`;

/**
 * Milliseconds; 0: none. The agent may want less than the operator's limit, never more. A command in the background has a
 * limit only if the operator gave the hook one, as a job of the library has.
 */
export function timeLimit(
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
