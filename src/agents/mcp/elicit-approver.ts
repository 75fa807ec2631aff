import type { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { type ElicitRequestFormParams, ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { errorMessage } from '../../base/error-message.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { presentQuestion } from '../../gate/index.ts';
import type { ApprovalAnswer, Approver } from '../../model/index.ts';

/** What is longer might be shown in part, and is not asked. */
const LONGEST_QUESTION = 16_000;
/** The longest time that timers of Node.js know, in milliseconds. */
const LONGEST_MS = 2 ** 31 - 1;
/** The most characters that are repeated of what a client says about itself or about a failure. */
const LONGEST_REMARK = 120;

const REMARK =
  'The policy of sandbox-run asks you. The agent wrote what stands behind "|", and chose the names below it.';

const answerTo = (title: string, description: string): ElicitRequestFormParams['requestedSchema'] => ({
  type: 'object',
  properties: { approve: { type: 'boolean', title, description, default: false } },
  required: ['approve'],
});
const TO_COMMAND = answerTo('Run this command', 'Yes: exactly this command runs, once.');
const TO_CONNECTION = answerTo(
  'Allow these connections',
  'Yes: this command may connect to this host and port, until it ends.',
);

/** Whether a client shows questions to its user. */
export function canElicit(server: Pick<Server, 'getClientCapabilities'>): boolean {
  return server.getClientCapabilities()?.elicitation?.form !== undefined;
}

/**
 * Asks the user of an MCP client, by elicitation. The client is trusted with the answer, as the program that the operator
 * has connected; only an accepted form that says `approve: true` approves, and only once.
 */
export function createElicitApprover(server: Server): Approver {
  return {
    async ask(request, { timeoutMs, signal }): Promise<ApprovalAnswer> {
      const by = `MCP client ${visibleLine(server.getClientVersion()?.name ?? '(unnamed)', LONGEST_REMARK)}`;
      const no = (reason: 'denied' | 'expired', how: string): ApprovalAnswer => ({
        approved: false,
        reason,
        by: `${by}, ${how}`,
      });
      const failed = (detail: string): ApprovalAnswer => ({ approved: false, reason: 'failed', by, detail });
      const message = `${presentQuestion(request)}${REMARK}`;
      if (message.length > LONGEST_QUESTION)
        return failed(
          'the command is too long to be shown as a whole; put it into a script, or run parts of it',
        );
      try {
        const { action, content } = await server.elicitInput(
          {
            mode: 'form',
            message,
            requestedSchema: request.connection === undefined ? TO_COMMAND : TO_CONNECTION,
          },
          { timeout: Math.min(timeoutMs, LONGEST_MS), ...(signal === undefined ? {} : { signal }) },
        );
        if (action === 'accept' && content?.approve === true) return { approved: true, scope: 'once', by };
        // Nobody has said no: a client without a user dismisses all questions.
        if (action === 'cancel') return failed('the question was dismissed without an answer');
        return no('denied', 'where the answer was no');
      } catch (error) {
        if (signal?.aborted === true) return failed('the call that asked has ended');
        if (error instanceof McpError && error.code === ErrorCode.RequestTimeout)
          return no('expired', 'which did not answer');
        return failed(visibleLine(errorMessage(error), LONGEST_REMARK));
      }
    },
  };
}
