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

const TARGET_FLAGS = 'i interactive v verbose T no-target-directory help version';

/** Of cp, mv and install. */
const COPY_FLAGS = `n no-clobber u update Z debug strip-trailing-slashes ${TARGET_FLAGS}`;

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
  grammar: { open: true, flags: 'R recursive v verbose f silent quiet c changes', reads: 'reference' },
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
  ...programs('ls dir vdir', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags:
        '1 a all A almost-all b escape B ignore-backups c C d directory D dired f F g G no-group group-directories-first h human-readable si H dereference-command-line dereference-command-line-symlink-to-dir i inode k kibibytes l L dereference m n numeric-uid-gid N literal o p q hide-control-chars show-control-chars Q quote-name r reverse R recursive s size S t u U v x X Z context zero author file-type full-time help version',
      values:
        'I ignore hide w width T tabsize block-size format indicator-style quoting-style sort time time-style',
      optionals: 'color hyperlink classify',
    },
    operands: 'reads',
    namesNew: listsOnlyNew,
    followsLinks: (use) => hasOption(use, 'R recursive') && hasOption(use, 'L dereference'),
    application: {
      names: 'ls',
      without: 'L dereference H dereference-command-line dereference-command-line-symlink-to-dir',
    },
  }),
  ...programs('tree', 'low', 'local', {
    grammar: {
      source: 'tree 2.1.0',
      flags:
        'a d l f x i q N Q p u g s h D F v t c U r J X C n A S gitignore ignore-case matchdirs metafirst prune info noreport si du inodes device dirsfirst filesfirst nolinks fromfile fflinks help version',
      values: 'L P I H T charset sort filelimit timefmt',
      reads: 'gitfile infofile hintro houtro',
      writes: 'o',
      // It leaves a page in each directory where -L ends.
      writing: 'R',
    },
    operands: 'reads',
    followsLinks: (use) => hasOption(use, 'l'),
  }),
  ...programs('eza exa', 'low', 'local', {
    grammar: {
      source: 'eza 0.19.1',
      open: true,
      exact: true,
      flags:
        '1 G l R T X x a A d r D f b B g h H i m M n O S u U o Z @ v help version oneline grid long recurse tree dereference across no-quotes hyperlink all almost-all list-dirs reverse git-ignore group-directories-first only-dirs only-files show-symlinks no-symlinks binary bytes changed group smart-group header links inode modified mounts numeric flags blocksize total-size accessed created no-permissions octal-permissions no-filesize no-user no-time stdin extended context git git-repos git-repos-no-status no-git',
      values: 'w width L level s sort I ignore-glob t time time-style color-scale-mode colour-scale-mode',
      optionals: 'F classify color colour icons color-scale colour-scale',
      writes: 'write-theme',
    },
    operands: 'reads',
    followsLinks: (use) => hasOption(use, 'X dereference') && hasOption(use, 'R recurse T tree'),
  }),
  ...programs('lsd', 'low', 'local', {
    grammar: {
      source: 'lsd 0.23.1',
      open: true,
      flags:
        '1 a A d F h i l L r R S t U v V X Z oneline all almost-all classic directory-only classify group-directories-first human-readable header help inode ignore-config long dereference no-symlink reverse recursive sizesort timesort total-size tree no-sort versionsort version extensionsort context',
      values:
        'I ignore-glob blocks color date depth group-dirs hyperlink icon icon-theme permission size sort',
      reads: 'config-file',
    },
    operands: 'reads',
    followsLinks: (use) => hasOption(use, 'L dereference') && hasOption(use, 'R recursive tree'),
  }),
  ...programs('cp', 'medium', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: `a archive b d f force H l link L dereference P no-dereference p r R recursive s symbolic-link x one-file-system attributes-only parents remove-destination copy-contents path ${COPY_FLAGS}`,
      values: 'S suffix no-preserve sparse',
      optionals: 'backup preserve reflink context',
      writes: 't target-directory',
    },
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
  }),
  ...programs('mv', 'medium', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: `b f force context ${COPY_FLAGS}`,
      values: 'S suffix',
      optionals: 'backup',
      writes: 't target-directory',
    },
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
  }),
  ...programs('ln', 'medium', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: `b d F directory f force L logical n no-dereference P physical r relative s symbolic ${TARGET_FLAGS}`,
      values: 'S suffix',
      optionals: 'backup',
      writes: 't target-directory',
    },
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
  }),
  ...programs('install', 'medium', 'local', {
    dangers: (use) => {
      const mode = use.options.findLast(({ name }) => name === 'm' || name === 'mode')?.value;
      const isOfDirectories = hasOption(use, 'd directory') && mode !== undefined && SETGID.test(mode.text);
      return isOfDirectories ? [] : setsUser(mode);
    },
    grammar: {
      source: 'coreutils 9.1',
      flags: `b c C compare d directory D p preserve-timestamps preserve-context s strip ${COPY_FLAGS}`,
      values: 'g group m mode o owner S suffix',
      optionals: 'backup context',
      writes: 't target-directory',
      executes: 'strip-program',
    },
    paths: pathsOfInstall,
    operands: 'reads-then-writes',
    targetOptions: 't target-directory',
  }),
  ...programs('mkdir', 'medium', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: 'p parents v verbose Z help version',
      values: 'm mode',
      optionals: 'context',
    },
    // With -p, it may be there.
    paths: (use) =>
      hasOption(use, 'p parents') ? directoryPaths(use.operands) : replacedPaths(use.operands),
    operands: 'writes',
    application: { changesEntries: true },
  }),
  ...programs('touch', 'medium', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: 'a c no-create f h no-dereference m help version',
      values: 'd date t time',
      reads: 'r reference',
    },
    operands: 'writes',
    application: { objection: readsZone, changesEntries: true },
  }),
  ...programs('mktemp', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: 'd directory u dry-run q quiet t',
      values: 'suffix',
      producesAttached: 'tmpdir',
      writes: 'p',
    },
    paths: ({ operands }) => replacedPaths(operands),
    operands: 'writes',
    namesNew: () => true,
  }),
  ...programs('mkfifo mknod', 'medium', 'local', {
    grammar: { source: 'coreutils 9.1', flags: 'Z', values: 'm mode' },
    paths: (use) => replacedPaths(use.operands),
    operands: 'writes',
  }),
  ...programs('truncate', 'medium', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      open: true,
      flags: 'c no-create o io-blocks help version',
      values: 's size',
      reads: 'r reference',
    },
    operands: 'writes',
  }),
  ...programs('fallocate', 'medium', 'local', {
    grammar: {
      source: 'util-linux 2.38.1',
      open: true,
      flags:
        'c collapse-range d dig-holes i insert-range n keep-size p punch-hole z zero-range x posix v verbose h help V version',
      values: 'l length o offset',
    },
    operands: 'writes',
  }),
  ...programs('rm', 'high', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: 'f force i I r R recursive d dir v verbose one-file-system no-preserve-root help version',
      optionals: 'interactive preserve-root',
    },
    operands: 'removes',
    application: { changesEntries: true },
  }),
  ...programs('unlink trash trash-put srm', 'high', 'local', { operands: 'removes' }),
  ...programs('rmdir', 'medium', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: 'p parents path v verbose ignore-fail-on-non-empty help version',
    },
    operands: 'removes',
    // Of directories those that hold nothing.
    keeps: () => true,
    // With -p it climbs as far as directories are empty, out of the workspace too.
    application: { without: 'p parents', changesEntries: true },
  }),
  ...programs('chmod', 'high', 'local', {
    ...CHANGES_RIGHTS,
    grammar: {
      ...CHANGES_RIGHTS.grammar,
      source: 'coreutils 9.1',
      flags: 'R recursive v verbose f silent quiet c changes preserve-root no-preserve-root help version',
    },
    dangers: (use, isDirectory) => {
      const [mode, ...of] = use.operands;
      const isOfDirectories =
        mode !== undefined && SETGID.test(mode.text) && of.length > 0 && of.every(isDirectory);
      return isOfDirectories && !hasOption(use, 'R recursive') ? [] : setsUser(mode);
    },
    onlyInside: 'change permissions',
  }),
  ...programs('chgrp', 'high', 'local', {
    ...CHANGES_RIGHTS,
    grammar: {
      ...CHANGES_RIGHTS.grammar,
      source: 'coreutils 9.1',
      flags:
        'R recursive v verbose f silent quiet c changes h no-dereference dereference H L P preserve-root no-preserve-root help version',
    },
  }),
  ...programs('chattr', 'high', 'local', {
    ...CHANGES_RIGHTS,
    grammar: {
      source: 'e2fsprogs 1.47.0',
      open: true,
      flags: 'R V f a A c C d D e i j m P s S t T u F x',
      values: 'p v',
    },
    // What is taken away looks like an option.
    scriptOptions: 'a A c C d D e i j m P s S t T u F x p v',
  }),
  ...programs('setfacl', 'high', 'local', {
    grammar: {
      source: 'acl 2.3.1',
      open: true,
      flags:
        'b remove-all k remove-default n no-mask mask d default test R recursive L logical P physical v version h help',
      values: 'm modify x remove set',
      // What a list of rights names is changed as well.
      reads: 'M modify-file X remove-file set-file restore',
    },
    operands: 'reads',
  }),
  ...programs('setfattr', 'high', 'local', {
    grammar: {
      source: 'attr 2.5.1',
      open: true,
      flags: 'h no-dereference raw version help',
      values: 'n name v value x remove',
      reads: 'restore',
    },
    operands: 'reads',
  }),
  ...programs('tee', 'medium', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: 'a append i ignore-interrupts p help version',
      optionals: 'output-error',
    },
    operands: 'writes',
    // tee would make a file that is called `-`.
    onlyReads: ({ operands }) =>
      operands.every(({ text, complete }) => complete && text !== '-' && isSink(text)),
    application: { changesEntries: true },
  }),
  ...programs('split', 'medium', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: 'd x e elide-empty-files verbose u unbuffered',
      values: 'a suffix-length additional-suffix b bytes C line-bytes l lines n number t separator',
      optionals: 'numeric-suffixes hex-suffixes',
      executes: 'filter',
    },
    // The second one is what the names of its output begin with.
    paths: ({ operands }) => [
      ...plainPaths(operands.slice(0, 1), 'reads'),
      ...replacedPaths(operands.slice(1)),
    ],
  }),
  ...programs('csplit', 'medium', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: 'k keep-files s quiet silent z elide-empty-files suppress-matched',
      values: 'b suffix-format n digits',
      writes: 'f prefix',
    },
    // Patterns follow.
    paths: ({ operands }) => plainPaths(operands.slice(0, 1), 'reads'),
  }),
  ...programs('basename', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      stopAtOperand: true,
      flags: 'a multiple z zero help version',
      values: 's suffix',
    },
    operands: 'none',
    application: { words: 'any' },
  }),
  ...programs('dirname', 'low', 'local', {
    grammar: { source: 'coreutils 9.1', flags: 'z zero help version' },
    operands: 'none',
    application: { words: 'any' },
  }),
  ...programs('realpath readlink', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags:
        'f canonicalize e canonicalize-existing m canonicalize-missing n no-newline q quiet s no-symlinks strip z zero v verbose silent L logical P physical help version',
      values: 'relative-to relative-base',
    },
    operands: 'none',
    application: {
      // The names that they print are those of files: where a link leads is seen.
      paths: ({ operands, options }) =>
        plainPaths([...operands, ...options.map(({ value }) => value)], 'reads'),
    },
  }),
  ...programs('cksum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      // -c is no option with a value: the list of sums is an operand.
      flags:
        'b binary c check t text z zero w warn tag untagged quiet status strict ignore-missing debug help version',
      values: 'a algorithm l length',
    },
    operands: 'reads',
    strict: takesNamesFrom('c check'),
    // The list of sums names files of its own.
    application: {
      without: 'c check w warn untagged quiet status strict ignore-missing debug a algorithm l length',
    },
  }),
  ...programs('sum', 'low', 'local', {
    grammar: { source: 'coreutils 9.1', open: true, flags: 'r s sysv help version' },
    operands: 'reads',
  }),
  ...programs('shasum', 'low', 'local', {
    grammar: {
      source: 'shasum 6.02',
      open: true,
      flags:
        'b binary c check t text U UNIVERSAL 0 01 w warn q quiet s status strict tag ignore-missing h help v version',
      values: 'a algorithm',
    },
    operands: 'reads',
  }),
  ...programs('stat', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: 'L dereference f file-system t terse help version',
      values: 'c format printf cached',
    },
    operands: 'reads',
    application: {},
  }),
  ...programs('du', 'low', 'local', {
    strict: takesNamesFrom('files0-from'),
    followsLinks: (use) => hasOption(use, 'L dereference'),
    grammar: {
      source: 'coreutils 9.1',
      flags:
        '0 null a all apparent-size b bytes c total D dereference-args H h human-readable inodes k L dereference l count-links m P no-dereference S separate-dirs si s summarize x one-file-system help version',
      values: 'B block-size d max-depth exclude t threshold time-style',
      optionals: 'time',
      reads: 'files0-from X exclude-from',
    },
    operands: 'reads',
    application: {
      without: 'D dereference-args H L dereference l count-links time time-style files0-from X exclude-from',
    },
  }),
  ...programs('df', 'low', 'local', {
    // None of its options writes or runs anything.
    grammar: {
      source: 'coreutils 9.1',
      open: true,
      flags:
        'a all h human-readable H si i inodes k l local no-sync P portability sync total T print-type v help version',
      values: 'B block-size t type x exclude-type',
      optionals: 'output',
    },
    operands: 'reads',
  }),
  ...programs('wc', 'low', 'local', {
    strict: takesNamesFrom('files0-from'),
    grammar: {
      source: 'coreutils 9.1',
      flags: 'c bytes m chars l lines L max-line-length w words debug help version',
      values: 'total',
      reads: 'files0-from',
    },
    operands: 'reads',
    application: { without: 'files0-from' },
  }),
  ...programs('file', 'low', 'local', {
    strict: takesNamesFrom('f files-from'),
    grammar: {
      source: 'file 5.44',
      flags:
        'b brief c checking-printout d debug h no-dereference i mime mime-type mime-encoding apple extension k keep-going l list L dereference n no-buffer N no-pad 0 print0 p preserve-date r raw s special-files S no-sandbox z uncompress Z uncompress-noreport v version help',
      values: 'e exclude exclude-quiet F separator P parameter',
      reads: 'f files-from m magic-file',
      writing: 'C compile',
    },
    operands: 'reads',
    application: {
      without:
        'c checking-printout d debug apple extension l list L dereference n no-buffer p preserve-date s special-files S no-sandbox z uncompress Z uncompress-noreport e exclude exclude-quiet P parameter f files-from m magic-file C compile',
    },
  }),
  ...programs('which', 'low', 'local', {
    grammar: { source: 'debianutils 5.7', flags: 'a s' },
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
  }),
  ...programs('whereis locate', 'low', 'local', { operands: 'none' }),
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

/** The same of a pattern. */
function isMadeAnewAs({ word, ...argument }: Argument): boolean {
  const isPattern = word.parts.every(({ kind }) => kind === 'literal' || kind === 'glob');
  return isPattern && isMadeAnew({ ...argument, word, text: word.source, complete: true });
}

/** They fail where something is there, so that the directory around it has to be written. */
/** It takes away what is there, and writes it anew. */
function pathsOfInstall(use: Use): readonly PathUse[] {
  const { operands } = use;
  if (hasOption(use, 'd directory')) return directoryPaths(operands);
  const isInto = hasOption(use, 't target-directory') || operands.length === 1;
  const sources = isInto ? operands : operands.slice(0, -1);
  return [...plainPaths(sources, 'reads'), ...replacedPaths(operands.slice(sources.length))];
}
