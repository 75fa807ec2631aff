import { z } from 'zod';
import { text, time, type Value } from '../../base/value.ts';
import { STATUSES } from '../../base/words.ts';
import {
  ApprovalRequest,
  Decision,
  ExecutionError,
  ExecutionResultBase,
  forModel,
  OutputBytes,
  Reason,
  ShellInfo,
  TurnResult,
  Verdict,
} from '../../model/index.ts';

/* What the server answers: values of the model in one flat shape each. */

/** A decision with the words of the command that its reasons are about. */
const SentDecision = Decision.extend({
  reasons: z.array(Reason.extend({ verdict: Verdict.nullable().describe('null: no opinion') })),
});

const { bytes: _bytes, spilled: _spilled, report: _report, ...told } = ExecutionResultBase.shape;

const commandResultFields = {
  status: z
    .enum(STATUSES)
    .describe('What became of the command. `denied` and `setup-failed`: it did not run.'),
  ok: z.boolean().describe('It ran, and exited 0.'),
  exitCode: z.number().int().optional(),
  signal: text.optional().describe('The signal that ended it.'),
  error: ExecutionError.optional().describe('Why it did not run, or which limit it exceeded.'),
  messageForModel: forModel.optional().describe('Missing if it ended by itself, and nothing was refused.'),
  ...told,
  gapAt: OutputBytes.shape.gapAt.optional().describe('With base64: at which byte the missing ones were.'),
  decision: SentDecision.optional(),
};

export const CommandResult = z.strictObject(commandResultFields);
/** A result as it is sent. */
export type CommandResult = Value<typeof CommandResult>;

const { cwdAfter, restarted } = TurnResult.options[0].shape;
export const SentTurn = z.strictObject({ ...commandResultFields, cwdAfter, restarted });

export const Question = z
  .strictObject({
    question: text.describe('Names the question in `approvals.answer`.'),
    request: z
      .union([text, z.number()])
      .optional()
      .describe(
        'Id of the request (`run`, `spawn`, `session.run`) whose command it is about; missing: it is in the queue.',
      ),
    expiresAt: time.describe('Milliseconds since 1970; without an answer until then it is refused.'),
    ...ApprovalRequest.shape,
    decision: SentDecision,
  })
  .describe(
    'What a person has to see to decide. Its texts come from the agent: show them with escapes made visible.',
  );
/** A question as it is sent. */
export type Question = Value<typeof Question>;

/** What a shell is and does, and what keeps it in. */
export const ShellShown = ShellInfo.extend({
  confinement: text.describe('What keeps its commands in, in one line.'),
});
export type ShellShown = Value<typeof ShellShown>;

/** Characters of the reason of a gate. */
export const LONGEST_REASON = 2000;

export const GateAnswered = z.strictObject({
  decision: z.enum(['allow', 'deny']),
  reason: z.string().max(LONGEST_REASON).optional().describe('One sentence for whoever asked.'),
});
