import type { Parsed } from '../model/command-line.ts';
import { literalWord } from '../model/word.ts';
import { collectArgv, collectText } from './collect.ts';
import { createReport, DEFAULT_LIMITS, type Limits, type Report, refuse } from './report.ts';

/** What may be set for one call; everything has a default. */
interface ParseOptions extends Partial<Limits> {
  /** The shell that is to run it has run others before. */
  readonly inSession?: boolean;
}

/** Reads a string for bash: every simple command that could run, at any depth, or why it is not understood. */
export function parseShell(source: string, options: ParseOptions = {}): Parsed {
  const limits = { ...DEFAULT_LIMITS, ...options };
  return read(source, limits, (report) => {
    if (isLongerThan(source, limits.maxBytes)) {
      const message = `The command is longer than ${limits.maxBytes} bytes: put it into a file or split it.`;
      refuse(report, 'too_long', message, undefined);
    } else collectText(source, report, limits, options.inSession ?? false);
  });
}

/** Reads an argument vector: the command itself, and what it runs if it is a runner. */
export function parseArgv(argv: readonly string[]): Parsed {
  const limits = DEFAULT_LIMITS;
  return read(undefined, limits, (report) => {
    const total = argv.reduce((sum, argument) => sum + argument.length + 1, 0);
    if (argv.length === 0) refuse(report, 'syntax_error', 'There is no command.', undefined);
    else if (total > limits.maxBytes * 16)
      refuse(report, 'too_long', 'The arguments are too long.', undefined);
    else if (argv.some((argument) => argument.includes('\0') || /\p{Surrogate}/u.test(argument))) {
      refuse(report, 'bad_character', 'An argument holds a NUL or is not well-formed Unicode.', undefined);
    } else collectArgv(wordsOf(argv), report, limits);
  });
}

/** The words of an argument vector, with places as if they stood in a line with one blank between them. */
function wordsOf(argv: readonly string[]) {
  let start = 0;
  return argv.map((argument) => {
    const word = literalWord(argument, { start, end: start + argument.length });
    start += argument.length + 1;
    return word;
  });
}

function isLongerThan(source: string, bytes: number): boolean {
  if (source.length > bytes) return true;
  // A UTF-16 code unit is at most three bytes of UTF-8.
  return source.length * 3 > bytes && new TextEncoder().encode(source).length > bytes;
}

function read(source: string | undefined, limits: Limits, collect: (report: Report) => void): Parsed {
  const report = createReport(limits.maxCommands, limits.maxBytes * 2);
  try {
    collect(report);
  } catch (error) {
    // The parser, or the walk over its tree, ran out of stack or met a tree that it does not expect: bugs, or an attack.
    if (error instanceof RangeError)
      refuse(report, 'too_deep', 'The command is nested too deeply.', undefined);
    else refuse(report, 'internal', 'The command made the parser fail: write it differently.', undefined);
  }
  const { commands, variables, problem } = report;
  if (problem === undefined)
    return { understood: true, line: { source, commands, variables: [...variables] } };
  return { understood: false, problem: { ...problem, recognized: commands } };
}
