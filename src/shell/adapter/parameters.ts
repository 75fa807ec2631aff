import type { ParameterExpansionPart, Word } from 'unbash';
import type { WordPart } from '../../model/command-line.ts';
import { needNumber, noteInput } from '../numbers.ts';
import type { Quoting } from './context.ts';
import type { ShellText } from './shell-text.ts';

const PARAMETER = /^(?:[A-Za-z_][A-Za-z0-9_]*|[0-9]+|[?#@*$!-])$/;

/** `${…}`; the words in it go to `readOperand`. */
export function readParameter(
  part: ParameterExpansionPart,
  quoting: Quoting,
  text: ShellText,
  readOperand: (word: Word) => void,
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
  };
}

function checkSliceWord(word: Word, text: ShellText): void {
  const raw = text.of(word).trim();
  const name = /^\$?([A-Za-z_][A-Za-z0-9_]*)$/.exec(raw)?.[1];
  if (name !== undefined) needNumber(text.reading.numbers, name, text.span(word));
  else if (!/^-?[0-9]+$/.test(raw))
    text.refuse('construct', 'A substring is understood only with numbers for offset and length.', word);
}

function operandsOf(part: ParameterExpansionPart): readonly Word[] {
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
