import type { Word } from '../../model/command-line.ts';
import { inputWord, withInput } from '../../model/word.ts';
import { type OptionTable, readAnywhere } from './options.ts';
import { type Run, type Runner, refused } from './runner.ts';

const OPTIONS: OptionTable = {
  flags: 'HIusigFalLp01qhV',
  values: 'dteESocj',
  long: {
    hidden: 'flag',
    'no-ignore': 'flag',
    'no-ignore-vcs': 'flag',
    unrestricted: 'flag',
    'case-sensitive': 'flag',
    'ignore-case': 'flag',
    glob: 'flag',
    regex: 'flag',
    'fixed-strings': 'flag',
    'absolute-path': 'flag',
    'list-details': 'flag',
    follow: 'flag',
    'full-path': 'flag',
    print0: 'flag',
    quiet: 'flag',
    help: 'flag',
    version: 'flag',
    'max-depth': 'value',
    'min-depth': 'value',
    'exact-depth': 'value',
    type: 'value',
    extension: 'value',
    exclude: 'value',
    size: 'value',
    owner: 'value',
    color: 'value',
    threads: 'value',
    'changed-within': 'value',
    'changed-before': 'value',
    'max-results': 'value',
    'base-directory': 'value',
    'search-path': 'value',
    'path-separator': 'value',
    'ignore-file': 'value',
    prune: 'flag',
    'strip-cwd-prefix': 'optional',
  },
};

const MARKERS = ['{//}', '{/.}', '{/}', '{.}', '{}'];

/** `fd [options] [pattern [path]] -x command [;]`. */
export const fd: Runner = (call) => {
  const runs: Run[] = [];
  const others: Word[] = [];
  const args = call.words.slice(1);
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    if (word === undefined) break;
    const text = word.value ?? '';
    if (text === '--') {
      others.push(...args.slice(at));
      break;
    }
    if (/^-[HIusigFalLp01q]*[xX]./.test(text) || /^--exec(?:-batch)?=/.test(text)) {
      return refused(
        `${call.name}: write a blank behind ${text.slice(0, 2)} and the command as words.`,
        word,
      );
    }
    const flags = /^-([HIusigFalLp01q]*)[xX]$/.exec(text)?.[1];
    if (flags === undefined && text !== '--exec' && text !== '--exec-batch') {
      others.push(word);
      continue;
    }
    const end = args.findIndex((other, index) => index > at && other.value === ';');
    const command = args.slice(at + 1, end === -1 ? undefined : end);
    if (command.length === 0) return refused(`${call.name}: ${text} runs nothing.`, word);
    runs.push({ kind: 'argv', words: filled(command, word) });
    at += command.length + 1;
  }
  const read = readAnywhere(others, OPTIONS);
  return read.ok ? { runs } : refused(`${call.name}: ${read.message}`, read.word);
};

function filled(command: readonly Word[], option: Word): readonly Word[] {
  const inner = command.map((word) => MARKERS.reduce((now, marker) => withInput(now, marker, false), word));
  return inner.some((word, index) => word !== command[index]) ? inner : [...inner, inputWord(option.span)];
}
