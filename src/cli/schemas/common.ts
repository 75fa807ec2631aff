import { z } from 'zod';
import { ERROR_CODES, type ErrorCode } from '../../errors/codes.ts';
import { APPROVAL_SCOPES } from '../../model/approval.ts';
import { BACKEND_IDS } from '../../model/backend.ts';
import { REACHES, RISKS, VERDICTS } from '../../model/decision.ts';
import {
  CONTROL_IDS,
  type ControlState,
  type Demand,
  type ProcessTreeTier,
} from '../../model/enforcement-report.ts';

/** Milliseconds since 1970. */
export const time = z.number().int().nonnegative();
export const count = z.number().int().nonnegative();
export const text = z.string();
export const texts = z.array(text);

/** One of the names of a union type, which the compiler compares with it. */
export const names = <Name extends string>(...all: readonly [Name, ...Name[]]) => z.enum(all);

export const verdict = z.enum(VERDICTS);
export const controlId = z.enum(CONTROL_IDS);
export const controlState = names<ControlState>('enforced', 'degraded', 'unsupported', 'off');
export const demand = names<Demand>('required', 'best-effort');
export const backend = z.enum(BACKEND_IDS);
export const processTree = names<ProcessTreeTier>('signal-scope', 'subreaper', 'none');
export const scope = z.enum(APPROVAL_SCOPES);
export const errorCode = z
  .enum(Object.keys(ERROR_CODES) as [ErrorCode, ...ErrorCode[]])
  .describe('stable; the message beside it may change');

export const command = z.union([text, texts]).describe('a shell string, or the words of a command');

export const forModel = text.describe(
  'what a model may be told: what was stopped, by which rule, what is allowed and what to do; text of others stands in quotes',
);

export const control = z.strictObject({
  id: controlId,
  state: controlState,
  demand,
  reason: text.describe('by what it is held, or what is missing'),
});

export const passedOver = z.array(z.strictObject({ backend, reason: text }));

export const report = z
  .strictObject({
    backend: z.union([backend, z.literal('none')]),
    passedOver,
    landlockAbi: count.describe('0: not used'),
    processTree,
    controls: z.array(control),
  })
  .describe('what is really enforced');

export const decision = z
  .strictObject({
    verdict,
    risk: z.enum(RISKS),
    reach: z.enum(REACHES),
    reasons: z.array(
      z.strictObject({
        check: text,
        verdict: verdict.optional().describe('missing: no opinion'),
        code: text,
        message: text,
        words: texts.describe('what it stumbled on, as it was written'),
      }),
    ),
  })
  .describe('what the policy says, and why');

export const approvalAnswer = z.union([
  z.strictObject({ approved: z.literal(true), scope, by: text }),
  z.strictObject({
    approved: z.literal(false),
    reason: z.enum(['denied', 'expired', 'nobody', 'failed']),
    by: text,
    detail: text.optional(),
  }),
]);
