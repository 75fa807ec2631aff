import type { HereDoc, Redirection } from 'unbash';
import type { Redirect, Word } from '../../model/command-line.ts';
import { literalWord } from '../../model/word.ts';
import { isPlainDelimiter, isPlainQuoted } from '../text-checks.ts';
import type { Context, ShellText } from './shell-text.ts';
import { readPart, readWord } from './words.ts';

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
  const target = node.type === 'HereDoc' ? readHereDocument(node, context) : readTarget(node, context);
  const gap = node.type === 'HereDoc' ? node.delimiter : node.target;
  const start = node.descriptor?.end ?? node.pos;
  if (gap !== undefined && !isOperator(operator, text.source.slice(start, gap.pos))) {
    text.refuse('ambiguous', 'A redirect is not what it looks like: write it more plainly.', node);
  }
  const redirect = { operator, descriptor, target, span: text.span(node) };
  return node.type === 'HereDoc' ? { ...redirect, body: staticBody(node) } : redirect;
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

/** Checks the body; the word is the delimiter. */
function readHereDocument(node: HereDoc, context: Context): Word {
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
  else for (const part of body.parts ?? []) readPart(part, 'document', context);
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

/** The text of a here-document; `undefined`: it holds what may be an expansion. */
function staticBody({ operator, delimiter, body }: HereDoc): string | undefined {
  if (delimiter?.quoted !== true && /[$`\\]/.test(body.text)) return undefined;
  return operator === '<<-' ? body.text.replace(/^\t+/gm, '') : body.text;
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
