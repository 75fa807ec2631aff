import type { LoopValues, NotUnderstoodCode, SimpleCommand, Span } from '../../model/index.ts';

/** How much is read before a text counts as not understood. */
export interface Limits {
  /** Length of the whole source in bytes of UTF-8. */
  readonly maxBytes: number;
  /** Depth of the parser's tree within one text. */
  readonly maxDepth: number;
  readonly maxCommands: number;
  /** Words of one command. */
  readonly maxWords: number;
  /** Texts and runners within each other: `sh -c "env sh -c …"`. */
  readonly maxRunners: number;
}

export const DEFAULT_LIMITS: Limits = {
  maxBytes: 64 * 1024,
  maxDepth: 120,
  maxCommands: 500,
  maxWords: 4096,
  maxRunners: 16,
};

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
  readonly loops: LoopValues[];
  problem: Problem | undefined;
  /** Simple commands may not be more than this, those inside the texts of runners included. */
  readonly maxCommands: number;
  /** How much text may still be read: texts within texts are read again and again. */
  remaining: number;
}

export function createReport(maxCommands: number, maxLength: number): Report {
  return {
    commands: [],
    variables: new Set(),
    loops: [],
    problem: undefined,
    maxCommands,
    remaining: maxLength,
  };
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
