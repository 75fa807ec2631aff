import { unlinkSync } from 'node:fs';
import { errnoOf } from '../base/errno-of.ts';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import type { EnforcementReport } from '../confine/plan/enforcement-report.ts';
import type { ApprovalRequest, Decision, ShellInfo, TurnResult } from '../model/index.ts';
import { shellNames, shellSocket } from '../run/index.ts';
import { type ConnectOptions, ServerConnection } from './core/connect.ts';
import type { CommandResult, Question } from './protocol/results.ts';
import type { ResultOf } from './protocol/tables.ts';

/** A server that does not say what it is within this time hangs, and is left alone. */
const PATIENCE_MS = 2_000;
/** Bytes of a result; it is our own server that sends it. */
const MOST_RESULT = 256 * 1024 * 1024;

/** The sessions whose servers answer. Sockets that dead servers left behind are taken away. */
export async function listShells(): Promise<readonly ShellInfo[]> {
  const found = await Promise.all(shellNames().map(askForInfo));
  return found.filter((info) => info !== undefined).sort((one, other) => one.lastUsedAt - other.lastUsedAt);
}

async function askForInfo(name: string): Promise<ShellInfo | undefined> {
  const over = new AbortController();
  const late = setTimeout(() => over.abort(), PATIENCE_MS);
  try {
    const connection = await connectOrRemove(name, { signal: over.signal });
    const { confinement: _, ...info } = (await connection?.call('session.info', { session: name })) ?? {};
    return 'id' in info ? info : undefined;
  } catch {
    return undefined;
  } finally {
    clearTimeout(late);
    over.abort();
  }
}

/**
 * Connects to a session of this user.
 * @throws {SandboxError} `session.invalid` if there is none of that name.
 */
export async function connectToSession(
  name: string,
  options: Omit<ConnectOptions, 'messageBytes'> = {},
): Promise<ServerConnection> {
  const found = await connectOrRemove(name, options);
  if (found !== undefined) return found;
  throw new SandboxError(
    'session.invalid',
    `there is no shell session ${name} (sandbox-run session list shows them)`,
  );
}

/** `undefined`: nobody listens, as its server was killed; what it left behind is taken away. */
async function connectOrRemove(
  name: string,
  options: Omit<ConnectOptions, 'messageBytes'>,
): Promise<ServerConnection | undefined> {
  const path = shellSocket(name);
  try {
    return await ServerConnection.open(path, { ...options, messageBytes: MOST_RESULT });
  } catch (error) {
    const code = errnoOf(error);
    if (code !== 'ECONNREFUSED' && code !== 'ENOENT') throw error;
    try {
      unlinkSync(path);
    } catch {
      // Somebody else did it.
    }
    return undefined;
  }
}

/** A result that was sent, again as the model has it. `report`: what `initialize` told once for all of them. */
export function receivedTurn(
  { messageForModel: _, gapAt: __, decision, ...told }: ResultOf<'session.run'>,
  report: EnforcementReport | undefined,
): TurnResult {
  // The wire schema, by which it was validated, does not have one type for each status.
  return { ...told, report, decision: decision && receivedDecision(decision) } as TurnResult;
}

/** An approval request that was received, as the model has it: what a person has to see. */
export function receivedRequest({
  question: _,
  request: __,
  expiresAt: ___,
  decision,
  ...told
}: Question): ApprovalRequest {
  return { ...told, decision: receivedDecision(decision) };
}

function receivedDecision({ reasons, ...decision }: NonNullable<CommandResult['decision']>): Decision {
  return {
    ...decision,
    reasons: reasons.map(({ verdict, ...reason }) => ({ ...reason, verdict: verdict ?? undefined })),
  };
}
