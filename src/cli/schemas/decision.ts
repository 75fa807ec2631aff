import { z } from 'zod';
import { AUTONOMIES, REACHES, RISKS, TAINTS } from '../../model/decision.ts';
import { command, forModel, text, verdict } from './common.ts';

const judged = {
  verdict,
  risk: z.enum(RISKS),
  reach: z.enum(REACHES),
  reasons: z.array(
    z.strictObject({
      check: text,
      verdict: verdict.nullable().describe('null: no opinion'),
      code: text,
      message: text,
    }),
  ),
};

const answered = {
  ...judged,
  messageForModel: forModel.optional().describe('missing if the command is allowed'),
};

/** `sandbox-run check --json`. */
export const checkResult = z.strictObject(answered);

const id = z.unknown().describe('that of the line; its number if it has none');

/** A line of `sandbox-run check --batch`. */
export const batchLine = z.union([
  z.strictObject({ id, ...answered }),
  z.strictObject({ id, error: text.describe('why the line cannot be judged') }),
]);

/** A line that `sandbox-run check --batch` reads. Other keys are the caller's own. */
export const batchRequest = z.looseObject({
  id: z.unknown().optional(),
  command,
  autonomy: z.enum(AUTONOMIES).optional(),
  taint: z
    .union([z.array(z.enum(TAINTS)), text.describe('separated by commas')])
    .optional()
    .describe('what the session was exposed to'),
  approved: z.boolean().optional(),
  cwd: text.optional(),
});

/** `sandbox-run gate check --json`. */
export const gateCheck = z.strictObject({
  request_id: text,
  decision: z.enum(['allow', 'deny']),
  reason: text.optional(),
  by: z
    .enum(['here', 'host', 'nobody'])
    .describe('here: provably local; host: its answer; nobody: there was no answer that can be used'),
});
