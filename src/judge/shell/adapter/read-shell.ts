import { forEachChild, type SyntaxNode as ParsedNode, type ParsedScript, parse } from 'unbash';
import type { SyntaxNode } from '../syntax.ts';
import { readLines } from './commands.ts';
import { type Reading, ShellText } from './words.ts';

const OPEN_ROUND = 0x28;
const CLOSE_ROUND = 0x29;
const OPEN_CURLY = 0x7b;
const CLOSE_CURLY = 0x7d;

/*
 * This folder is the one place that knows the parser. It accepts a listed set of node kinds and checks, for each, that
 * the source text is what the parser's answer says it is: a parser that is wrong about a text ends in a refusal. The
 * rules were found by comparing the parser with bash; test/support/shell-differential.ts does that again.
 */

/** Reads shell text; problems go to the report, and the tree is then only good for messages. */
export function readShell(source: string, reading: Reading): SyntaxNode {
  const text = new ShellText(source, reading);
  if (nestingOf(source) > reading.maxDepth || source.split('coproc').length > 20) {
    // The parser's time grows with the square of the depth where brackets are not closed.
    text.refuse('too_deep', TOO_DEEP, { pos: 0, end: source.length });
    return { kind: 'list', items: [] };
  }
  const script = parse(source);
  sweep(script, text);
  if (reading.report.problem !== undefined) return recover(script, text);
  const tree = readLines(script, text);
  const isLiteral = (at: number) => text.literals.some((span) => span.start <= at && at < span.end);
  const glued = gluingContinuation(source, isLiteral);
  if (glued !== undefined) {
    const message = 'A line continuation stands inside a word or operator: put a blank before the backslash.';
    text.refuse('ambiguous', message, { pos: glued, end: glued + 2 });
  }
  return tree;
}

/** How deep brackets stand within each other, quoted ones included: at least as deep as what they mean. */
function nestingOf(source: string): number {
  let depth = 0;
  let deepest = 0;
  for (let at = 0; at < source.length; at += 1) {
    const code = source.charCodeAt(at);
    if (code === OPEN_ROUND || code === OPEN_CURLY) {
      depth += 1;
      if (depth > deepest) deepest = depth;
    } else if ((code === CLOSE_ROUND || code === CLOSE_CURLY) && depth > 0) depth -= 1;
  }
  return deepest;
}

/** Where a line continuation stands that joins what the parser may take apart, or the reverse. */
function gluingContinuation(source: string, literal: (offset: number) => boolean): number | undefined {
  for (let at = source.indexOf('\\\n'); at !== -1; at = source.indexOf('\\\n', at + 1)) {
    if (literal(at)) continue;
    let first = at;
    while (source[first - 1] === '\\') first -= 1;
    // An even number: the last backslash is itself escaped.
    if ((at - first) % 2 === 1) continue;
    const before = source[first - 1];
    if (first !== at || before === undefined || !/[ \t\n]/.test(before)) return at;
  }
  return undefined;
}

/** For messages only: the tree as far as it goes, whatever it is worth. */
function recover(script: ParsedScript, text: ShellText): SyntaxNode {
  const code = text.reading.report.problem?.code;
  if (code === 'too_deep' || code === 'too_many_commands') return { kind: 'list', items: [] };
  try {
    return readLines(script, text);
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return { kind: 'list', items: [] };
    throw error;
  }
}

/** Kinds of nodes that are read; everything else is refused by name. */
const KNOWN = new Set<ParsedNode['type']>([
  ...(['Script', 'Statement', 'CompoundList', 'CaseItem', 'Elif', 'Command', 'Pipeline', 'AndOr'] as const),
  ...([
    'Time',
    'Negation',
    'Redirected',
    'If',
    'For',
    'ArithmeticFor',
    'While',
    'Function',
    'Subshell',
  ] as const),
  ...(['BraceGroup', 'Case', 'TestCommand', 'ArithmeticCommand', 'Word', 'Literal', 'Glob'] as const),
  ...(['SingleQuoted', 'DoubleQuoted', 'AnsiCQuoted', 'SimpleExpansion', 'ParameterExpansion'] as const),
  ...(['CommandExpansion', 'ArithmeticExpansion', 'ProcessSubstitution', 'BraceExpansion'] as const),
  ...(['Assignment', 'ArrayValue', 'Redirect', 'HereString', 'HereDoc', 'FileDescriptor'] as const),
  ...([
    'HereDocDelimiter',
    'HereDocBody',
    'ArithmeticBinary',
    'ArithmeticUnary',
    'ArithmeticTernary',
  ] as const),
  ...(['ArithmeticGroup', 'ArithmeticWord', 'TestUnary', 'TestBinary', 'TestLogical', 'TestNot'] as const),
  ...(['TestGroup', 'Default', 'Remove', 'Replace', 'Slice', 'CaseModification', 'Transform'] as const),
]);

/** What a kind of node is called where it is refused. */
const NAMES: Partial<Record<ParsedNode['type'], string>> = {
  Coproc: 'A coprocess',
  Select: 'A select loop',
  ExtendedGlob: 'An extended glob',
  LocaleString: '$"…"',
  FileDescriptorVariable: 'A redirect to {variable}',
  ArithmeticCommandExpansion: 'A substitution inside arithmetic',
  Names: 'An expansion to the names of variables',
};

const TOO_DEEP = 'The command is nested too deeply: split it into several.';

/** Looks at every node once: kinds, depth, number, the errors of nested scripts, and that places fit the source. */
function sweep(script: ParsedScript, text: ShellText): void {
  new Sweep(text).node(script, 0);
}

class Sweep {
  private readonly text: ShellText;
  private statements = 0;

  constructor(text: ShellText) {
    this.text = text;
  }

  node(node: ParsedNode, depth: number): void {
    if (this.text.reading.report.problem !== undefined) return;
    if (depth > this.text.reading.maxDepth) {
      this.text.refuse('too_deep', TOO_DEEP, node);
      return;
    }
    if (!KNOWN.has(node.type)) {
      this.text.refuse(
        'construct',
        `${NAMES[node.type] ?? `${node.type} syntax`} is not understood here.`,
        node,
      );
      return;
    }
    if (node.type === 'Script') this.script(node);
    if (node.type === 'Command' || node.type === 'Statement') {
      this.statements += 1;
      if (this.statements > this.text.reading.report.maxCommands * 3) {
        this.text.refuse('too_many_commands', 'There are too many commands in one string: split it.', node);
        return;
      }
    }
    if (
      (node.type === 'CommandExpansion' || node.type === 'ProcessSubstitution') &&
      node.script === undefined
    ) {
      this.text.refuse('syntax_error', 'A substitution could not be read.', node);
    }
    if ('text' in node && node.text !== this.text.of(node)) {
      this.text.refuse(
        'ambiguous',
        'A part of the command is not what it looks like: write it more plainly.',
        node,
      );
      return;
    }
    forEachChild(node, (child) => this.node(child, depth + 1));
  }

  private script(script: ParsedScript): void {
    const error = script.errors?.[0];
    if (error !== undefined) {
      const at = { pos: error.pos, end: error.pos + 1 };
      this.text.refuse('syntax_error', `This is not valid shell syntax: ${error.message}.`, at);
    }
    if (script.source !== undefined) {
      this.text.refuse('construct', 'Backslashes inside backticks are not understood: use $(…).', script);
    }
  }
}

/** Deeper than people type; the parser's time grows with the square of it where brackets are not closed. */
const DEEPEST = 100;

/**
 * Whether more has to be typed before a text is a command: a quote, a bracket, a compound command or a here-document is
 * open, or it ends in a backslash. For callers that ask for further lines; what is run is judged as a whole, whatever this says.
 */
export function isIncomplete(source: string): boolean {
  if (/(?:^|[^\\])(?:\\\\)*\\\n?$/.test(source)) return true;
  if (nestingOf(source) > DEEPEST) return false;
  const end = source.trimEnd().length;
  const script = parse(source);
  // What is wrong at the very end may be mended by what follows.
  const isCutOff = script.errors?.some(
    ({ message, pos }) => message.startsWith('unterminated') || pos >= end,
  );
  return isCutOff === true || holdsOpenDocument(script);
}

/** Wherever in the tree it is. */
function holdsOpenDocument(node: unknown): boolean {
  if (typeof node !== 'object' || node === null) return false;
  if ('type' in node && node.type === 'HereDoc' && !('closing' in node && node.closing !== undefined))
    return true;
  return Object.values(node).some(holdsOpenDocument);
}
