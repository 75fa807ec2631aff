import type { Reach, Taint } from '../model/decision.ts';
import type { Review, ReviewRequest } from '../model/gate-ports.ts';

/** Longer commands are not reviewed: whoever reads only a part of one cannot say that nothing is wrong with it. */
export const MAX_COMMAND_LENGTH = 20_000;

/** What a reviewer is told. */
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
