import type { Parsed, SimpleCommand } from '../model/command-line.ts';
import type { Reason, Verdict } from '../model/decision.ts';

/** Makes the reasons of one check. */
export function reasonFor(
  check: string,
): (verdict: Verdict | undefined, code: string, message: string, words: readonly string[]) => Reason {
  return (verdict, code, message, words) => ({ check, verdict, code, message, words });
}

/** What there is to judge: every command, or those that were recognised in a line that was not understood. */
export function commandsOf(parsed: Parsed): readonly SimpleCommand[] {
  return parsed.understood ? parsed.line.commands : parsed.problem.recognized;
}
