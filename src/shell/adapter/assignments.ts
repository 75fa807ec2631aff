import type { Assignment as ParsedAssignment } from 'unbash';
import type { Assignment, Word } from '../../model/command-line.ts';
import { noteArray, noteAssignment, noteDone } from '../numbers.ts';
import { isVariableName } from '../text-checks.ts';
import { mergeLiterals } from '../words.ts';
import type { Context } from './context.ts';
import { checkNeighbours } from './neighbours.ts';
import { readWord } from './word.ts';

/** `NAME=value` before a command; `stays`: there is no command. */
export function readAssignment(node: ParsedAssignment, context: Context, stays: boolean): Assignment {
  const value = readValue(node, context);
  if (stays && node.append !== true) noteDone(context.text.reading.numbers, node.name);
  return { name: node.name, append: node.append === true, value, span: context.text.span(node) };
}

/** `NAME=value` behind a builtin that declares: one word to everyone else. */
export function readDeclaration(node: ParsedAssignment, context: Context): Word {
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
