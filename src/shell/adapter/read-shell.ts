import { type ParsedScript, parse } from 'unbash';
import type { SyntaxNode } from '../syntax.ts';
import { gluingContinuation, nestingOf } from '../text-checks.ts';
import { readLines } from './commands.ts';
import { type Reading, ShellText } from './shell-text.ts';
import { sweep, TOO_DEEP } from './sweep.ts';

/*
 * This folder is the one place that knows the parser. It accepts a listed set of node kinds and checks, for each, that
 * the source text is what the parser's answer says it is: a parser that is wrong about a text ends in a refusal. The
 * rules were found by comparing the parser with bash; test/support/shell-differential.ts does that again.
 */

/** Reads shell text; problems go to the report, and the tree is then only good for messages. */
export function readShell(source: string, reading: Reading): SyntaxNode {
  const text = new ShellText(source, reading);
  if (nestingOf(source) > reading.maxDepth || source.split('coproc').length > 20) {
    // The parser's time grows with the square of the depth where brackets are not closed.
    text.refuse('too_deep', TOO_DEEP, { pos: 0, end: source.length });
    return { kind: 'list', items: [] };
  }
  const script = parse(source);
  sweep(script, text);
  if (reading.report.problem !== undefined) return recover(script, text);
  const tree = readLines(script, text);
  const isLiteral = (at: number) => text.literals.some((span) => span.start <= at && at < span.end);
  const glued = gluingContinuation(source, isLiteral);
  if (glued !== undefined) {
    const message = 'A line continuation stands inside a word or operator: put a blank before the backslash.';
    text.refuse('ambiguous', message, { pos: glued, end: glued + 2 });
  }
  return tree;
}

/** For messages only: the tree as far as it goes, whatever it is worth. */
function recover(script: ParsedScript, text: ShellText): SyntaxNode {
  const code = text.reading.report.problem?.code;
  if (code === 'too_deep' || code === 'too_many_commands') return { kind: 'list', items: [] };
  try {
    return readLines(script, text);
  } catch (error) {
    if (error instanceof TypeError || error instanceof RangeError) return { kind: 'list', items: [] };
    throw error;
  }
}
