import { randomUUID } from 'node:crypto';
import { ERROR_CODES } from '../../errors/codes.ts';
import { SandboxError } from '../../errors/sandbox-error.ts';
import type { Taint } from '../../model/decision.ts';
import type { SandboxOptions } from '../../model/options.ts';
import { createChecker } from '../../run/assemble.ts';
import type { GateOutcome } from '../../serve/gate/ask-gate.ts';
import { visibleText } from '../../util/visible-text.ts';
import { printOut } from '../shared/print.ts';

interface AtGate {
  readonly command: string;
  readonly session: string | undefined;
  readonly tool: string | undefined;
  readonly taints: readonly Taint[];
  readonly socket: string;
  readonly sandbox: SandboxOptions;
  readonly json: boolean;
  readonly timeoutMs: number | undefined;
}

/** A little longer than people have for their answer. */
const TIMEOUT_MS = 310_000;
const EXIT = { allow: 0, deny: ERROR_CODES['command.denied'].exitStatus } as const;

/** Decides what is provably local, and asks about the rest. Returns the exit status. */
export async function checkAtGate(asked: AtGate): Promise<number> {
  // It cannot be guessed, so no other process can have put an answer there.
  const requestId = randomUUID();
  const isLocal = await isProvablyLocal(asked);
  const outcome: Omit<GateOutcome, 'by'> & { readonly by: GateOutcome['by'] | 'here' } = isLocal
    ? { decision: 'allow', by: 'here' }
    : await ask(asked, requestId);
  const { decision, reason, by } = outcome;
  if (asked.json) {
    printOut(`${JSON.stringify({ request_id: requestId, decision, reason, by })}\n`);
  } else {
    const why = reason ?? (isLocal ? 'provably local' : undefined);
    printOut(`${decision}${why === undefined ? '' : `  ${visibleText(why)}`}\n`);
  }
  return EXIT[decision];
}

/**
 * Nothing that the host would have to know: low risk, no way to the network, understood completely, names no file, and
 * nothing was seen that could give orders. Whatever else the policy says here, it is the host's that counts.
 */
async function isProvablyLocal({ command, sandbox, taints }: AtGate): Promise<boolean> {
  if (taints.length > 0) return false;
  const { judge } = await createChecker(sandbox, { kernel: 'none' });
  const judgement = judge({ command });
  const decision = await judgement.decision;
  const { verdict, risk, reach } = decision;
  if (verdict !== 'allow' || risk !== 'low' || reach !== 'local') return false;
  const effects = judgement.effects(decision);
  // Only the host knows which paths are secret: a command that names a file is sent to it.
  if ([effects.reads, effects.writes, effects.patterns, effects.searches].some((paths) => paths.length > 0))
    return false;
  return judgement.exposures(decision, effects, undefined).length === 0;
}

async function ask(asked: AtGate, requestId: string): Promise<GateOutcome> {
  const { command, session, tool, socket, timeoutMs = TIMEOUT_MS } = asked;
  const question = {
    command,
    ...(session === undefined ? {} : { session }),
    ...(tool === undefined ? {} : { tool }),
  };
  const { askGate, unaskable } = await import('../../serve/gate/ask-gate.ts');
  const problem = unaskable(question);
  if (problem !== undefined) throw new SandboxError('usage.invalid', `this cannot be asked: ${problem}`);
  return askGate(socket, question, { requestId, timeoutMs });
}
