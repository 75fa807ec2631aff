import {
  type Argument,
  type Behaviour,
  type Finding,
  finding,
  type PathUse,
  type ProgramRow,
  programs,
  type Use,
} from '../behaviour.ts';
import {
  directoryPaths,
  hasOption,
  isSink,
  pathInside,
  plainPaths,
  readsZone,
  replacedPaths,
  takesNamesFrom,
} from '../options.ts';
import { isMadeAnew, isRegenerableName } from '../regenerable.ts';

/** An operand count that a program would refuse, or that would make it read standard input. */
function atLeast(count: number, message: string): (use: Use) => readonly Finding[] {
  return ({ operands }) => (operands.length >= count ? [] : [finding('invalid', 'arguments', message)]);
}

/** `cp a dir` writes dir/a, through a link if that is one; so does `mv`, and both take `dir/` for a directory. */
function pathsIntoTarget({ operands }: Use): readonly PathUse[] {
  const target = operands.at(-1);
  if (target === undefined) return [];
  return operands.slice(0, -1).map(({ text }) => {
    const name = text.replace(/\/+$/, '').split('/').at(-1) ?? '';
    return { argument: pathInside(target, `${target.text}/${name}`), effect: 'writes' };
  });
}

/** True if `cp` may give other names to symbolic links. */
const copiesLinks = (use: Use) => copiesDirectories(use) || hasOption(use, 'd P no-dereference');

function objectionToCp(use: Use, isDirectory: (argument: Argument) => boolean): string | undefined {
  if (!copiesLinks(use)) return undefined;
  // What the first one brings, a link too, lies in the way of the second.
  if (use.operands.length > 2) return 'copies one directory or link at a time here';
  if (hasOption(use, 'L dereference H')) return 'follows symbolic links that it meets with this option';
  // What is there already may hold links, which would be written through.
  const target = use.operands.at(-1);
  return target !== undefined && isDirectory(target)
    ? 'copies directories only to a name that is not there yet'
    : undefined;
}

const CHANGES_RIGHTS: Behaviour = {
  // The first operand is the mode.
  operands: 'script-then-reads',
  scriptOptions: 'reference',
};

/** Modes that give the rights of the owner or group to every user who runs the file. */
const SETUID = /^(?:0*[2-7]\d{3}|[ugoa]*[+=][rwxXt]*s[rwxXst]*|.*,[ugoa]*[+=][rwxXt]*s.*)$/;

/** Modes that give those of the group alone: to a directory it says only what group new files in it have. */
const SETGID = /^(?:0*[23]\d{3}|g[+=][rwxXt]*s[rwxXst]*)$/;

function setsUser(mode: Argument | undefined): readonly Finding[] {
  if (mode?.complete !== true || !SETUID.test(mode.text)) return [];
  const does = `${mode.text} makes a program run with the rights of its owner`;
  return [finding('executes', 'setuid', does, mode.word.source)];
}

const isPath = ({ text }: Argument) => text.includes('/');

/** Programs that list, make, copy, move and delete files. */
export const FILES: readonly ProgramRow[] = [
  ...programs('ls dir vdir', 'low', 'local', () => ({
    grammar: 'ls',
    operands: 'reads',
    namesNew: listsOnlyNew,
    followsLinks: (use) => hasOption(use, 'R recursive') && hasOption(use, 'L dereference'),
    application: {
      names: 'ls',
      without: 'L dereference H dereference-command-line dereference-command-line-symlink-to-dir',
    },
  })),
  ...programs('tree', 'low', 'local', () => ({
    grammar: 'tree',
    operands: 'reads',
    followsLinks: (use) => hasOption(use, 'l'),
  })),
  ...programs('eza exa', 'low', 'local', () => ({
    grammar: 'eza',
    operands: 'reads',
    followsLinks: (use) => hasOption(use, 'X dereference') && hasOption(use, 'R recurse T tree'),
  })),
  ...programs('lsd', 'low', 'local', () => ({
    grammar: 'lsd',
    operands: 'reads',
    followsLinks: (use) => hasOption(use, 'L dereference') && hasOption(use, 'R recursive tree'),
  })),
  ...programs('cp', 'medium', 'local', () => ({
    grammar: 'cp',
    operands: 'reads-then-writes',
    targetOptions: 't target-directory',
    followsLinks: (use) => copiesDirectories(use) && hasOption(use, 'L dereference'),
    makesLinks: (use) =>
      hasOption(use, 's symbolic-link') ? 'there' : copiesLinks(use) ? 'copies' : undefined,
    // With -t, the target stands first.
    editsListed: true,
    wantsFiles: (use) => (copiesDirectories(use) ? undefined : 'does not copy directories without -r'),
    strict: (use) => {
      const forced = use.options.filter(
        ({ name }) => name === 'f' || name === 'force' || name === 'remove-destination',
      );
      return forced.length > 0
        ? forced.map(({ word }) =>
            finding('invalid', 'unknown_option', 'may not overwrite by force here', word.source),
          )
        : atLeast(hasOption(use, 't target-directory') ? 1 : 2, 'needs a source and a target')(use);
    },
    application: {
      without: 't target-directory parents s symbolic-link l link b backup S suffix copy-contents',
      morePaths: pathsIntoTarget,
      objection: objectionToCp,
      movesLinks: copiesLinks,
      changesEntries: true,
    },
  })),
  ...programs('mv', 'medium', 'local', () => ({
    grammar: 'mv',
    operands: 'moves-then-writes',
    targetOptions: 't target-directory',
    makesLinks: () => 'here',
    application: {
      without: 't target-directory b backup S suffix',
      morePaths: pathsIntoTarget,
      // The second may lead through a link that the first has moved.
      objection: ({ operands }) => (operands.length > 2 ? 'moves one file at a time here' : undefined),
      movesLinks: () => true,
      changesEntries: true,
    },
  })),
  ...programs('ln', 'medium', 'local', () => ({
    grammar: 'ln',
    paths: (use) => {
      const toTarget = use.operands.length === 1 || hasOption(use, 't target-directory');
      const targets = toTarget ? [] : use.operands.slice(-1);
      const sources = toTarget ? use.operands : use.operands.slice(0, -1);
      // A symbolic link says where to look from where it lies; it is judged when something looks.
      const opened = hasOption(use, 's symbolic')
        ? sources.filter(({ text }) => text.startsWith('/'))
        : sources;
      return [...plainPaths(opened, 'reads'), ...replacedPaths(targets)];
    },
    operands: 'reads-then-writes',
    targetOptions: 't target-directory',
    makesLinks: (use) =>
      hasOption(use, 's symbolic') ? (hasOption(use, 'r relative') ? 'here' : 'there') : undefined,
  })),
  ...programs('install', 'medium', 'local', () => ({
    dangers: (use) => {
      const mode = use.options.findLast(({ name }) => name === 'm' || name === 'mode')?.value;
      const isOfDirectories = hasOption(use, 'd directory') && mode !== undefined && SETGID.test(mode.text);
      return isOfDirectories ? [] : setsUser(mode);
    },
    grammar: 'install',
    paths: pathsOfInstall,
    operands: 'reads-then-writes',
    targetOptions: 't target-directory',
  })),
  ...programs('mkdir', 'medium', 'local', () => ({
    grammar: 'mkdir',
    // With -p the directory may exist.
    paths: (use) =>
      hasOption(use, 'p parents') ? directoryPaths(use.operands) : replacedPaths(use.operands),
    operands: 'writes',
    application: { changesEntries: true },
  })),
  ...programs('touch', 'medium', 'local', () => ({
    grammar: 'touch',
    operands: 'writes',
    application: { objection: readsZone, changesEntries: true },
  })),
  ...programs('mktemp', 'low', 'local', () => ({
    grammar: 'mktemp',
    paths: ({ operands }) => replacedPaths(operands),
    operands: 'writes',
    namesNew: () => true,
  })),
  ...programs('mkfifo mknod', 'medium', 'local', () => ({
    grammar: 'mkfifo',
    paths: (use) => replacedPaths(use.operands),
    operands: 'writes',
  })),
  ...programs('truncate', 'medium', 'local', () => ({ grammar: 'truncate', operands: 'writes' })),
  ...programs('fallocate', 'medium', 'local', () => ({ grammar: 'fallocate', operands: 'writes' })),
  ...programs('rm', 'high', 'local', () => ({
    grammar: 'rm',
    operands: 'removes',
    application: { changesEntries: true },
  })),
  ...programs('unlink trash trash-put srm', 'high', 'local', () => ({ operands: 'removes' })),
  ...programs('rmdir', 'medium', 'local', () => ({
    grammar: 'rmdir',
    operands: 'removes',
    // It removes only empty directories.
    keeps: () => true,
    // With -p it climbs as far as directories are empty, out of the workspace too.
    application: { without: 'p parents', changesEntries: true },
  })),
  ...programs('chmod', 'high', 'local', () => ({
    ...CHANGES_RIGHTS,
    grammar: 'chmod',
    dangers: (use, isDirectory) => {
      const [mode, ...of] = use.operands;
      const isOfDirectories =
        mode !== undefined && SETGID.test(mode.text) && of.length > 0 && of.every(isDirectory);
      return isOfDirectories && !hasOption(use, 'R recursive') ? [] : setsUser(mode);
    },
    onlyInside: 'change permissions',
  })),
  ...programs('chgrp', 'high', 'local', () => ({ ...CHANGES_RIGHTS, grammar: 'chgrp' })),
  ...programs('chattr', 'high', 'local', () => ({
    ...CHANGES_RIGHTS,
    grammar: 'chattr',
    // What is taken away looks like an option.
    scriptOptions: 'a A c C d D e i j m P s S t T u F x p v',
  })),
  ...programs('setfacl', 'high', 'local', () => ({ grammar: 'setfacl', operands: 'reads' })),
  ...programs('setfattr', 'high', 'local', () => ({ grammar: 'setfattr', operands: 'reads' })),
  ...programs('tee', 'medium', 'local', () => ({
    grammar: 'tee',
    operands: 'writes',
    // tee would make a file that is called `-`.
    onlyReads: ({ operands }) =>
      operands.every(({ text, complete }) => complete && text !== '-' && isSink(text)),
    application: { changesEntries: true },
  })),
  ...programs('split', 'medium', 'local', () => ({
    grammar: 'split',
    // The second one is what the names of its output begin with.
    paths: ({ operands }) => [
      ...plainPaths(operands.slice(0, 1), 'reads'),
      ...replacedPaths(operands.slice(1)),
    ],
  })),
  ...programs('csplit', 'medium', 'local', () => ({
    grammar: 'csplit',
    // Patterns follow.
    paths: ({ operands }) => plainPaths(operands.slice(0, 1), 'reads'),
  })),
  ...programs('basename', 'low', 'local', () => ({
    grammar: 'basename',
    operands: 'none',
    application: { words: 'any' },
  })),
  ...programs('dirname', 'low', 'local', () => ({
    grammar: 'dirname',
    operands: 'none',
    application: { words: 'any' },
  })),
  ...programs('realpath readlink', 'low', 'local', () => ({
    grammar: 'realpath',
    operands: 'none',
    application: {
      // The names that they print are those of files: where a link leads is seen.
      paths: ({ operands, options }) =>
        plainPaths([...operands, ...options.map(({ value }) => value)], 'reads'),
    },
  })),
  ...programs('cksum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum', 'low', 'local', () => ({
    grammar: 'cksum',
    operands: 'reads',
    strict: takesNamesFrom('c check'),
    // The list of sums names files of its own.
    application: {
      without: 'c check w warn untagged quiet status strict ignore-missing debug a algorithm l length',
    },
  })),
  ...programs('sum', 'low', 'local', () => ({ grammar: 'sum', operands: 'reads' })),
  ...programs('shasum', 'low', 'local', () => ({ grammar: 'shasum', operands: 'reads' })),
  ...programs('stat', 'low', 'local', () => ({ grammar: 'stat', operands: 'reads', application: {} })),
  ...programs('du', 'low', 'local', () => ({
    strict: takesNamesFrom('files0-from'),
    followsLinks: (use) => hasOption(use, 'L dereference'),
    grammar: 'du',
    operands: 'reads',
    application: {
      without: 'D dereference-args H L dereference l count-links time time-style files0-from X exclude-from',
    },
  })),
  ...programs('df', 'low', 'local', () => ({
    // None of its options writes or runs anything.
    grammar: 'df',
    operands: 'reads',
  })),
  ...programs('wc', 'low', 'local', () => ({
    strict: takesNamesFrom('files0-from'),
    grammar: 'wc',
    operands: 'reads',
    application: { without: 'files0-from' },
  })),
  ...programs('file', 'low', 'local', () => ({
    strict: takesNamesFrom('f files-from'),
    grammar: 'file',
    operands: 'reads',
    application: {
      without:
        'c checking-printout d debug apple extension l list L dereference n no-buffer p preserve-date s special-files S no-sandbox z uncompress Z uncompress-noreport e exclude exclude-quiet P parameter f files-from m magic-file C compile',
    },
  })),
  ...programs('which', 'low', 'local', () => ({
    grammar: 'which',
    operands: 'none',
    strict: (use) => [
      ...atLeast(1, 'needs a name')(use),
      ...use.operands
        .filter(isPath)
        .map(({ word }) => finding('invalid', 'arguments', 'takes names, not paths', word.source)),
    ],
    application: {
      words: 'any',
      objection: ({ operands }) => (operands.some(isPath) ? 'takes names, not paths' : undefined),
    },
  })),
  ...programs('whereis locate', 'low', 'local', () => ({ operands: 'none' })),
];

/** True if `cp` copies directories. */
function copiesDirectories(use: Use): boolean {
  return hasOption(use, 'a archive r R recursive');
}

/** `ls -t build/*.o`: one name a line, each as it is written, and what is in no directory (`node_modules/chart.js` is one). */
function listsOnlyNew({ options, operands, unknown }: Use): boolean {
  const isFile = ({ word: { source } }: Argument) =>
    /(?:^|\/)[^/]*\*[^/]*\.[A-Za-z]\w*$/.test(source) ||
    (/\.\w+$/.test(source) && isRegenerableName(source.slice(source.lastIndexOf('/') + 1)));
  const isListedItself = options.some(({ name }) => name === 'd' || name === 'directory');
  return (
    operands.length > 0 &&
    operands.every((operand) => (isListedItself || isFile(operand)) && isMadeAnewAs(operand)) &&
    options.every(({ name }) => /^(?:[1tdrSX]|reverse|directory)$/.test(name)) &&
    unknown.length === 0
  );
}

/** Like `isMadeAnew`, for a pattern. */
function isMadeAnewAs({ word, ...argument }: Argument): boolean {
  const isPattern = word.parts.every(({ kind }) => kind === 'literal' || kind === 'glob');
  return isPattern && isMadeAnew({ ...argument, word, text: word.source, complete: true });
}

/** `install` removes an existing target and creates it anew, so its directory is written. */
function pathsOfInstall(use: Use): readonly PathUse[] {
  const { operands } = use;
  if (hasOption(use, 'd directory')) return directoryPaths(operands);
  const isInto = hasOption(use, 't target-directory') || operands.length === 1;
  const sources = isInto ? operands : operands.slice(0, -1);
  return [...plainPaths(sources, 'reads'), ...replacedPaths(operands.slice(sources.length))];
}
