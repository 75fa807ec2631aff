import type {
  ArithmeticExpression,
  Assignment,
  ParameterExpansionPart,
  WordPart as ParsedPart,
  ParsedScript,
  Word as ParsedWord,
  Redirection,
} from 'unbash';
import { assertNever } from '../../../base/assert-never.ts';
import { mergeLiterals, type Span, tildeParts, type Word, type WordPart } from '../../../model/index.ts';
import { apart, type Numbers, needNumber, noteArithmeticAssignment, noteInput } from '../numbers.ts';
import { type Report, refuse } from '../report.ts';
import {
  ansiText,
  isPlainOperand,
  isPlainQuoted,
  isPlainUnquoted,
  isVariableName,
  mayExpandBraces,
  unescapeQuoted,
  unescapeUnquoted,
} from '../text-checks.ts';

/** What is known about the text that is being read. */
export interface Reading {
  readonly report: Report;
  readonly numbers: Numbers;
  /** Nodes may not stand deeper than this. */
  readonly maxDepth: number;
  /** Place in the whole source that stands for every place in this text; `undefined`: this is the whole source. */
  readonly place: Span | undefined;
}

/** A place as the parser gives it: offsets into the text that it was given. */
interface Located {
  readonly pos: number;
  readonly end: number;
}

type Code = 'construct' | 'ambiguous' | 'syntax_error' | 'too_deep' | 'too_many_commands';

/** One text, and what is noted about the whole of it while its parts are read. */
export class ShellText {
  readonly source: string;
  readonly reading: Reading;
  /** Spans in which a backslash before a line feed is just text. */
  readonly literals: Span[] = [];
  /** Here-documents so far. */
  documents = 0;
  /** Places behind their closing lines: another body may begin there. */
  readonly documentEnds = new Set<number>();

  constructor(source: string, reading: Reading) {
    this.source = source;
    this.reading = reading;
  }

  /** Where messages say that it stands. */
  span(node: Located): Span {
    return this.reading.place ?? { start: node.pos, end: node.end };
  }

  /** The text as written. */
  of(node: Located): string {
    return this.source.slice(node.pos, node.end);
  }

  refuse(code: Code, message: string, node: Located): void {
    refuse(this.reading.report, code, message, this.span(node));
  }
}

/** What the words of one command need to know about where they stand. */
export interface Context {
  readonly text: ShellText;
  /** In a substitution that bash may get wrong when it prints and reads it again: no here-documents, no arrays. */
  readonly nested: boolean;
  /** Reads the script of a substitution, and lists it with the command. */
  readonly substitute: (script: ParsedScript, nested: boolean) => void;
}

type Piece = ParsedWord | Assignment | Redirection;

/**
 * Between two pieces of a command stand blanks and line continuations. Only a redirect that begins with its operator
 * may touch what stands before it.
 */
export function checkNeighbours(nodes: readonly Piece[], text: ShellText): void {
  nodes.forEach((node, index) => {
    const before = nodes[index - 1];
    if (before === undefined) return;
    const gap = text.source.slice(before.end, node.pos);
    const mayTouch = isRedirection(node) && /^[<>&]/.test(text.of(node));
    if (!/^(?:[ \t]|\\\n)*$/.test(gap) || (gap === '' && !mayTouch)) {
      text.refuse('ambiguous', 'Two words touch: put a blank between them.', node);
    }
  });
}

function isRedirection(node: Piece): boolean {
  return node.type !== 'Word' && node.type !== 'Assignment';
}

/** A word; `inAssignment`: it is a value, where bash expands no globs and no braces. */
export function readWord(node: ParsedWord, context: Context, inAssignment = false): Word {
  const { text } = context;
  const raw = text.of(node);
  const parts: WordPart[] = [];
  const braced = node.parts?.some((part) => part.type === 'BraceExpansion') === true;
  let at = node.pos;
  for (const part of node.parts ?? [
    { type: 'Literal', pos: node.pos, end: node.end, text: raw, value: node.value } as const,
  ]) {
    if (part.pos !== at)
      text.refuse('ambiguous', 'A word is not what it looks like: write it more plainly.', node);
    at = part.end;
    if (part.type === 'Literal' && !inAssignment && part.text.includes('{') && !braced) {
      if (mayExpandBraces(raw.slice(part.pos - node.pos))) {
        text.refuse('ambiguous', 'A brace expansion is not plain: write the words out.', node);
      }
    }
    if (part.type === 'ProcessSubstitution' && (part.pos !== node.pos || part.end !== node.end)) {
      text.refuse('construct', 'A process substitution is understood only as a word of its own.', node);
    }
    parts.push(...readPart(part, 'none', context));
  }
  if (at !== node.end)
    text.refuse('ambiguous', 'A word is not what it looks like: write it more plainly.', node);
  const first = node.parts?.[0];
  const tilded =
    first === undefined || first.type === 'Literal' ? tildeParts(raw, parts, inAssignment) : parts;
  const known = inAssignment ? tilded.map(withoutGlob) : tilded;
  const merged = mergeLiterals(known);
  const value = merged.every((part) => part.kind === 'literal')
    ? merged.map(textOfLiteral).join('')
    : undefined;
  return { value, parts: merged, source: raw, span: text.span(node) };
}

function withoutGlob(part: WordPart): WordPart {
  return part.kind === 'glob' ? { kind: 'literal', text: part.text } : part;
}

function textOfLiteral(part: WordPart): string {
  return part.kind === 'literal' ? part.text : '';
}

/** What stands around a part of a word. */
type Quoting = 'none' | 'double' | 'document';

/** Text, quotes and expansions: what a word or a here-document consists of. */
export function readPart(part: ParsedPart, quoting: Quoting, context: Context): readonly WordPart[] {
  const { text } = context;
  const raw = text.of(part);
  switch (part.type) {
    case 'Literal':
    case 'SingleQuoted':
    case 'AnsiCQuoted':
      return [{ kind: 'literal', text: readText(part, quoting, text) }];
    case 'DoubleQuoted':
      return readDoubleQuoted(part, context);
    case 'Glob':
      for (const inner of part.parts ?? []) {
        if (inner.type !== 'Literal' || !isPlainUnquoted(inner.text)) {
          text.refuse('ambiguous', 'A glob in brackets holds more than text.', part);
        }
      }
      if (!/^(?:\*+|\?|\[[^\s`$'"\\();|&<>]*\])$/.test(raw))
        text.refuse('ambiguous', 'A glob is not plain.', part);
      return [{ kind: 'glob', text: raw }];
    case 'SimpleExpansion': {
      const name = raw.slice(1);
      if (!/^\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9?#@*$!-])$/.test(raw))
        text.refuse('ambiguous', 'An expansion is not plain.', part);
      return [{ kind: 'parameter', name, plain: true, ...quoted(quoting) }];
    }
    case 'ParameterExpansion':
      return [
        readParameter(part, quoting, text, (word) =>
          apart(text.reading.numbers, () => readOperand(word, quoting, context)),
        ),
      ];
    case 'CommandExpansion':
      readSubstitution(part, quoting, context);
      return [{ kind: 'command-substitution', ...quoted(quoting) }];
    case 'ArithmeticExpansion':
      if (part.expression === undefined || !/^\$\(\(.*\)\)$/s.test(raw)) {
        text.refuse(
          'construct',
          'Arithmetic is understood only as $((…)) with numbers and plain names.',
          part,
        );
      } else readArithmetic(part.expression, text);
      return [{ kind: 'arithmetic' }];
    case 'ProcessSubstitution':
      if (part.script !== undefined) context.substitute(part.script, true);
      if (!/^[<>]\(.*\)$/s.test(raw)) text.refuse('ambiguous', 'A process substitution is not plain.', part);
      return [{ kind: 'process-substitution', direction: part.operator === '<' ? 'in' : 'out' }];
    case 'BraceExpansion':
      if (part.parts !== undefined || !/^\{[A-Za-z0-9_.,/+@%=:~{}-]*\}$/.test(raw)) {
        text.refuse(
          'construct',
          'A brace expansion is understood only with plain text in it: write the words out.',
          part,
        );
      }
      return [{ kind: 'brace', text: raw }];
    case 'LocaleString':
    case 'ExtendedGlob':
      return [{ kind: 'glob', text: raw }];
    default:
      return assertNever(part);
  }
}

/** What stands for itself. */
function readText(
  part: Extract<ParsedPart, { readonly type: 'Literal' | 'SingleQuoted' | 'AnsiCQuoted' }>,
  quoting: Quoting,
  text: ShellText,
): string {
  const raw = text.of(part);
  switch (part.type) {
    case 'Literal': {
      const plain = quoting === 'none' ? isPlainUnquoted(raw) : isPlainQuoted(raw);
      const value = quoting === 'none' ? unescapeUnquoted(raw) : unescapeQuoted(raw);
      if (!plain || (quoting !== 'document' && value !== part.value)) {
        text.refuse(
          'ambiguous',
          'A word holds an operator or expansion where text is expected: quote it.',
          part,
        );
      }
      return value;
    }
    case 'SingleQuoted': {
      const value = raw.slice(1, -1);
      if (raw !== `'${value}'` || value.includes("'") || value !== part.value) {
        text.refuse('ambiguous', 'A quoted text is not what it looks like.', part);
      }
      text.literals.push({ start: part.pos, end: part.end });
      return value;
    }
    case 'AnsiCQuoted': {
      const value = ansiText(raw);
      if (value === undefined || value !== part.value) {
        text.refuse('construct', "In $'…' only \\n, \\t, \\\\, \\' and \\\" are understood.", part);
      }
      return value ?? part.value;
    }
    default:
      return assertNever(part);
  }
}

function readDoubleQuoted(
  part: Extract<ParsedPart, { readonly type: 'DoubleQuoted' }>,
  context: Context,
): readonly WordPart[] {
  const { text } = context;
  const raw = text.of(part);
  let at = part.pos + 1;
  const parts: WordPart[] = [];
  for (const child of part.parts) {
    if (child.pos !== at) text.refuse('ambiguous', 'A quoted text is not what it looks like.', part);
    at = child.end;
    parts.push(...readPart(child, 'double', context));
  }
  const closed = raw.length >= 2 && raw.startsWith('"') && raw.endsWith('"');
  if (!closed || at !== part.end - 1)
    text.refuse('ambiguous', 'A quoted text is not what it looks like.', part);
  // An empty pair of quotes is a word, and text beside an expansion.
  return parts.length === 0 ? [{ kind: 'literal', text: '' }] : parts;
}

function readSubstitution(
  part: Extract<ParsedPart, { readonly type: 'CommandExpansion' }>,
  quoting: Quoting,
  context: Context,
): void {
  const { text, nested } = context;
  const raw = text.of(part);
  const backticks = raw.startsWith('`');
  if (backticks && (quoting !== 'none' || raw.includes('\\') || raw.slice(1, -1).includes('`'))) {
    text.refuse(
      'construct',
      'Backticks are understood only outside of quotes and without backslashes: use $(…).',
      part,
    );
  }
  if (!backticks && !/^\$\((?!\().*\)$/s.test(raw)) {
    text.refuse(
      'ambiguous',
      'A substitution must begin with $( and no second bracket: put a blank between.',
      part,
    );
  }
  if (part.script === undefined) return;
  const [only, ...others] = part.script.commands;
  const isSimple = only?.command.type === 'Command' && others.length === 0 && only.background !== true;
  // Bash prints and reads again the text of a substitution; with a here-document in anything larger it goes wrong.
  context.substitute(part.script, nested || backticks || !isSimple);
}

/** The `y` of `${x:-y}`: text and whole expansions. */
function readOperand(word: ParsedWord, quoting: Quoting, context: Context): void {
  const { text } = context;
  let at = word.pos;
  const literal = {
    type: 'Literal',
    pos: word.pos,
    end: word.end,
    text: text.of(word),
    value: word.value,
  } as const;
  for (const part of word.parts ?? [literal]) {
    if (part.pos !== at)
      text.refuse('ambiguous', 'The text in an expansion is not what it looks like.', word);
    at = part.end;
    if (part.type === 'Literal') {
      if (!isPlainOperand(text.of(part)))
        text.refuse('ambiguous', 'The text in an expansion is not plain.', word);
    } else readPart(part, quoting, context);
  }
  if (at !== word.end) text.refuse('ambiguous', 'The text in an expansion is not what it looks like.', word);
}

function quoted(quoting: Quoting): { readonly quoted?: true } {
  return quoting === 'none' ? {} : { quoted: true };
}

const PARAMETER = /^(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[?#@*$!-])$/;

/** `${…}`; the words in it go to `readOperand`. */
function readParameter(
  part: ParameterExpansionPart,
  quoting: Quoting,
  text: ShellText,
  readOperand: (word: ParsedWord) => void,
): WordPart {
  const { operation, parameter } = part;
  const raw = text.of(part);
  const isElement = part.index !== undefined;
  // Any other subscript is evaluated, and runs what it holds.
  const plainIndex = /^(?:[@*]|[0-9]+)$/.test(part.index?.text ?? '') && operation === undefined;
  if (!PARAMETER.test(parameter) || part.prefix === '!' || (isElement && !plainIndex)) {
    text.refuse('construct', `${raw} is not understood: use a plain variable.`, part);
  }
  if (operation?.type === 'Transform' && operation.operand.text !== 'Q') {
    text.refuse('construct', `${raw} may run what the variable holds.`, part);
  }
  if (quoting !== 'none' && /['"\\]/.test(raw)) {
    text.refuse('ambiguous', 'Quotes inside an expansion inside quotes are not understood.', part);
  }
  for (const operand of operandsOf(part)) readOperand(operand);
  if (operation?.type === 'Slice') {
    text.reading.numbers.fallible = true;
    for (const word of [operation.offset, operation.length]) {
      if (word !== undefined) checkSliceWord(word, text);
    }
  }
  if (operation?.type === 'Default' && /=/.test(operation.operator))
    noteInput(text.reading.numbers, parameter, text.span(part));
  if (operation === undefined && !isElement) {
    const expected = part.prefix === '#' ? `\${#${parameter}}` : `\${${parameter}}`;
    if (raw !== expected) text.refuse('ambiguous', `${raw} is not understood.`, part);
  }
  return {
    kind: 'parameter',
    name: parameter,
    plain: operation === undefined && part.prefix === undefined && !isElement,
    ...(quoting === 'none' ? {} : { quoted: true }),
    // `"${x:-$@}"` may be several words, as may be what an element's subscript says.
    ...(quoting === 'none' || isElement || /[$`]/.test(raw.slice(2)) ? {} : { single: true }),
  };
}

function checkSliceWord(word: ParsedWord, text: ShellText): void {
  const raw = text.of(word).trim();
  const name = /^\$?([A-Za-z_][A-Za-z0-9_]*)$/.exec(raw)?.[1];
  if (name !== undefined) needNumber(text.reading.numbers, name, text.span(word));
  else if (!/^-?[0-9]+$/.test(raw))
    text.refuse('construct', 'A substring is understood only with numbers for offset and length.', word);
}

function operandsOf(part: ParameterExpansionPart): readonly ParsedWord[] {
  const { operation } = part;
  switch (operation?.type) {
    case 'Default':
    case 'Remove':
      return [operation.operand];
    case 'Replace':
      return [operation.pattern, operation.replacement];
    case 'CaseModification':
      return operation.operand === undefined ? [] : [operation.operand];
    default:
      return [];
  }
}

const ARITHMETIC_WORD =
  /^(?:[0-9]+|0[xX][0-9a-fA-F]+|\$?[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[#?])$/;
const ASSIGNING = new Set(['=', '+=', '-=', '*=', '/=', '%=', '<<=', '>>=', '&=', '^=', '|=', '**=']);

/** Operators that fail with no number whatsoever; a division may, and ends the line. */
const INFALLIBLE = new Set('+ - * & | ^ && || < <= > >= == != = += -= *= &= |= ^='.split(' '));

/** `$((…))`, `((…))` and `for ((…))`: numbers and plain names, which must hold numbers. */
export function readArithmetic(node: ArithmeticExpression, text: ShellText): void {
  switch (node.type) {
    case 'ArithmeticBinary':
      if (!INFALLIBLE.has(node.operator)) text.reading.numbers.fallible = true;
      if (node.operator !== '=') readArithmetic(node.left, text);
      if (node.operator === '&&' || node.operator === '||')
        apart(text.reading.numbers, () => readArithmetic(node.right, text));
      else readArithmetic(node.right, text);
      if (ASSIGNING.has(node.operator)) checkTarget(node.left, text);
      return;
    case 'ArithmeticUnary':
      readArithmetic(node.operand, text);
      if (node.operator === '++' || node.operator === '--') checkTarget(node.operand, text);
      return;
    case 'ArithmeticTernary':
      readArithmetic(node.test, text);
      for (const part of [node.consequent, node.alternate])
        apart(text.reading.numbers, () => readArithmetic(part, text));
      return;
    case 'ArithmeticGroup':
      readArithmetic(node.expression, text);
      return;
    case 'ArithmeticWord': {
      const word = text.of(node);
      const name = /^(?:\$\{|\$)?([A-Za-z_][A-Za-z0-9_]*)\}?$/.exec(word)?.[1];
      // An expansion may give nothing, or several words; 08 is no number.
      if (!/^(?:0|[1-9][0-9]*|[A-Za-z_][A-Za-z0-9_]*)$/.test(word)) text.reading.numbers.fallible = true;
      if (!ARITHMETIC_WORD.test(word))
        text.refuse('construct', 'Arithmetic is understood only with numbers and plain names.', node);
      else if (name !== undefined) needNumber(text.reading.numbers, name, text.span(node));
      return;
    }
    case 'ArithmeticCommandExpansion':
      return;
    default:
      assertNever(node);
  }
}

function checkTarget(node: ArithmeticExpression, text: ShellText): void {
  if (node.type === 'ArithmeticWord' && isVariableName(text.of(node))) {
    noteArithmeticAssignment(text.reading.numbers, text.of(node));
  } else text.refuse('construct', 'Arithmetic may assign only to a plain name.', node);
}
