import type { NotUnderstoodCode, SimpleCommand, Span } from '../model/command-line.ts';

/** Why a text is not understood. */
export interface Problem {
  readonly code: NotUnderstoodCode;
  readonly message: string;
  readonly span: Span | undefined;
}

/**
 * Collects what is found in one request while its texts are read. Reading goes on after a problem, so that a message
 * can also name commands that stand behind it; the first problem is the one reported.
 */
export interface Report {
  readonly commands: SimpleCommand[];
  problem: Problem | undefined;
  /** Simple commands may not be more than this, those inside the texts of runners included. */
  readonly maxCommands: number;
}

export function createReport(maxCommands: number): Report {
  return { commands: [], problem: undefined, maxCommands };
}

/** Records a problem; later ones do not replace the first. */
export function refuse(
  report: Report,
  code: NotUnderstoodCode,
  message: string,
  span: Span | undefined,
): void {
  report.problem ??= { code, message, span };
}
