import type { Word } from '../model/command-line.ts';
import { isSingle } from '../model/word.ts';
import { type Numbers, needNumber } from './numbers.ts';

const UNARY = /^-[abcdefghkLnNoOprsStuwxzG]$/;
const BINARY = /^(?:==?|!=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef))$/;

/**
 * Why the words of `test` or `[` are not understood. `-v` and `-R` evaluate the subscript of their operand, and so run
 * what it holds; a word that is not known could be `-v` where an operator is expected. So operators are written out,
 * everything else is one word each, and the longer forms are understood only without expansions.
 */
export function testProblem(args: readonly Word[], numbers: Numbers): string | undefined {
  const evaluating = args.find((word) => word.value === '-v' || word.value === '-R');
  if (evaluating !== undefined) return `${evaluating.value} may run what its operand holds`;
  if (args.every((word) => word.value !== undefined)) return undefined;
  const several = args.find((word) => !isSingle(word) && !isNumeric(word, numbers));
  if (several !== undefined) return `${several.source} could be several words: quote it`;
  return isPlainForm(args)
    ? undefined
    : 'with expansions only one comparison is understood: use && between two';
}

function isPlainForm(args: readonly Word[]): boolean {
  const [first, second, third] = args.map((word) => word.value);
  switch (args.length) {
    case 1:
      return true;
    case 2:
      return first === '!' || UNARY.test(first ?? '');
    case 3:
      if (BINARY.test(second ?? '')) return true;
      return first === '!' && UNARY.test(second ?? '');
    case 4:
      return first === '!' && BINARY.test(third ?? '');
    default:
      return false;
  }
}

/** `$?` and its kin expand to digits, and so does a variable to which the script assigns only numbers. */
function isNumeric(word: Word, numbers: Numbers): boolean {
  const [only, ...others] = word.parts;
  if (others.length > 0) return false;
  if (only?.kind === 'arithmetic') return true;
  if (only?.kind !== 'parameter') return false;
  if (/^\$\{#\w+\}$/.test(word.source)) return true;
  if (!only.plain || !/^(?:[?#$]|[A-Za-z_]\w*)$/.test(only.name)) return false;
  needNumber(numbers, only.name, word.span, 'unquoted');
  return true;
}
