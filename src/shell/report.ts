import type { NotUnderstoodCode, SimpleCommand, Span } from '../model/command-line.ts';

/** Why a text is not understood. */
interface Problem {
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
  /** Variables that are set by other means than an assignment. */
  readonly variables: Set<string>;
  problem: Problem | undefined;
  /** Simple commands may not be more than this, those inside the texts of runners included. */
  readonly maxCommands: number;
  /** How much text may still be read: texts within texts are read again and again. */
  remaining: number;
}

export function createReport(maxCommands: number, maxLength: number): Report {
  return { commands: [], variables: new Set(), problem: undefined, maxCommands, remaining: maxLength };
}

/** Longer messages are shortened in the middle: they quote what was written. */
const MAX_MESSAGE = 240;

/** Records a problem; later ones do not replace the first. */
export function refuse(
  report: Report,
  code: NotUnderstoodCode,
  message: string,
  span: Span | undefined,
): void {
  report.problem ??= { code, message: message.length > MAX_MESSAGE ? shortened(message) : message, span };
}

function shortened(message: string): string {
  return `${message.slice(0, MAX_MESSAGE / 2)}…${message.slice(-MAX_MESSAGE / 2)}`.replace(
    /\p{Surrogate}/gu,
    '',
  );
}
