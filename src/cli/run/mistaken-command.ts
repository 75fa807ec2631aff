import { distance } from 'fastest-levenshtein';
import { shellWord } from '../../util/shell-quote.ts';

/** More letters wrong than that are another word. */
const MOST_TYPOS = 2;

/** Words that other programs use for what a subcommand of ours does. */
const OTHER_WORDS: Readonly<Record<string, string>> = {
  setup: 'install',
  uninstall: 'install --uninstall',
  logs: 'audit',
  explain: 'check',
  version: '--version',
};

/**
 * What a user may have meant by a first word for which there is no program, in one line; `undefined`: just that word.
 */
export function meantInstead(words: readonly string[], subcommands: readonly string[]): string | undefined {
  const [first = '', ...rest] = words;
  if (rest.length === 0 && /\s|[;&|<>$`]/.test(first))
    return `a shell string needs -c: sandbox-run -c ${shellWord(first)}`;
  const other = Object.hasOwn(OTHER_WORDS, first) ? OTHER_WORDS[first] : undefined;
  const near = subcommands
    .map((name) => ({ name, typos: distance(first, name) }))
    .sort((one, two) => one.typos - two.typos)[0];
  // Of a short word everything is near.
  const isNear = near !== undefined && near.typos <= Math.min(MOST_TYPOS, Math.floor(near.name.length / 2));
  const meant = other ?? (isNear ? near.name : undefined);
  return meant === undefined ? undefined : `did you mean sandbox-run ${meant}?`;
}
