import { literalWord, type Parsed, type SimpleCommand, type Word } from '../../model/index.ts';
import type { Dialect, Run } from '../programs/behaviour.ts';
import { runnerOf } from '../programs/program-table.ts';
import { readShell } from './adapter/read-shell.ts';
import { builtinProblem } from './builtins.ts';
import {
  both,
  changed,
  type Directories,
  type Flow,
  follow,
  followAll,
  isLost,
  joined,
  LOSING,
  moves,
  movesSomewhere,
  outermost,
  type Scope,
  START,
  type Visitor,
} from './flow.ts';
import { collectFunctions } from './functions.ts';
import { createNumbers, type Numbers } from './numbers.ts';
import { createReport, DEFAULT_LIMITS, type Limits, type Report, refuse } from './report.ts';
import { assignsAny, type RedirectedNode, type SimpleNode } from './syntax.ts';
import { badCharacter, isVariableName } from './text-checks.ts';

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
  const { commands, loops, problem } = report;
  const variables = [...report.variables];
  if (problem === undefined) return { understood: true, line: { source, commands, variables, loops } };
  return { understood: false, problem: { ...problem, recognized: commands, variables, loops } };
}

/** Lists the commands of a text for bash. */
function collectText(source: string, report: Report, limits: Limits, inSession: boolean): void {
  const numbers = createNumbers(inSession);
  const collector = new Collector(report, limits);
  collector.text(source, outermost(true, numbers), START);
  settleNumbers(numbers, report);
}

/** Lists the command of an argument vector, and what it runs. */
function collectArgv(words: readonly Word[], report: Report, limits: Limits): void {
  const numbers = createNumbers();
  const span = { start: 0, end: words.at(-1)?.span.end ?? 0 };
  new Collector(report, limits).command(
    { words, assignments: [], redirects: [], span },
    undefined,
    outermost(false, numbers),
    START,
  );
}

/** Reports the names that were set, and refuses if a name that is evaluated as arithmetic may hold anything but a number. */
function settleNumbers(numbers: Numbers, report: Report): void {
  for (const name of numbers.implicit) report.variables.add(name);
  const [evaluated] = numbers.evaluated;
  if (evaluated !== undefined) {
    const { name, span } = evaluated;
    const message = `What is assigned to ${name} is evaluated as arithmetic and could hold code: only a number that is written out is understood there.`;
    refuse(report, 'construct', message, span);
  }
  for (const { name, span, why, sure } of numbers.needed) {
    const isNumber = sure.has(name) || numbers.trusted.has(name);
    if (isNumber && !numbers.tainted.has(name) && !numbers.arrays.has(name)) continue;
    const message =
      why === 'unquoted'
        ? `$${name} could be several words, and one of them an operator: quote it.`
        : `${name} is evaluated as arithmetic and could hold code: only a variable is understood there to which this script surely assigned a number before, and nothing else ever.`;
    refuse(report, why === 'unquoted' ? 'builtin' : 'construct', message, span);
    return;
  }
}

type Written = Pick<SimpleCommand, 'words' | 'assignments' | 'redirects' | 'span'>;

class Collector implements Visitor {
  private readonly report: Report;
  private readonly limits: Limits;

  constructor(report: Report, limits: Limits) {
    this.report = report;
    this.limits = limits;
  }

  /** A whole text, in the shell that the scope describes. */
  text(source: string, scope: Scope, directories: Directories, mayDefine = true): Flow {
    const bad = badCharacter(source);
    if (bad !== undefined) {
      refuse(this.report, 'bad_character', bad, scope.place);
      return both(undefined);
    }
    const { report, limits } = this;
    report.remaining -= source.length;
    if (report.remaining < 0) {
      refuse(report, 'too_long', 'The texts that run each other are too long.', scope.place);
      return both(undefined);
    }
    const tree = readShell(source, {
      report,
      numbers: scope.numbers,
      maxDepth: limits.maxDepth,
      place: scope.place,
    });
    const functions = collectFunctions(tree, report, scope.functions);
    if (!mayDefine && functions !== scope.functions) {
      refuse(report, 'construct', 'A function defined inside eval or trap is not understood.', scope.place);
    }
    const lost = scope.lost || assignsAny(tree, LOSING);
    const moving = scope.moving || movesSomewhere(tree);
    return follow(tree, { ...scope, functions, lost, moving }, directories, this);
  }

  simple(node: SimpleNode, scope: Scope, directories: Directories): Flow {
    const { words, assignments, redirects, span } = node;
    const index = this.emit({ words, assignments, redirects, span }, scope, directories);
    followAll(node.substitutions, scope, directories, this);
    scope.numbers.sure = node.numeric;
    return this.call(words, index, node.input, scope, directories);
  }

  redirects({ redirects, span }: RedirectedNode, scope: Scope, directories: Directories): void {
    this.emit({ words: [], assignments: [], redirects, span }, scope, directories);
  }

  /** A command that is given as words. */
  command(written: Written, input: Word | undefined, scope: Scope, directories: Directories): Flow {
    return this.call(written.words, this.emit(written, scope, directories), input, scope, directories);
  }

  private emit(written: Written, scope: Scope, directories: Directories): number {
    const { report } = this;
    if (written.words.length + written.assignments.length + written.redirects.length > this.limits.maxWords) {
      const message = `A command has more than ${this.limits.maxWords} words: use xargs or a file.`;
      refuse(report, 'too_long', message, written.span);
      return report.commands.length - 1;
    }
    if (report.commands.length >= report.maxCommands) {
      refuse(
        report,
        'too_many_commands',
        `There are more than ${report.maxCommands} commands: split them.`,
        written.span,
      );
      return report.commands.length - 1;
    }
    const name = written.words[0]?.value;
    report.commands.push({
      ...written,
      background: scope.background,
      runBy: scope.runBy,
      ...(scope.inShell && name !== undefined && scope.functions.has(name) ? { callsFunction: true } : {}),
      ...(scope.later ? { runsLater: true } : {}),
      // No possibility at all: the place is not reached, and nothing should be built on that.
      directories: isLost(scope) || directories?.length === 0 ? undefined : directories,
    });
    return report.commands.length - 1;
  }

  private call(
    words: readonly Word[],
    index: number,
    input: Word | undefined,
    scope: Scope,
    directories: Directories,
  ): Flow {
    const [first, ...args] = words;
    if (first === undefined) return both(directories);
    if (first.value === undefined || first.value === '') {
      refuse(
        this.report,
        'dynamic_command',
        `${first.source || 'The command'} is the name of a command and must be written out.`,
        first.span,
      );
      return both(directories);
    }
    const name = first.value;
    if (scope.inShell && scope.functions.has(name)) return both(scope.moving ? undefined : directories);
    if (scope.inShell) {
      const problem = builtinProblem(name, args, scope.numbers);
      if (problem !== undefined) refuse(this.report, 'builtin', problem, first.span);
      if (name === 'unset' && args.some((word) => scope.functions.has(word.value ?? ''))) {
        refuse(this.report, 'builtin', 'A function that is taken back is not understood.', first.span);
      }
    }
    const moved = scope.inShell ? moves(name, args, directories) : undefined;
    if (moved !== undefined) return moved;
    return this.unwrap(words, name, index, input, scope, directories);
  }

  private unwrap(
    words: readonly Word[],
    name: string,
    index: number,
    input: Word | undefined,
    scope: Scope,
    directories: Directories,
  ): Flow {
    const runner = runnerOf(name, scope.inShell);
    if (runner === undefined) return both(directories);
    const result = runner(words, input);
    const place = scope.place ?? words[0]?.span;
    if ('refusal' in result) {
      const { code, message, word } = result.refusal;
      refuse(this.report, code, message, word?.span ?? place);
    }
    const { runs = [] } = result;
    if (runs.length > 0 && scope.depth >= this.limits.maxRunners) {
      refuse(this.report, 'too_deep', 'Too many programs run each other: run the last one directly.', place);
      return both(directories);
    }
    let flow = both(directories);
    for (const run of runs) flow = joined(flow, this.run(run, index, input, scope, directories));
    return flow;
  }

  private run(
    run: Run,
    index: number,
    input: Word | undefined,
    scope: Scope,
    directories: Directories,
  ): Flow {
    const start = run.directory === undefined ? directories : intoDirectory(directories, run.directory);
    const inner: Scope = { ...scope, runBy: index, depth: scope.depth + 1 };
    if (run.kind === 'argv') {
      const inShell = run.inShell === true;
      const span = { start: run.words[0]?.span.start ?? 0, end: run.words.at(-1)?.span.end ?? 0 };
      const words = run.words;
      const flow = this.command(
        { words, assignments: [], redirects: [], span },
        input,
        // `command` and `builtin` pass functions over.
        { ...inner, inShell, functions: new Set() },
        start,
      );
      return inShell ? flow : both(directories);
    }
    return this.innerShell(run, inner, start, directories);
  }

  private innerShell(
    run: Extract<Run, { readonly kind: 'text' }>,
    scope: Scope,
    start: Directories,
    directories: Directories,
  ): Flow {
    const dynamic = run.text.find((word) => word.value === undefined);
    const first = run.text[0];
    if (dynamic !== undefined || first === undefined) {
      const message = `${dynamic?.source || 'A text'} is run as a command and must be written out.`;
      refuse(this.report, 'inner_text', message, dynamic?.span);
    }
    if (first === undefined) return both(directories);
    const text = run.text.map(asFarAsKnown).join(' ');
    const place = { start: first.span.start, end: run.text.at(-1)?.span.end ?? first.span.end };
    const known = this.report.problem;
    if (run.sameShell === true) {
      // With a directory of its own it runs at another time, and leaves this one alone.
      const later = run.directory !== undefined;
      const inner = { ...scope, inShell: true, place, later: later || scope.later };
      const flow = this.text(text, inner, start, false);
      return later ? both(directories) : flow;
    }
    const problem = plainProblem(text, run.dialect);
    if (problem !== undefined) refuse(this.report, 'inner_text', problem, place);
    const numbers = createNumbers();
    this.text(text, { ...scope, inShell: true, place, numbers, functions: new Set(), moving: false }, start);
    settleNumbers(numbers, this.report);
    if (known === undefined) this.markInner();
    return both(directories);
  }

  /** A text that cannot be read is a problem of the runner that was given it. */
  private markInner(): void {
    const { problem } = this.report;
    if (problem?.code === 'syntax_error' || problem?.code === 'bad_character') {
      this.report.problem = { ...problem, code: 'inner_text' };
    }
  }
}

/**
 * What is written of a text stays a command that is recognised, with a variable for the rest, which single quotes would
 * hide: the one that stands there, or one that holds anything.
 */
function asFarAsKnown({ value, parts }: Word): string {
  if (value !== undefined) return value;
  let [text, open] = ['', ''];
  for (const part of parts) {
    const variable = part.kind === 'parameter' && part.plain && isVariableName(part.name) ? part.name : '_';
    if ('text' in part) text += part.text;
    else text += open === "'" ? `'"\${${variable}}"'` : `\${${variable}}`;
    for (const [mark] of 'text' in part ? part.text.matchAll(MARKS) : [])
      if (open === '') open = mark.length === 1 ? mark.trim() : '';
      else if (open === '"' ? mark === '"' : mark.endsWith(open === '#' ? '\n' : open)) open = '';
  }
  return text;
}

/** What opens and closes quotes and comments; a backslash counts only outside of single ones. */
const MARKS = /\\.|['"\n]|(?<![^\s;&|()])#/gs;

function intoDirectory(directories: Directories, target: Word | 'unknown'): Directories {
  return target === 'unknown' ? undefined : changed(directories, target).ok;
}

/** What bash reads differently from a POSIX shell, or what such a shell does not have. */
const NOT_POSIX =
  /\$['"[]|&>|\|&|[0-9]{2,}[<>]|\(\(|\[\[|<<<|[<>]\(|\+=|=\(|\{[^}\s]*(?:,|\.\.)|;;?&|\$\{[!#]?\w+[/:^,@[](?![-=?+])|\$\{!|>&(?![\d-])|\*\*/;
const NOT_POSIX_WORDS =
  /(?:^|[\s;&|(!])(?:time|coproc|select|function|source|let|declare|typeset|shopt)(?=\s)/;

/** Plain words, quoted text, and pipes and lists between them: what every shell reads in the same way. */
const PLAIN_EVERYWHERE =
  /^(?:[A-Za-z0-9_.,/:@+\n -]|(?<=[A-Za-z0-9_])=(?=[A-Za-z0-9_./])|&&|\|\|?|;|'[^'\\!]*'|"[A-Za-z0-9_.,/:@+= -]*")*$/;
/** Words that zsh takes as something else than a program. */
const ZSH_WORDS =
  /(?:^|[\s;&|])(?:-|repeat|noglob|nocorrect|foreach|end|select|time|coproc|function|autoload|zmodload|emulate|sched|functions|vared|zle|zcompile|print|bindkey|ztcp|zpty|zf_\w+|sysopen|zsystem|where|whence|rehash|setopt|unsetopt|fc|r|zparseopts|zstyle|zformat|alias|if|then|for|while|until|case|do|done)(?=[\s;&|]|$)/;

/** Why a text for another shell than bash is not certain to mean what bash would make of it. */
function plainProblem(text: string, dialect: Dialect): string | undefined {
  switch (dialect) {
    case 'bash':
      return undefined;
    case 'posix':
      if (!NOT_POSIX.test(text) && !NOT_POSIX_WORDS.test(text)) return undefined;
      return 'The text for sh uses what only bash has or reads differently: run it with bash -c.';
    case 'zsh':
      if (PLAIN_EVERYWHERE.test(text) && !ZSH_WORDS.test(text)) return undefined;
      return 'The text for zsh is not plain words: run it with bash -c.';
  }
}
