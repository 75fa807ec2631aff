import type { ArithmeticExpression } from 'unbash';
import { assertNever } from '../../util/assert-never.ts';
import { needNumber, noteArithmeticAssignment } from '../numbers.ts';
import { isVariableName } from '../text-checks.ts';
import type { ShellText } from './shell-text.ts';

const ARITHMETIC_WORD =
  /^(?:[0-9]+|0[xX][0-9a-fA-F]+|\$?[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\}|\$[#?])$/;
const ASSIGNING = new Set(['=', '+=', '-=', '*=', '/=', '%=', '<<=', '>>=', '&=', '^=', '|=', '**=']);

/** `$((…))`, `((…))` and `for ((…))`: numbers and plain names, which must hold numbers. */
export function readArithmetic(node: ArithmeticExpression, text: ShellText): void {
  switch (node.type) {
    case 'ArithmeticBinary':
      if (ASSIGNING.has(node.operator)) checkTarget(node.left, text);
      if (node.operator !== '=') readArithmetic(node.left, text);
      readArithmetic(node.right, text);
      return;
    case 'ArithmeticUnary':
      if (node.operator === '++' || node.operator === '--') checkTarget(node.operand, text);
      readArithmetic(node.operand, text);
      return;
    case 'ArithmeticTernary':
      for (const part of [node.test, node.consequent, node.alternate]) readArithmetic(part, text);
      return;
    case 'ArithmeticGroup':
      readArithmetic(node.expression, text);
      return;
    case 'ArithmeticWord': {
      const word = text.of(node);
      const name = /^(?:\$\{|\$)?([A-Za-z_][A-Za-z0-9_]*)\}?$/.exec(word)?.[1];
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
