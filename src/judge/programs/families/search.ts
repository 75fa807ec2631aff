import { inputWord, isSingle, leadingText, prefixOf, type Word, withInput } from '../../../model/index.ts';
import {
  type Argument,
  type Call,
  type Finding,
  finding,
  type Loss,
  type PathUse,
  type ProgramRow,
  programs,
  type Run,
  type Runs,
  type Use,
} from '../behaviour.ts';
import { argumentOf, hasOption, readOptions, readsZone, refused } from '../options.ts';
import { isMadeAnew, isRegenerableName } from '../regenerable.ts';

const words = (list: string) => new Set(list.split(' '));

/** Words of find's expression that take no operand. From the manual of GNU findutils 4.9. */
const FIND_ALONE = words(
  '-H -L -P -O0 -O1 -O2 -O3 -print -print0 -ls -delete -prune -quit -depth -d -mount -xdev -empty -daystart -follow -nouser -nogroup -true -false -readable -writable -executable -noleaf -ignore_readdir_race -noignore_readdir_race -warn -nowarn -help --help -version --version -not ! -a -and -o -or ( ) ,',
);
/** Words of find's expression that take an operand which is not a path. */
const FIND_TESTS = words(
  '-name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -type -xtype -maxdepth -mindepth -size -mtime -atime -ctime -mmin -amin -cmin -perm -user -group -uid -gid -links -inum -fstype -used -context -regextype -printf -D',
);
/** Words of find's expression that take a file which is read. */
const FIND_FILES = words('-newer -anewer -cnewer -samefile -files0-from');
const FIND_WRITES = words('-fls -fprint -fprint0 -fprintf');
const FIND_RUNS = words('-exec -execdir -ok -okdir');

/** How many operands a word of the expression takes; `undefined`: it is none, or it runs something. */
function operandsOfFind(name: string): number | undefined {
  if (FIND_ALONE.has(name)) return 0;
  if (name === '-fprintf') return 2;
  const takesOne =
    FIND_TESTS.has(name) || FIND_WRITES.has(name) || namesFile(name) || /^-newer[aBcm]t$/.test(name);
  return takesOne ? 1 : undefined;
}

/** True for tests that look at a file of this name: `-newer`, `-newermm`. */
function namesFile(name: string): boolean {
  return FIND_FILES.has(name) || /^-newer[aBcm][aBcm]$/.test(name);
}

/** Where the operands of a word of the expression end: what an action runs ends at `;`, that of -exec also at `+` behind `{}`. */
function endOfPredicate(words: readonly Word[], index: number): number {
  const name = words[index]?.value ?? '';
  if (!FIND_RUNS.has(name)) return index + (operandsOfFind(name) ?? 0);
  let end = index + 1;
  const isEnd = (at: number) =>
    words[at]?.value === ';' ||
    (/^-exec/.test(name) && words[at]?.value === '+' && words[at - 1]?.value === '{}');
  while (end < words.length && !isEnd(end)) end++;
  return end;
}

/** The expression of find, which is no option syntax but a language. */
function inspectFind({ command }: Use): readonly Finding[] {
  const findings: Finding[] = [];
  const { words } = command;
  for (let index = 1; index < words.length; index++) {
    const text = words[index]?.value;
    const source = words[index]?.source ?? '';
    if (text === undefined || text[0] !== '-') continue;
    if (FIND_RUNS.has(text)) {
      // What it runs is listed as a command of its own.
      index = endOfPredicate(words, index);
      findings.push(finding('reads', 'runs_listed', 'runs a program for each file', source));
      continue;
    }
    if (text === '-delete') findings.push(finding('removes', 'deletes', 'deletes what it finds', source));
    if (FIND_WRITES.has(text))
      findings.push(finding('writes', 'writes_by_option', `writes a file through ${text}`, source));
    if (operandsOfFind(text) === undefined)
      findings.push(finding('invalid', 'unknown_option', 'has no such test or action in the tables', source));
    index = endOfPredicate(words, index);
  }
  return findings;
}

/** `-exec rm`, `-execdir /bin/unlink`, `-exec env rm`; where an action that deletes begins. */
function deletesAt(words: readonly Word[], index: number): boolean {
  const [action, first, second] = words.slice(index, index + 3).map(({ value }) => value ?? '');
  if (action === '-delete') return true;
  if (!FIND_RUNS.has(action ?? '')) return false;
  return (
    isRemover(first ?? '') ||
    (/^(?:env|command|nice|nohup|busybox)$/.test(first ?? '') && isRemover(second ?? ''))
  );
}

const isRemover = (name: string) => /^(?:\/(?:usr\/)?bin\/)?(?:rm|unlink|shred)$/.test(name);

const LOSS_OF_SEARCH: Loss = {
  what: 'always',
  message: 'would delete what it finds, and version control may not have it',
};

/** Deletes only beneath the named directories, except with `-L` or `-follow` (follows links) or `-files0-from` (start directories from a file). */
const lossOfSearch = (words: readonly Word[]): Loss =>
  words.every(({ value }) => value !== undefined && !/^-[A-Za-z]*L|^--?(?:fo|files0)/.test(value))
    ? { ...LOSS_OF_SEARCH, staysBeneath: true }
    : LOSS_OF_SEARCH;

/** It deletes what it finds, unless that is in work that is made anew, or has a name of such work. */
function lossOfFind(use: Use): Loss | undefined {
  const { words } = use.command;
  if (!words.some((_, index) => deletesAt(words, index))) return undefined;
  return startsInWork(use) && !findsByName(words, deletesAt) ? lossOfSearch(words) : undefined;
}

/** `find build`, `find . -name '*.o'`: all that it prints is made anew. */
function findsOnlyNew(use: Use): boolean {
  // With these, find can print any text.
  if (use.command.words.some(({ value }) => /^-(?:f?printf|(?:exec|ok)(?:dir)?)$/.test(value ?? '')))
    return false;
  return !startsInWork(use) || findsByName(use.command.words, () => false, true);
}

function startsInWork(use: Use): boolean {
  const starts = startsOfFind(use);
  return starts.length === 0 || !starts.every(isMadeAnew);
}

/**
 * Before each action that counts (`actsAt`) stands a `-name`, and all such names are of what tools make. With parentheses, or
 * if that is asked for, in every alternative; what `!` and `,` make of an expression is not followed.
 */
function findsByName(words: readonly Word[], actsAt: typeof deletesAt, inEvery = false): boolean {
  const texts = words.map(({ value }) => value ?? '');
  if (texts.some((text) => /^(?:!|-not|,)$/.test(text))) return false;
  const alternatives: number[][] = [[]];
  for (const index of texts.keys()) {
    if (/^-o(?:r)?$/.test(texts[index] ?? '')) alternatives.push([]);
    else alternatives.at(-1)?.push(index);
  }
  const asked = inEvery || texts.some((text) => text === '(');
  return alternatives.every((indices) => {
    const acts = indices.find((index) => actsAt(words, index));
    if (acts === undefined && !asked) return true;
    const before = indices.filter((index) => acts === undefined || index < acts);
    const tests = before.map((index) => texts[index]);
    // Removing an empty directory loses nothing.
    if (tests.includes('-empty') && /(?:^| )-type d(?: |$)/.test(tests.join(' '))) return true;
    const names = indices.filter((index) => /^-i?name$/.test(texts[index] ?? ''));
    const [first] = names;
    return (
      first !== undefined &&
      (acts === undefined || first < acts) &&
      names.every((index) => isRegenerableName(texts[index + 1] ?? ''))
    );
  });
}

/** `fd -e pyc -X rm`: the same, by extension, name or place. */
function lossOfFd(use: Use): Loss | undefined {
  const { words } = use.command;
  const at = words.findIndex(({ value }) => /^(?:-[A-Za-z]*[xX]|--exec(?:-batch)?)$/.test(value ?? ''));
  if (at === -1 || !isRemover(words[at + 1]?.value ?? '')) return undefined;
  return fdFindsOnlyNew(use, words[at]?.span.start) ? undefined : lossOfSearch(words);
}

function fdFindsOnlyNew(use: Use, before = Number.POSITIVE_INFINITY): boolean {
  const [pattern, ...places] = use.operands.filter(({ word }) => word.span.start < before);
  const extensions = use.options.flatMap(({ name, value }) =>
    name === 'e' || name === 'extension' ? [`*.${value?.text ?? ''}`] : [],
  );
  return (
    (extensions.length > 0 && extensions.every(isRegenerableName)) ||
    (pattern !== undefined && isRegenerableName(pattern.text)) ||
    (places.length > 0 && places.every(isMadeAnew))
  );
}

/** Where it starts. */
function startsOfFind(use: Use): readonly Argument[] {
  return pathsOfFind(use).flatMap(({ argument, starts }) => (starts === true ? [argument] : []));
}

/** Where it starts, and the files that its expression names. */
function pathsOfFind({ command }: Use): readonly (PathUse & { readonly starts?: true })[] {
  const found: (PathUse & { readonly starts?: true })[] = [];
  let expression = false;
  for (let index = 1; index < command.words.length; index++) {
    const word = command.words[index];
    const next = command.words[index + 1];
    if (word === undefined) break;
    const text = leadingText(word);
    if (/^-[HLPDO]/.test(text) && !expression) continue;
    expression ||= /^(?:-.|[(!,]$)/.test(text);
    if (!expression) found.push({ argument: argumentOf(word), effect: 'reads', starts: true });
    else if (next === undefined) break;
    else if (namesFile(text)) found.push({ argument: argumentOf(next), effect: 'reads' });
    else if (FIND_WRITES.has(text)) found.push({ argument: argumentOf(next), effect: 'writes' });
    if (expression) index = endOfPredicate(command.words, index);
  }
  return found;
}

function objectionToFind(use: Use): string | undefined {
  return use.command.words.some(({ value }) =>
    /^-(?:L|H|follow|files0-from|ok|okdir|exec|execdir|delete|newer[aBcm][aBcm])$/.test(value ?? ''),
  )
    ? 'follows links, runs programs, deletes or looks at other files with this expression'
    : // -newermt takes a time.
      readsZone(use);
}

/** `find [paths] [expression]`, where the expression may run commands. */
function runsOfFind(call: Call): Runs {
  const { args } = call;
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
}

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
    const count = operandsOfFind(name);
    if (count !== undefined) {
      const values = args.slice(at + 1, at + 1 + count);
      const several = values.find((value) => !isSingle(value));
      if (values.length < count) return refused(`find: ${name} has no value.`, word);
      if (several !== undefined)
        return refused(`find: ${several.source} could be several words: quote it.`, several);
      at += count;
    } else if (FIND_RUNS.has(name)) {
      const command = commandAt(args, at + 1);
      if (typeof command === 'string') return refused(`find: ${name} ${command}.`, word);
      const inner = command.map((part) => withInput(part, '{}', path));
      runs.push({ kind: 'argv', words: inner, ...(name.endsWith('dir') ? { directory: 'unknown' } : {}) });
      at += command.length + 1;
    } else return refused(`find: ${word.source} is not a known test or action.`, word);
  }
  return { runs };
}

/** The words from `start` to the end of the action before them; a sentence if it does not end. */
function commandAt(args: readonly Word[], start: number): readonly Word[] | string {
  const end = endOfPredicate(args, start - 1);
  const command = args.slice(start, end);
  const several = command.find((word) => !isSingle(word));
  if (several !== undefined)
    return `runs a command with ${several.source}, which could be several words: quote it`;
  if (end >= args.length) return 'is not closed: end its command with \\;';
  return command.length === 0 ? 'runs nothing' : command;
}

const MARKERS = ['{//}', '{/.}', '{/}', '{.}', '{}'];

/** `fd [options] [pattern [path]] -x command [;]`. */
function runsOfFd(call: Call): Runs {
  const runs: Run[] = [];
  const others: Word[] = [];
  const { args } = call;
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
  const read = readOptions(others, call.grammar, 'anywhere');
  return read.ok ? { runs } : refused(`${call.name}: ${read.message}`, read.word);
}

function filled(command: readonly Word[], option: Word): readonly Word[] {
  const inner = command.map((word) => MARKERS.reduce((now, marker) => withInput(now, marker, false), word));
  return inner.some((word, index) => word !== command[index]) ? inner : [...inner, inputWord(option.span)];
}

/** Whether the program reads `.gitignore` and similar files, in the workspace and above it. */
const readsIgnoreFiles = (use: Use): boolean =>
  !hasOption(use, 'no-ignore u unrestricted') || hasOption(use, 'ignore');

/** Programs that search. */
export const SEARCH: readonly ProgramRow[] = [
  ...programs('grep egrep fgrep zgrep rgrep pcregrep ugrep', 'low', 'local', () => ({
    searchesAll: (use) =>
      use.program.name === 'rgrep' ||
      use.unknown.length > 0 ||
      hasOption(use, 'r recursive R dereference-recursive') ||
      use.options.some(
        ({ name, value }) => /^d(?:irectories)?$/.test(name) && 'recurse'.startsWith(value?.text ?? ''),
      ),
    grammar: 'grep',
    operands: 'script-then-reads',
    scriptOptions: 'e regexp f file',
    followsLinks: (use) => hasOption(use, 'R dereference-recursive'),
    passesOn:
      'e regexp E extended-regexp F fixed-strings G basic-regexp P perl-regexp i ignore-case v invert-match w word-regexp x line-regexp m max-count z null-data a text line-buffered',
    application: { names: 'grep egrep fgrep', without: 'R dereference-recursive' },
  })),
  ...programs('rg', 'low', 'local', () => ({
    searchesAll: () => true,
    followsLinks: (use) => hasOption(use, 'L follow'),
    grammar: 'rg',
    operands: 'script-then-reads',
    scriptOptions: 'e regexp f file files type-list',
    application: {
      without: 'L follow',
      objection: (use) =>
        readsIgnoreFiles(use) && hasOption(use, 'debug trace')
          ? 'prints what ignore files hold with these options; give --no-ignore with them'
          : undefined,
      // Files of ignored names may be links, and what is wrong in them is printed.
      obeys: (use) => (readsIgnoreFiles(use) ? 'ignore-files' : undefined),
      started: ([name = '', ...words]) => [
        name,
        '--no-config',
        '--no-ignore-global',
        '--no-ignore-exclude',
        '--no-ignore-messages',
        ...words,
      ],
      obeysEnvironment: (use) => readsIgnoreFiles(use) || !hasOption(use, 'no-config'),
    },
  })),
  ...programs('ag', 'low', 'local', () => ({
    searchesAll: () => true,
    followsLinks: (use) => hasOption(use, 'f follow'),
    grammar: 'ag',
    operands: 'script-then-reads',
    scriptOptions: 'g',
  })),
  ...programs('ack', 'low', 'local', () => ({
    searchesAll: () => true,
    followsLinks: (use) => hasOption(use, 'follow'),
    grammar: 'ack',
    operands: 'script-then-reads',
    scriptOptions: 'f g match x files-from',
  })),
  ...programs('find', 'low', 'local', () => ({
    // Its words are read by `inspectFind`.
    grammar: 'find',
    paths: pathsOfFind,
    inspect: inspectFind,
    strict: ({ command: { words } }) =>
      words
        .filter(({ value }) => value === '-files0-from')
        .map(({ source }) =>
          finding('invalid', 'list_of_files', 'takes names of files from a file; name them here', source),
        ),
    loses: lossOfFind,
    namesNew: findsOnlyNew,
    runs: runsOfFind,
    followsLinks: ({ command }) =>
      command.words.some(({ value }) => /^-(?:[HP]*L|follow)$/.test(value ?? '')),
    application: { words: 'expression', objection: objectionToFind },
  })),
  ...programs('fd fdfind', 'low', 'local', () => ({
    followsLinks: (use) => hasOption(use, 'L follow'),
    grammar: 'fd',
    loses: lossOfFd,
    namesNew: (use) => fdFindsOnlyNew(use),
    runs: runsOfFd,
  })),
  ...programs('fzf sk', 'medium', 'local', () => ({ operands: 'none', grammar: 'fzf' })),
  ...programs('ast-grep semgrep tokei cloc scc ctags etags cscope', 'medium', 'local'),
];
