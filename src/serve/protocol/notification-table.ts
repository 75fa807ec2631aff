import { z } from 'zod';
import { OutputStream } from '../../model/output.ts';
import type { Value } from '../../model/value.ts';
import { REQUEST_STATES } from '../../model/words.ts';
import { idValue } from './params.ts';
import { CommandResult, Question } from './results.ts';

const output = {
  stream: OutputStream,
  data: z.string(),
  encoding: z.enum(['utf8', 'base64']),
};

/** THE table of what a server says without being asked. */
export const NOTIFICATIONS = {
  output: {
    summary:
      'Output of a command of `spawn`, or of `session.run` with `stream`, in the order of each stream.',
    params: z.union([
      z.strictObject({ command: idValue, ...output }),
      z.strictObject({ session: idValue, request: z.union([z.string(), z.number()]), ...output }),
    ]),
  },
  ended: {
    summary: 'The last word about a command of `spawn`. Its output came before; the result has none.',
    params: z.strictObject({ command: idValue, result: CommandResult }),
  },
  'approvals.requested': {
    summary: 'The policy asks whether a command of this connection may run, or one that waits in the queue.',
    params: Question,
  },
  'approvals.withdrawn': {
    summary:
      'A question has no use for an answer any more: it expired, the command was given up, or somebody else answered.',
    params: z.strictObject({
      question: z.string(),
      state: z.enum(REQUEST_STATES).optional().describe('What became of it, in the queue.'),
    }),
  },
  'approvals.queued': {
    summary: 'A command of this connection waits in the queue: `sandbox-run approvals approve ID`.',
    params: z.strictObject({ request: z.union([z.string(), z.number()]), id: z.string() }),
  },
} as const;

export type NotificationName = keyof typeof NOTIFICATIONS;
export type NotificationParams<N extends NotificationName> = Value<(typeof NOTIFICATIONS)[N]['params']>;
