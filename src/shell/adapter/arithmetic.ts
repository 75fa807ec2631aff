import type { ArithmeticExpression } from 'unbash';
import { assertNever } from '../../util/assert-never.ts';
import { apart, needNumber, noteArithmeticAssignment } from '../numbers.ts';
import { isVariableName } from '../text-checks.ts';
import type { ShellText } from './shell-text.ts';

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
