import { z } from 'zod';
import type { ApprovalAnswer, ApprovalRequest } from '../../model/approval.ts';
import type { ExecutionResult } from '../../model/execution-result.ts';
import type { ShellInfo } from '../../model/session.ts';
import { APPROVAL_SCOPES, TAINTS } from '../../model/words.ts';

/** Bytes of a message of a client, its line break not counted. */
export const MAX_CLIENT_MESSAGE = 1024 * 1024;
/** Bytes of a command: what the parser reads at most. */
export const MAX_COMMAND = 64 * 1024;
const MAX_MILLISECONDS = 365 * 24 * 3600 * 1000;

const clientMessage = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('info') }).describe('asks what the session is and does'),
  z
    .strictObject({
      type: z.literal('run'),
      command: z.string().describe('a shell string'),
      timeout: z.number().min(0).max(MAX_MILLISECONDS).optional().describe('milliseconds; 0: none'),
      approved: z.boolean().optional().describe('the user looked at exactly this command'),
      taints: z.array(z.enum(TAINTS)).optional().describe('what the session of the agent was exposed to'),
      stream: z.boolean().describe('true: output is sent as it arrives, and not with the result'),
      terminal: z.boolean().describe('the client can ask its user'),
    })
    .describe('judges a command and runs it'),
  z.strictObject({ type: z.literal('interrupt') }).describe('interrupts the command of this connection'),
  z
    .strictObject({
      type: z.literal('answer'),
      question: z.number().int().describe('of the question that is answered'),
      approved: z.boolean(),
      scope: z.enum(APPROVAL_SCOPES).optional(),
      reason: z.enum(['denied', 'expired', 'nobody', 'failed']).optional(),
    })
    .describe('what the user of the client says'),
  z.strictObject({ type: z.literal('stop') }).describe('ends the session'),
]);

/** What a client says. */
export type ClientMessage = z.infer<typeof clientMessage>;

/** A result as it is sent, and what became of the shell. */
export type SentResult = ExecutionResult & {
  readonly cwdAfter: string;
  readonly restarted: boolean;
  /** For a model, where something was stopped. */
  readonly messageForModel?: string | undefined;
};

/** What the server of a session says. `data`: base64. */
export type ServerMessage =
  | { readonly type: 'info'; readonly info: ShellInfo }
  | { readonly type: 'output'; readonly stream: 'stdout' | 'stderr'; readonly data: string }
  | {
      readonly type: 'ask';
      readonly question: number;
      readonly request: ApprovalRequest;
      readonly timeout: number;
    }
  | { readonly type: 'queued'; readonly id: string }
  | { readonly type: 'result'; readonly result: SentResult; readonly confinement: string }
  | { readonly type: 'stopped' }
  | { readonly type: 'error'; readonly code: string; readonly message: string };

/** One line of a client; `undefined`: it is no message. */
export function readClientMessage(line: Uint8Array): ClientMessage | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(line);
    return clientMessage.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Why a command is not even sent to a session; `undefined`: it is. */
export function refusedCommand(command: string): string | undefined {
  const size = Buffer.byteLength(command);
  return size <= MAX_COMMAND
    ? undefined
    : `the command has ${size} bytes, and a session takes ${MAX_COMMAND}: put it into a file and run that`;
}

/** The answer that a message of a client gives. */
export function answerOf(message: Extract<ClientMessage, { type: 'answer' }>): ApprovalAnswer {
  const by = 'terminal';
  return message.approved
    ? { approved: true, scope: message.scope ?? 'once', by }
    : { approved: false, reason: message.reason ?? 'denied', by };
}
