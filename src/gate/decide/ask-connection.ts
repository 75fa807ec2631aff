import { AsyncResource } from 'node:async_hooks';
import { errorMessage } from '../../base/error-message.ts';
import { hostAndPort } from '../../base/host-and-port.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { CommandEffects } from '../../judge/index.ts';
import type { ApprovalAnswer, Decision, EventRecord, WantedConnection } from '../../model/index.ts';
import type { Deciding } from './ports.ts';

/**
 * Asks about a connection that a command which runs wants to make. Never rejects: only an answer that clearly approves is an
 * approval, and one that cannot be recorded is none. `signal`: the command has ended.
 */
export type AskConnection = (wanted: WantedConnection, signal: AbortSignal) => Promise<ApprovalAnswer>;

/** Characters shown of the name that a program gave itself. */
const PROGRAM_CHARACTERS = 40;
const NOBODY: ApprovalAnswer = { approved: false, reason: 'nobody', by: 'desk' };
/** What is asked about is none of what the command's text says. */
const NO_EFFECTS: CommandEffects = {
  ...{ parts: [], reads: [], writes: [], executes: [], patterns: [], searches: [], flags: [] },
  text: '',
};

/** What asks about connections of a command that was allowed; `undefined`: the policy does not want that. */
export function connectionAsker(deciding: Deciding): AskConnection | undefined {
  const { network } = deciding.ports.policy;
  if (network.mode !== 'listed' || network.unlisted !== 'ask') return undefined;
  // Runs the question in the async context of the caller, so that the user who wanted the command is asked.
  return AsyncResource.bind((wanted: WantedConnection, signal: AbortSignal) => ask(deciding, wanted, signal));
}

async function ask(
  deciding: Deciding,
  wanted: WantedConnection,
  signal: AbortSignal,
): Promise<ApprovalAnswer> {
  const { request, ports, resolved } = deciding;
  try {
    const { approvals } = ports;
    const desk = typeof approvals === 'function' ? await approvals() : undefined;
    const shown = ports.makeRequest({
      ...{ command: request.command, cwd: resolved?.cwd ?? request.cwd ?? '', effects: NO_EFFECTS },
      ...{ decision: questionAbout(wanted), changed: [], details: [], once: '', connection: wanted },
      job: request.job,
    });
    const answer = desk === undefined ? NOBODY : await desk.decide(shown, signal);
    // An answer that came after the connection was given up is not recorded.
    if (!signal.aborted) await ports.record(recordOf(deciding, wanted, answer));
    return answer;
  } catch (error) {
    return { approved: false, reason: 'failed', by: 'sandbox-run', detail: errorMessage(error) };
  }
}

function questionAbout({ host, port, program, pid }: WantedConnection): Decision {
  const who = JSON.stringify(visibleLine(program, PROGRAM_CHARACTERS));
  const where = hostAndPort(host, port);
  const message = `${who} (process ${pid}) wants to reach ${where}, which the policy does not list`;
  return {
    verdict: 'ask',
    risk: 'medium',
    reach: 'network',
    reasons: [{ check: 'network', verdict: 'ask', code: 'unlisted_host', message, words: [where] }],
  };
}

function recordOf({ id, ports }: Deciding, wanted: WantedConnection, answer: ApprovalAnswer): EventRecord {
  const { host, port, program, pid } = wanted;
  const what = answer.approved ? `approved (${answer.scope})` : answer.reason;
  return {
    type: 'event',
    code: 'connection_asked',
    principal: ports.principal,
    session: ports.session?.id,
    message: `whether ${JSON.stringify(program)} may reach ${hostAndPort(host, port)}: ${what}, by ${answer.by}`,
    details: {
      ...{ request: id, host, port, program, pid, approved: answer.approved, by: answer.by },
      ...(answer.approved ? { scope: answer.scope } : { reason: answer.reason }),
    },
  };
}
