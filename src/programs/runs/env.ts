import type { Word } from '../../model/command-line.ts';
import { prefixOf } from '../../model/word.ts';
import { optionValue, readOptions } from './options.ts';
import { NOTHING, type Runner, refused, runWords } from './runner.ts';

const PLAIN_ASSIGNMENT = /^(?:[A-Za-z_][A-Za-z0-9_]*=|-$)/;

/** env has options, then assignments, then the command; `-S` splits a text into words. */
export const env: Runner = (call) => {
  const read = readOptions(call.words.slice(1), {
    flags: 'i0v',
    values: 'uCS',
    long: {
      help: 'flag',
      version: 'flag',
      'block-signal': 'optional',
      'default-signal': 'optional',
      'ignore-signal': 'optional',
      'ignore-environment': 'flag',
      null: 'flag',
      debug: 'flag',
      unset: 'value',
      chdir: 'value',
      'split-string': 'value',
      'list-signal-handling': 'flag',
    },
  });
  if (!read.ok) return refused(`env: ${read.message}`, read.word);
  if (optionValue(read.options, 'S', 'split-string') !== undefined) {
    return refused('env -S splits a text by rules of its own: write the words out.', call.words[0]);
  }
  // A lone dash means -i, and assignments may follow.
  const isAssignment = (word: Word) => /^[^=]*=/.test(prefixOf(word)) || word.value === '-';
  const first = read.rest.findIndex((word) => !isAssignment(word));
  const odd = read.rest
    .slice(0, first === -1 ? undefined : first)
    .find((word) => !PLAIN_ASSIGNMENT.test(prefixOf(word)));
  // Among others: BASH_FUNC_ls%% gives bash a function.
  if (odd !== undefined) return refused(`env: ${odd.source} is not a plain variable.`, odd);
  const directory = optionValue(read.options, 'C', 'chdir');
  return first === -1
    ? NOTHING
    : runWords(read.rest.slice(first), directory === undefined ? {} : { directory });
};
