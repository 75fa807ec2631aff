import type { RuleInFile } from '../../model/policy-keys.ts';

/** Rules that match at least what a pattern of commands matches. */
interface PatternRules {
  readonly rules: readonly Pick<RuleInFile, 'program' | 'words'>[];
  /** They may match more. */
  readonly isBroader: boolean;
}

/** From here on a pattern is about more than the words of one simple command. */
const BEYOND_WORDS = /["'\\$`|&;<>(){}#\n]/;
const ASSIGNMENT = /^[A-Za-z_]\w*=/;

/**
 * A pattern of Claude Code (`git push *`, `npm run test:*`) as rules. There it is compared with the text of a command, and
 * `*` goes over blanks; here each word is. What is kept of it are words that every text has that it matches, in order.
 * `undefined`: it says nothing that a rule could be made of.
 */
export function rulesOfPattern(pattern: string): PatternRules | undefined {
  const trimmed = pattern.trim().replace(/:\*$/, ' *');
  const beyond = trimmed.search(BEYOND_WORDS);
  const isCut = beyond !== -1;
  const tokens = (isCut ? trimmed.slice(0, beyond) : trimmed).split(/\s+/).filter((token) => token !== '');
  // The word that was cut through is not whole.
  if (isCut && !/\s$/.test(trimmed.slice(0, beyond))) tokens.pop();
  while (tokens[0] !== undefined && ASSIGNMENT.test(tokens[0])) tokens.shift();
  const [first, ...rest] = tokens;
  if (first === undefined) return undefined;
  const words = rest.map(ownPart).filter((word) => word !== '*');
  const endsOpen = tokens.at(-1)?.endsWith('*') === true;
  const isBroader =
    isCut || !endsOpen || rest.slice(0, -1).some((token) => token.includes('*')) || first.includes('/');
  const program = programOf(first);
  if (program === undefined) return undefined;
  // It may stand for the program and words behind it.
  const more =
    first.startsWith('*') && first !== '*' ? [{ program: '*', words: [ownPart(first), ...words] }] : [];
  return { rules: [{ program, words }, ...more], isBroader };
}

/** Of a word with `*` the part that lies in one word: `http*evil` may go over several. */
function ownPart(token: string): string {
  const parts = token.split('*');
  if (parts.length === 1) return token;
  const [head = ''] = parts;
  if (head !== '') return `${head}*`;
  const tail = parts.at(-1) ?? '';
  if (parts.length === 2) return tail === '' ? '*' : `*${tail}`;
  const inner = parts.slice(1).find((part) => part !== '');
  return inner === undefined ? '*' : `*${inner}*`;
}

/** Rules compare the last part of what is run. */
function programOf(token: string): string | undefined {
  const part = ownPart(token);
  const name = part.slice(part.lastIndexOf('/') + 1);
  return name === '' ? undefined : name;
}
