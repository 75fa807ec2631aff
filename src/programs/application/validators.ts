import type { Word } from '../../model/command-line.ts';
import type { Argument, Grammar, PathUse, Program, Use } from '../behaviour.ts';
import { argumentOf, hasOption } from '../options.ts';
import { plainPaths } from '../plain-paths.ts';
import { findProgram } from '../program-table.ts';
import { isPlainAwk, isPlainJq, isPlainSed } from './plain-scripts.ts';
import { AS_IN_THE_TABLES, CLOSED, WITHOUT_FILES } from './rows.ts';

/** What has to be known of a program so that its words alone can stand in for a sandbox. */
export interface Validator {
  /** With every option that is let through, and which words are paths. */
  readonly program: Program;
  /** Its words name no files: they are not looked at. */
  readonly withoutFiles: boolean;
  /** What else speaks against a call: completes "`program` …"; `undefined`: nothing. */
  readonly objection: (use: Use, isDirectory: (argument: Argument) => boolean) => string | undefined;
  /** It can give other names to symbolic links, so that what comes after it cannot be checked before. */
  readonly movesLinks: (use: Use) => boolean;
}

type Objection = Validator['objection'];

const FOLLOWS = 'follows symbolic links that it meets with this option';

const follows =
  (options: string): Objection =>
  (use) =>
    hasOption(use, options) ? FOLLOWS : undefined;

function scripts(use: Use, options: string): readonly Argument[] {
  const names = options.split(' ');
  const given = use.options.flatMap(({ name, value }) =>
    names.includes(name) && value !== undefined ? [value] : [],
  );
  return given.length > 0 ? given : use.operands.slice(0, 1);
}

const copiesLinks = (use: Use) => hasOption(use, 'd P no-dereference');
const copiesTrees = (use: Use) => hasOption(use, 'a archive r R recursive');

/** A time may name a file of a zone: `TZ="../x"`. */
const readsZone: Objection = ({ command }) =>
  command.words.some(({ value }) => value?.includes('TZ') === true)
    ? 'reads a file for the zone that it is given'
    : undefined;

/** Operands and -v set variables of awk, those of its own too. */
const isNoSetting = ({ value }: Word) => value === undefined || !/^(?:-v)?(?:ARG|[A-Z]+TAB)/.test(value);

const OBJECTIONS: Readonly<Record<string, Objection>> = {
  ls: follows('L dereference H dereference-command-line dereference-command-line-symlink-to-dir'),
  grep: follows('R dereference-recursive'),
  // Files of ignored names may be links, and what is wrong in them is printed.
  rg: (use) => {
    if (hasOption(use, 'L follow')) return FOLLOWS;
    const unasked = !hasOption(use, 'no-ignore u unrestricted') || !hasOption(use, 'no-config');
    return unasked || hasOption(use, 'ignore')
      ? 'reads .gitignore and its like, and settings, wherever they lead; give --no-ignore --no-config'
      : undefined;
  },
  find: (use) =>
    use.command.words.some(({ value }) =>
      /^-(?:L|H|follow|files0-from|ok|okdir|exec|execdir|delete|newer[aBcm][aBcm])$/.test(value ?? ''),
    )
      ? 'follows links, runs programs, deletes or looks at other files with this expression'
      : // -newermt takes a time.
        readsZone(use, () => false),
  sort: (use) =>
    hasOption(use, 'files0-from T temporary-directory') ? 'takes no list of files here' : undefined,
  sed: (use) => {
    const texts = scripts(use, 'e expression').map(({ text }) => text);
    // The name of a backup is another one than was judged: `sed -ifig p .git/con`.
    const suffix = use.options.some(
      ({ name, value }) => (name === 'i' || name === 'in-place') && value !== undefined,
    );
    if (suffix || hasOption(use, 'follow-symlinks'))
      return 'may write elsewhere with this option (-i takes no suffix here)';
    return texts.length > 0 && texts.every(isPlainSed) && isPlainSed(texts.join('\n'))
      ? undefined
      : 'has a script that is not plain: only p, d, q, n, s/…/…/ without e and w, and their like';
  },
  awk: (use) =>
    scripts(use, '').every(({ text }) => isPlainAwk(text)) && use.command.words.every(isNoSetting)
      ? undefined
      : 'has a program that is not plain: only printing and computing, without functions of its own, getline, system, ARGV and its like, @, pipes, or > behind a brace',
  jq: (use) =>
    use.command.words.every(({ value }) => isPlainJq(value ?? '')) ? undefined : 'takes no modules here',
  cp: (use, isDirectory) => {
    if (hasOption(use, 't target-directory parents s symbolic-link l link b backup S suffix copy-contents'))
      return 'takes no such option here';
    if (!copiesTrees(use) && !copiesLinks(use)) return undefined;
    // What the first one brings, a link too, lies in the way of the second.
    if (use.operands.length > 2) return 'copies one directory or link at a time here';
    if (hasOption(use, 'L dereference H')) return FOLLOWS;
    // What is there already may hold links, which would be written through.
    const target = use.operands.at(-1);
    return target !== undefined && isDirectory(target)
      ? 'copies directories only to a name that is not there yet'
      : undefined;
  },
  mv: (use) => {
    if (hasOption(use, 't target-directory b backup S suffix')) return 'takes no such option here';
    // The second may lead through a link that the first has moved.
    return use.operands.length > 2 ? 'moves one file at a time here' : undefined;
  },
  // It climbs as far as directories are empty, out of the workspace too.
  rmdir: (use) =>
    hasOption(use, 'p parents') ? 'removes directories that are not named with -p' : undefined,
  which: (use) =>
    use.operands.some(({ text }) => text.includes('/')) ? 'takes names, not paths' : undefined,
  date: readsZone,
  touch: readsZone,
  diff: (use, isDirectory) =>
    !hasOption(use, 'no-dereference') && (hasOption(use, 'r recursive') || use.operands.some(isDirectory))
      ? 'follows symbolic links in directories; give --no-dereference'
      : undefined,
  tail: (use) => (hasOption(use, 'pid') ? 'takes no such option here' : undefined),
};
const SAME: Readonly<Record<string, string>> = { egrep: 'grep', fgrep: 'grep' };

/** `cp a dir` writes dir/a, through a link if that is one; so does `mv`, and both take `dir/` for a directory. */
function pathsIntoTarget(use: Use): readonly PathUse[] {
  const target = use.operands.at(-1);
  if (target === undefined) return [];
  return use.operands.slice(0, -1).map((source) => {
    const name = source.text.replace(/\/+$/, '').split('/').at(-1) ?? '';
    const path = `${target.text}/${name}`;
    const { word } = target;
    return {
      argument: argumentOf({ ...word, value: path, parts: [{ kind: 'literal', text: path }], source: path }),
      effect: 'writes',
    };
  });
}

/** Behind an operator that asks about a file, or beside one that compares two. */
function pathsOfTest({ command: { words } }: Use): readonly PathUse[] {
  const found = words.flatMap((word, index): readonly Argument[] => {
    if (index === 0) return [];
    const around = `${words[index - 1]?.value} ${words[index + 1]?.value}`;
    const asked = /^-[a-hkLprsuwxGOSN] /.test(around) || /^-(?:nt|ot|ef) | -(?:nt|ot|ef)$/.test(around);
    return asked ? [argumentOf(word)] : [];
  });
  return plainPaths(found, 'reads');
}

const MORE_PATHS: Readonly<Record<string, (use: Use) => readonly PathUse[]>> = {
  cp: pathsIntoTarget,
  mv: pathsIntoTarget,
};

const built = new Map<string, Validator | undefined>();

/** The validator of a program; `undefined`: its words alone say too little. */
export function validatorOf(name: string): Validator | undefined {
  if (!built.has(name)) built.set(name, build(name));
  return built.get(name);
}

function build(name: string): Validator | undefined {
  const known = findProgram(name);
  const program = rowOf(name, known);
  if (program === undefined) return undefined;
  const more = MORE_PATHS[name];
  return {
    program: more === undefined ? program : { ...program, morePaths: more },
    withoutFiles: WITHOUT_FILES.includes(name),
    objection: OBJECTIONS[SAME[name] ?? name] ?? (() => undefined),
    movesLinks: (use) => name === 'mv' || (name === 'cp' && (copiesTrees(use) || copiesLinks(use))),
  };
}

/** The names that they print are those of files: where a link leads is seen. */
const PRINTS_PLACES = {
  operands: 'reads',
  grammar: {
    flags:
      'f canonicalize e canonicalize-existing m canonicalize-missing n no-newline q quiet s no-symlinks strip z zero v verbose silent L logical P physical',
    reads: 'relative-to relative-base',
  },
} as const;

/** Programs that change what a path of another one may mean, unless they only read. */
export const CHANGES_ENTRIES: ReadonlySet<string> = new Set('cp mv mkdir touch tee rm rmdir sed'.split(' '));

function rowOf(name: string, known: Program | undefined): Program | undefined {
  if (name === 'test' || name === '[')
    return { name, risk: 'low', reach: 'local', operands: 'none', paths: pathsOfTest };
  if (WITHOUT_FILES.includes(name) || AS_IN_THE_TABLES.includes(name)) {
    if (known === undefined) return undefined;
    return name === 'realpath' || name === 'readlink' ? { ...known, ...PRINTS_PLACES } : known;
  }
  const closed = Object.hasOwn(CLOSED, name) ? CLOSED[name] : undefined;
  if (closed === undefined) return undefined;
  // Paths of jq are where its row finds them.
  const paths = name === 'jq' ? known?.paths : undefined;
  return { name, risk: 'low', reach: 'local', ...closed, ...(paths === undefined ? {} : { paths }) };
}

/** True if every option of the program is known, so that no word can hide another meaning. */
export function isClosed(grammar: Grammar | undefined): boolean {
  return grammar !== undefined && grammar.open !== true;
}
