import type { Command, HereDoc, Assignment as ParsedAssignment, Redirection } from 'unbash';
import {
  type Assignment,
  literalWord,
  mergeLiterals,
  type Redirect,
  type Word,
  type WordPart,
} from '../../../model/index.ts';
import { apart, type Numbers, noteArray, noteAssignment, noteDone } from '../numbers.ts';
import type { SimpleNode, SyntaxNode } from '../syntax.ts';
import { isPlainQuoted, isVariableName } from '../text-checks.ts';
import { type Context, checkNeighbours, readPart, readWord, type ShellText } from './words.ts';

/** Words, assignments and redirects; `substitutions` is the list that the context adds to. */
export function readSimple(
  node: Command,
  context: Context,
  substitutions: readonly SyntaxNode[],
): SimpleNode {
  const words: Word[] = [];
  const assignments: Assignment[] = [];
  const redirects: Redirect[] = [];
  let input: Word | undefined;
  const all = [...node.prefix, ...(node.name === undefined ? [] : [node.name]), ...node.suffix];
  checkNeighbours(all, context.text);
  const { numbers } = context.text.reading;
  const { sure } = numbers;
  const stays = all.every((item) => item.type === 'Assignment');
  const declared: string[] = [];
  for (const item of all) {
    if (item.type === 'Word') words.push(readWord(item, context));
    else if (item.type !== 'Assignment') {
      // A redirect may be expanded in the child process, so what it assigns is not sure afterwards.
      const redirect = apart(numbers, () => readRedirect(item, context));
      redirects.push(redirect);
      if (!leavesInput(item))
        input = redirect.operator === '<<<' ? withLineEnd(redirect.target) : inputOf(item, redirect.body);
    } else if (stays) assignments.push(readAssignment(item, context, true));
    else if (words.length === 0) assignments.push(apart(numbers, () => readAssignment(item, context, false)));
    else {
      words.push(readDeclaration(item, context));
      if (item.append !== true) declared.push(item.name);
    }
  }
  if (redirects.length > 0) numbers.sure = sure;
  else if (declares(words, numbers)) for (const name of declared) noteDone(numbers, name);
  if (mayEndLines(words)) numbers.alwaysFallible = true;
  return {
    kind: 'simple',
    words,
    assignments,
    redirects,
    input,
    substitutions,
    numeric: sure,
    span: context.text.span(node),
  };
}

/** True if the command surely assigns what stands in it; `-p` only prints, and `local` fails outside of a function. */
function declares([first, ...others]: readonly Word[], { inFunction }: Numbers): boolean {
  const printing = others.some(({ value }) => value !== undefined && /^[-+].*p/.test(value));
  const names = inFunction
    ? /^(?:export|readonly|declare|typeset|local)$/
    : /^(?:export|readonly|declare|typeset)$/;
  return names.test(first?.value ?? '') && !printing;
}

/** True if later assignments may fail, because a name may have become read-only. */
function mayEndLines(words: readonly Word[]): boolean {
  return words.some(({ value }) =>
    /^(?:readonly|eval|trap|source|\.|-[A-Za-z]*r[A-Za-z]*)$/.test(value ?? ''),
  );
}

/** What a here-document holds is certain where nothing in it could be an expansion. */
function inputOf(node: Redirection, body: Word | undefined): Word | undefined {
  const isQuoted = node.type === 'HereDoc' && node.delimiter?.quoted === true;
  return isQuoted || body === undefined ? body : { ...body, value: undefined };
}

/** True if the redirect leaves the standard input alone. */
function leavesInput(node: Redirection): boolean {
  const { descriptor } = node;
  if (descriptor === undefined) return !node.operator.startsWith('<');
  return descriptor.type === 'FileDescriptor' && descriptor.value !== 0;
}

/** `NAME=value` before a command; `stays`: there is no command. */
function readAssignment(node: ParsedAssignment, context: Context, stays: boolean): Assignment {
  const value = readValue(node, context);
  if (stays && node.append !== true) noteDone(context.text.reading.numbers, node.name);
  return { name: node.name, append: node.append === true, value, span: context.text.span(node) };
}

/** `NAME=value` behind a builtin that declares: one word to everyone else. */
function readDeclaration(node: ParsedAssignment, context: Context): Word {
  const { text } = context;
  if (node.value.type === 'ArrayValue') {
    text.refuse('construct', 'Declaring an array is not understood.', node);
  }
  const value = readValue(node, context);
  const prefix = `${node.name}${node.append === true ? '+=' : '='}`;
  return {
    value: value.value === undefined ? undefined : prefix + value.value,
    parts: mergeLiterals([{ kind: 'literal', text: prefix }, ...value.parts]),
    source: node.text,
    span: text.span(node),
  };
}

function readValue(node: ParsedAssignment, context: Context): Word {
  const { text } = context;
  const { name, value } = node;
  const prefix = `${name}${node.append === true ? '+=' : '='}`;
  if (node.index !== undefined || !isVariableName(name)) {
    text.refuse(
      'construct',
      'An assignment to an array element is not understood: use a plain variable.',
      node,
    );
  } else if (text.source.slice(node.pos, value.pos) !== prefix) {
    text.refuse('ambiguous', 'An assignment is not what it looks like: write it more plainly.', node);
  }
  if (value.type === 'ArrayValue') return readArray(node, context);
  const word = readWord(value, context, true);
  noteAssignment(text.reading.numbers, name, word, text.span(node));
  return word;
}

function readArray(node: ParsedAssignment, context: Context): Word {
  const { text } = context;
  const { value } = node;
  if (value.type !== 'ArrayValue') return readWord(value, context);
  noteArray(text.reading.numbers, node.name, text.span(node));
  if (context.nested) text.refuse('construct', 'An array inside a substitution is not understood.', node);
  const closed = text.source.startsWith('(', value.pos) && text.source[value.end - 1] === ')';
  if (!closed || node.end !== value.end || /[^\s;&|)]/.test(text.source[value.end] ?? ' ')) {
    text.refuse('ambiguous', 'Text touches the closing bracket of an array: put a blank between.', node);
  }
  checkNeighbours(value.elements, text);
  const words = value.elements.map((element) => readWord(element, context));
  for (const word of words) {
    if (/^\[/.test(word.source)) {
      text.refuse('construct', 'An array value with [index]= is not understood.', node);
    }
  }
  return {
    value: undefined,
    parts: words.flatMap((word) => word.parts),
    source: text.of(value),
    span: text.span(value),
  };
}

export function readRedirect(node: Redirection, context: Context): Redirect {
  const { text } = context;
  const descriptor = node.descriptor?.type === 'FileDescriptor' ? node.descriptor.value : undefined;
  if (descriptor !== undefined && descriptor > 255) {
    text.refuse('construct', 'A descriptor above 255 is not understood.', node);
  }
  if (node.descriptor !== undefined && !/^\d{1,3}$/.test(text.of(node.descriptor))) {
    text.refuse('construct', 'A redirect to {variable} is not understood.', node);
  }
  const { operator } = node;
  const bodyParts: WordPart[] = [];
  const target =
    node.type === 'HereDoc' ? readHereDocument(node, context, bodyParts) : readTarget(node, context);
  const gap = node.type === 'HereDoc' ? node.delimiter : node.target;
  const start = node.descriptor?.end ?? node.pos;
  if (gap !== undefined && !isOperator(operator, text.source.slice(start, gap.pos))) {
    text.refuse('ambiguous', 'A redirect is not what it looks like: write it more plainly.', node);
  }
  const redirect = { operator, descriptor, target, span: text.span(node) };
  return node.type === 'HereDoc' ? { ...redirect, body: bodyOf(node, bodyParts, text) } : redirect;
}

/** Between descriptor and target stands the operator, and nothing but blanks behind it. */
function isOperator(operator: string, written: string): boolean {
  return written.startsWith(operator) && /^(?:[ \t]|\\\n)*$/.test(written.slice(operator.length));
}

function readTarget(node: Exclude<Redirection, HereDoc>, context: Context): Word {
  const { text } = context;
  if (node.target === undefined) {
    text.refuse('syntax_error', 'A redirect has no target.', node);
    return literalWord('', text.span(node));
  }
  const target = readWord(node.target, context);
  const duplicates = node.operator === '>&' || node.operator === '<&';
  if (duplicates && !/^(?:\d{1,3}|-)$/.test(text.of(node.target))) {
    text.refuse(
      'construct',
      `${node.operator} is understood only with a descriptor number or "-": use &> for a file.`,
      node,
    );
  }
  return target;
}

const MAX_DOCUMENTS = 50;

/** Checks the body, whose parts are added to `found` where it is expanded; the word is the delimiter. */
function readHereDocument(node: HereDoc, context: Context, found: WordPart[]): Word {
  const { text } = context;
  const { delimiter, closing, body } = node;
  text.documents += 1;
  if (text.documents > MAX_DOCUMENTS) {
    text.refuse('too_many_commands', 'There are too many here-documents in one string: split it.', node);
    return literalWord('', text.span(node));
  }
  if (delimiter === undefined || closing === undefined) {
    text.refuse(
      'construct',
      'A here-document is not closed: end it with its delimiter alone on a line.',
      node,
    );
    return literalWord(delimiter?.value ?? '', text.span(node));
  }
  if (!isPlainDelimiter(delimiter.text)) {
    text.refuse('construct', 'The delimiter of a here-document must be a plain word.', node);
  }
  if (context.nested)
    text.refuse(
      'construct',
      'A here-document inside this substitution is not understood: keep one command in it.',
      node,
    );
  if (!isBodyAsWritten(node, delimiter.value, closing.pos, text)) {
    text.refuse('ambiguous', 'It is not clear where a here-document ends: write it more plainly.', node);
  }
  if (!delimiter.quoted && body.text.includes('\\\n')) {
    // Bash joins the lines before it reads anything in them, quotes inside a substitution included.
    text.refuse('ambiguous', 'A here-document ends a line in a backslash: quote its delimiter.', node);
  }
  if (delimiter.quoted) text.literals.push({ start: body.pos, end: body.end });
  else for (const part of body.parts ?? []) found.push(...readPart(part, 'document', context));
  if (!delimiter.quoted && body.parts === undefined && !isPlainQuoted(body.text)) {
    text.refuse(
      'ambiguous',
      'A here-document holds an expansion that is not understood: quote its delimiter.',
      node,
    );
  }
  return {
    value: delimiter.value,
    parts: [{ kind: 'literal', text: delimiter.value }],
    source: delimiter.text,
    span: text.span(delimiter),
  };
}

/** Delimiters of here-documents that are read: a plain name, bare, quoted, or with a backslash before it. */
function isPlainDelimiter(raw: string): boolean {
  return /^(?:\\?[A-Za-z0-9_]+|'[A-Za-z0-9_]+'|"[A-Za-z0-9_]+")$/.test(raw);
}

/** The text of a here-document; without a value if it holds what may be an expansion. */
function bodyOf({ operator, delimiter, body }: HereDoc, found: readonly WordPart[], text: ShellText): Word {
  const shown = (part: string) => (operator === '<<-' ? part.replace(/^\t+/gm, '') : part);
  const word = literalWord(shown(body.text), text.span(body));
  if (delimiter?.quoted === true || !/[$`\\]/.test(body.text)) return word;
  const parts = found.map((part) => (part.kind === 'literal' ? { ...part, text: shown(part.text) } : part));
  return { ...word, value: undefined, parts: parts.length === 0 ? word.parts : mergeLiterals(parts) };
}

/** The word as a line of text. */
function withLineEnd({ value, parts, ...word }: Word): Word {
  const ended = mergeLiterals([...parts, { kind: 'literal', text: '\n' }]);
  return { ...word, value: value === undefined ? undefined : `${value}\n`, parts: ended };
}

/** The body begins on a line of its own and ends at the first line that is the delimiter. */
function isBodyAsWritten(node: HereDoc, delimiter: string, closing: number, text: ShellText): boolean {
  const { body } = node;
  if (body.pos > 0 && text.source[body.pos - 1] !== '\n') return false;
  const firstLine = text.source.indexOf('\n', node.end) + 1;
  // Behind another here-document that was announced before, on the same line.
  if (body.pos !== firstLine && !text.documentEnds.has(body.pos)) return false;
  for (let start = body.pos; start <= text.source.length; ) {
    const end = text.source.indexOf('\n', start);
    const line = text.source.slice(start, end === -1 ? undefined : end);
    if ((node.operator === '<<-' ? line.replace(/^\t+/, '') : line) === delimiter) {
      text.documentEnds.add(end + 1);
      return start <= closing && closing <= start + line.length && body.end === start;
    }
    if (end === -1) return false;
    start = end + 1;
  }
  return false;
}
