import { z } from 'zod';
import { flatObject } from '../../base/flat-object.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { Reach, Review, ReviewRequest, Taint } from '../../model/index.ts';

/** Longer commands are not reviewed: a reviewer that reads only a part cannot say that nothing is wrong with the rest. */
export const MAX_COMMAND_LENGTH = 20_000;

/** The information that a reviewer gets. */
export interface Subject {
  /** A string for bash, or an argument vector that no shell reads. */
  readonly command: string | readonly string[];
  /** False: the launcher's own parser could make nothing of it. */
  readonly understood: boolean;
  readonly reach: Reach;
  readonly taints: readonly Taint[];
}

/** `undefined`: the command is too long. */
export function subjectOf({ line, text, reach, taints }: ReviewRequest): Subject | undefined {
  const argv =
    line?.source === undefined ? line?.commands[0]?.words.map(({ value }) => value ?? '') : undefined;
  const command = argv ?? text;
  if (lengthOf(command) > MAX_COMMAND_LENGTH) return undefined;
  return { command, understood: line !== undefined, reach, taints };
}

function lengthOf(command: string | readonly string[]): number {
  return typeof command === 'string' ? command.length : JSON.stringify(command).length;
}

/** For a command that is too long. */
export const TOO_LONG: Review = {
  outcome: 'unclear',
  reason: `it is longer than ${MAX_COMMAND_LENGTH} characters, so that nobody was asked`,
};

/** No answer that fits is longer. */
const MAX_REPLY_LENGTH = 20_000;
const MAX_REASON_LENGTH = 300;

const replySchema = z.strictObject({
  flagged: z.boolean().describe('True: the command must not run unseen.'),
  reason: z.string().describe('Why, in one sentence.'),
});

/** The review if there is no usable answer; the caller decides without it. */
export function unclear(reason: string): Review {
  return { outcome: 'unclear', reason: visibleLine(reason, MAX_REASON_LENGTH) };
}

/** Reads an answer: the one JSON object that was asked for, with nothing around it, or *unclear*. */
export function reviewOf(text: string): Review {
  if (text.length > MAX_REPLY_LENGTH) return unclear('the answer is too long');
  const reply = replySchema.safeParse(flatObject(text));
  if (!reply.success) return unclear('the answer is not the JSON object that was asked for');
  // The command may have influenced the reviewer by prompt injection, so its reason is only shown as one visible line.
  const reason = visibleLine(reply.data.reason, MAX_REASON_LENGTH);
  return { outcome: reply.data.flagged ? 'flag' : 'clear', ...(reason === '' ? {} : { reason }) };
}

/** The text of exact UTF-8; a byte order mark is a character like any other, and no JSON. Throws for other bytes. */
export function exactText(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
}
