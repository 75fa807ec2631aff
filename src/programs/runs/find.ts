import type { Word } from '../../model/command-line.ts';
import { isSingle, prefixOf, withInput } from '../../model/word.ts';
import { type Run, type Runner, type Runs, refused } from './runner.ts';

const words = (list: string) => new Set(list.split(' '));

const ALONE = words(
  '-print -print0 -ls -delete -prune -quit -depth -d -mount -xdev -empty -daystart -follow -nouser -nogroup -true -false -readable -writable -executable -noleaf -ignore_readdir_race -noignore_readdir_race -warn -nowarn -help --help -version --version -not ! -a -and -o -or ( ) ,',
);
const WITH_ONE = words(
  '-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -maxdepth -mindepth -size -mtime -atime -ctime -mmin -amin -cmin -newer -anewer -cnewer -perm -user -group -uid -gid -links -inum -samefile -fstype -used -context -regextype -files0-from -fls -fprint -fprint0 -printf',
);
const EXECUTING = words('-exec -execdir -ok -okdir');

/** `find [paths] [expression]`, where the expression may run commands. */
export const find: Runner = (call) => {
  const args = call.words.slice(1);
  let at = 0;
  while (/^-(?:[HLP]+|O[0-9]|D)$/.test(args[at]?.value ?? '')) at += args[at]?.value === '-D' ? 2 : 1;
  let dashed = false;
  let uncertain: Word | undefined;
  for (; at < args.length; at += 1) {
    const path = args[at];
    if (path === undefined || isExpression(prefixOf(path))) break;
    if (path.value !== undefined || prefixOf(path) !== '' || path.parts[0]?.kind === 'tilde') continue;
    if (!isSingle(path))
      return refused(
        `find: ${path.source} could be several words, and any of them an action: quote it.`,
        path,
      );
    uncertain = path;
    dashed = true;
  }
  const result = expression(args.slice(at), !dashed);
  const runs = 'runs' in result && result.runs.length > 0;
  const ends = args.slice(at).some((word) => word.value === ';' || word.value === '+');
  if (uncertain !== undefined && (runs || ends)) {
    return refused(
      `find: ${uncertain.source} could be an action: put ./ before it or write it out.`,
      uncertain,
    );
  }
  return result;
};

function isExpression(text: string): boolean {
  return /^(?:-.|[(),!]$)/.test(text);
}

function expression(args: readonly Word[], path: boolean): Runs {
  const runs: Run[] = [];
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    const name = word?.value;
    if (word === undefined || name === undefined) {
      return refused(`find: ${word?.source} stands where a test or action is expected: write it out.`, word);
    }
    if (ALONE.has(name)) continue;
    if (WITH_ONE.has(name) || /^-newer[aBcmt]{2}$/.test(name) || name === '-fprintf') {
      const count = name === '-fprintf' ? 2 : 1;
      const values = args.slice(at + 1, at + 1 + count);
      const several = values.find((value) => !isSingle(value));
      if (values.length < count) return refused(`find: ${name} has no value.`, word);
      if (several !== undefined)
        return refused(`find: ${several.source} could be several words: quote it.`, several);
      at += count;
    } else if (EXECUTING.has(name)) {
      const command = commandAt(args, at + 1);
      if (typeof command === 'string') return refused(`find: ${name} ${command}.`, word);
      const inner = command.map((part) => withInput(part, '{}', path));
      runs.push({ kind: 'argv', words: inner, ...(name.endsWith('dir') ? { directory: 'unknown' } : {}) });
      at += command.length + 1;
    } else return refused(`find: ${word.source} is not a known test or action.`, word);
  }
  return { runs };
}

/** The words from `start` to `;`, or to `+` behind `{}`; a sentence if it does not end. */
function commandAt(args: readonly Word[], start: number): readonly Word[] | string {
  for (let at = start; at < args.length; at += 1) {
    const word = args[at];
    if (word === undefined) break;
    const ends = word.value === ';' || (word.value === '+' && args[at - 1]?.value === '{}');
    if (ends) return at === start ? 'runs nothing' : args.slice(start, at);
    if (!isSingle(word)) return `runs a command with ${word.source}, which could be several words: quote it`;
  }
  return 'is not closed: end its command with \\;';
}
