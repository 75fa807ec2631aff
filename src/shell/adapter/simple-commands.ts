import type { Command, HereDoc, Assignment as ParsedAssignment, Redirection } from 'unbash';
import type { Assignment, Redirect, Word } from '../../model/command-line.ts';
import { mergeLiterals } from '../../model/word.ts';
import { apart, type Numbers, noteArray, noteAssignment, noteDone } from '../numbers.ts';
import type { SimpleNode, SyntaxNode } from '../syntax.ts';
import { isVariableName } from '../text-checks.ts';
import { readRedirect } from './redirects.ts';
import { type Context, checkNeighbours } from './shell-text.ts';
import { readWord } from './words.ts';

/** Words, assignments and redirects; `substitutions` is the list that the context adds to. */
export function readSimple(
  node: Command,
  context: Context,
  substitutions: readonly SyntaxNode[],
): SimpleNode {
  const words: Word[] = [];
  const assignments: Assignment[] = [];
  const redirects: Redirect[] = [];
  let input: string | undefined;
  const all = [...node.prefix, ...(node.name === undefined ? [] : [node.name]), ...node.suffix];
  checkNeighbours(all, context.text);
  const { numbers } = context.text.reading;
  const { sure } = numbers;
  const stays = all.every((item) => item.type === 'Assignment');
  const declared: string[] = [];
  for (const item of all) {
    if (item.type === 'Word') words.push(readWord(item, context));
    else if (item.type !== 'Assignment') {
      // It may be expanded by the process that becomes the command.
      redirects.push(apart(numbers, () => readRedirect(item, context)));
      if (item.type === 'HereDoc' && item.delimiter?.quoted === true) input = inputOf(item);
      else if (!leavesInput(item)) input = undefined;
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

function inputOf(document: HereDoc): string | undefined {
  const descriptor = document.descriptor;
  if (descriptor !== undefined && !(descriptor.type === 'FileDescriptor' && descriptor.value === 0))
    return undefined;
  return document.operator === '<<-' ? document.body.text.replace(/^\t+/gm, '') : document.body.text;
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
