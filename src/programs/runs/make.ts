import { prefixOf } from '../../model/word.ts';
import { NOTHING, type Runner, refused } from './runner.ts';

const SHELLS = /^SHELL[:?+]*=\/(?:usr\/)?bin\/(?:ba|da)?sh$/;
const EXECUTING = /^(?:SHELL|\.SHELLFLAGS|MAKESHELL|MAKE|MAKEFLAGS|GNUMAKEFLAGS|MAKEFILES)[:?+!]*=/;

/**
 * make runs what its makefile says; the makefile is a file that the policy judges. Words that bring commands of their
 * own are not understood.
 */
export const make: Runner = (call) => {
  for (const word of call.words.slice(1)) {
    const text = prefixOf(word);
    if (word.value === undefined && text === '')
      return refused(`${call.name}: ${word.source} could be a setting: write it out.`, word);
    if (SHELLS.test(word.value ?? '')) continue;
    if (EXECUTING.test(text))
      return refused(`${call.name}: ${word.source} changes what runs the recipes.`, word);
    if (/^--ev/.test(text) || /^-[a-zA-Z]*E/.test(text))
      return refused(`${call.name}: ${word.source} brings rules of its own.`, word);
    if (/^(?:-f-?|--f[a-z]*|--makefile)(?:=?-)?$/.test(text) && isInput(call.words, word)) {
      return refused(`${call.name} would read rules from its standard input.`, word);
    }
  }
  return NOTHING;
};

function isInput(words: Parameters<Runner>[0]['words'], word: (typeof words)[number]): boolean {
  return /-$/.test(word.value?.slice(2) ?? '') || words[words.indexOf(word) + 1]?.value === '-';
}
