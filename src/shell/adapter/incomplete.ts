import { parse } from 'unbash';
import { nestingOf } from '../text-checks.ts';

/** Deeper than people type; the parser's time grows with the square of it where brackets are not closed. */
const DEEPEST = 100;

/**
 * Whether more has to be typed before a text is a command: a quote, a bracket, a compound command or a here-document is
 * open, or it ends in a backslash. For callers that ask for further lines; what is run is judged as a whole, whatever this says.
 */
export function isIncomplete(source: string): boolean {
  if (/(?:^|[^\\])(?:\\\\)*\\\n?$/.test(source)) return true;
  if (nestingOf(source) > DEEPEST) return false;
  const end = source.trimEnd().length;
  const script = parse(source);
  // What is wrong at the very end may be mended by what follows.
  const isCutOff = script.errors?.some(
    ({ message, pos }) => message.startsWith('unterminated') || pos >= end,
  );
  return isCutOff === true || holdsOpenDocument(script);
}

/** Wherever in the tree it is. */
function holdsOpenDocument(node: unknown): boolean {
  if (typeof node !== 'object' || node === null) return false;
  if ('type' in node && node.type === 'HereDoc' && !('closing' in node && node.closing !== undefined))
    return true;
  return Object.values(node).some(holdsOpenDocument);
}
