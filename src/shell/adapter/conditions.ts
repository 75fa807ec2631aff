import type { Word as ParsedWord, TestExpression } from 'unbash';
import type { Word } from '../../model/command-line.ts';
import { assertNever } from '../../util/assert-never.ts';
import { needNumber } from '../numbers.ts';
import type { Context } from './context.ts';
import type { ShellText } from './shell-text.ts';
import { readWord } from './word.ts';

const NUMERIC_COMPARISONS = new Set(['-eq', '-ne', '-lt', '-le', '-gt', '-ge']);

/** What stands in `[[ … ]]`. */
export function readCondition(node: TestExpression, context: Context): void {
  const { text } = context;
  switch (node.type) {
    case 'TestUnary':
      if (node.operator === '-v' || node.operator === '-R') {
        text.refuse('construct', `[[ ${node.operator} … ]] may run what its operand holds.`, node);
      }
      readWord(node.operand, context);
      return;
    case 'TestBinary':
      for (const word of [node.left, node.right]) {
        const read = readWord(word, context);
        if (NUMERIC_COMPARISONS.has(node.operator)) checkNumber(read, word, text);
      }
      return;
    case 'TestLogical':
      for (const operand of node.operands) readCondition(operand, context);
      return;
    case 'TestNot':
      readCondition(node.operand, context);
      return;
    case 'TestGroup':
      readCondition(node.expression, context);
      return;
    default:
      assertNever(node);
  }
}

/** `[[ a -eq b ]]` evaluates both sides as arithmetic. */
function checkNumber(word: Word, node: ParsedWord, text: ShellText): void {
  if (word.value !== undefined && /^-?[0-9]+$/.test(word.value)) return;
  const [only, ...others] = word.parts;
  if (others.length === 0 && only?.kind === 'arithmetic') return;
  if (others.length === 0 && only?.kind === 'parameter' && (only.plain || /^\$\{#\w+\}$/.test(word.source))) {
    if (only.plain) needNumber(text.reading.numbers, only.name, word.span);
    return;
  }
  text.refuse(
    'construct',
    'Numbers are compared in [[ ]] only if they are certain to be numbers: use [ "$x" -eq 1 ].',
    node,
  );
}
