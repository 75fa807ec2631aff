import { type Finding, type ProgramRow, programs, type Use } from '../behaviour.ts';
import { hasOption } from '../options.ts';
import { isSink, plainPaths } from '../plain-paths.ts';

/** An operand count that a program would refuse, or that would make it read standard input. */
function atLeast(count: number, message: string): (use: Use) => readonly Finding[] {
  return ({ operands }) =>
    operands.length >= count ? [] : [{ effect: 'invalid', code: 'arguments', message, words: [] }];
}

const COPY_FLAGS =
  'i interactive n no-clobber u update v verbose T no-target-directory Z debug strip-trailing-slashes';

/** Programs that list, make, copy, move and delete files. */
export const FILES: readonly ProgramRow[] = [
  ...programs('ls dir vdir', 'low', 'local', {
    grammar: {
      flags:
        '1 a all A almost-all b escape B ignore-backups c C d directory D dired f F g G no-group group-directories-first h human-readable si H dereference-command-line dereference-command-line-symlink-to-dir i inode k kibibytes l L dereference m n numeric-uid-gid N literal o p q hide-control-chars show-control-chars Q quote-name r reverse R recursive s size S t u U v x X Z context zero author file-type full-time help version',
      values:
        'I ignore hide w width T tabsize block-size format indicator-style quoting-style sort time time-style',
      optionals: 'color hyperlink classify',
    },
    operands: 'reads',
  }),
  ...programs('tree eza exa lsd', 'low', 'local', {
    grammar: {
      flags:
        'a d l f x i q N Q p u g s h D F v t c U r J X C n A S T R long all tree git icons header recurse dirsfirst noreport',
      values: 'L P I H charset level ignore-glob sort filelimit timefmt filesfirst gitfile color',
      writes: 'o',
    },
    operands: 'reads',
  }),
  ...programs('cp', 'medium', 'local', {
    grammar: {
      flags: `a archive b d f force H l link L dereference P no-dereference p r R recursive s symbolic-link x one-file-system attributes-only parents remove-destination copy-contents help version ${COPY_FLAGS}`,
      values: 'S suffix no-preserve',
      optionals: 'backup preserve reflink sparse context',
      writes: 't target-directory',
    },
    operands: 'reads-then-writes',
    targetOptions: 't target-directory',
    strict: (use) => {
      const forced = use.options.filter(
        ({ name }) => name === 'f' || name === 'force' || name === 'remove-destination',
      );
      return forced.length > 0
        ? forced.map(({ word }) => ({
            effect: 'invalid' as const,
            code: 'unknown_option',
            message: 'may not overwrite by force here',
            words: [word.source],
          }))
        : atLeast(2, 'needs a source and a target')(use);
    },
  }),
  ...programs('mv', 'medium', 'local', {
    grammar: {
      flags: `b f force ${COPY_FLAGS}`,
      values: 'S suffix',
      optionals: 'backup',
      writes: 't target-directory',
    },
    operands: 'moves-then-writes',
    targetOptions: 't target-directory',
  }),
  ...programs('ln', 'medium', 'local', {
    grammar: {
      flags: `b d F f force L logical P physical r relative s symbolic ${COPY_FLAGS}`,
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
      return [...plainPaths(opened, 'reads'), ...plainPaths(targets, 'writes')];
    },
    operands: 'reads-then-writes',
    targetOptions: 't target-directory',
  }),
  ...programs('install', 'medium', 'local', {
    grammar: {
      flags: `b c C compare d directory D p preserve-timestamps s strip ${COPY_FLAGS}`,
      values: 'g group m mode o owner S suffix',
      optionals: 'backup',
      writes: 't target-directory',
      executes: 'strip-program',
    },
    operands: 'reads-then-writes',
    targetOptions: 't target-directory d directory',
  }),
  ...programs('mkdir', 'medium', 'local', {
    grammar: { flags: 'p parents v verbose Z', values: 'm mode', optionals: 'context' },
    operands: 'writes',
  }),
  ...programs('touch', 'medium', 'local', {
    grammar: { flags: 'a c no-create f h no-dereference m', values: 'd date t time', reads: 'r reference' },
    operands: 'writes',
  }),
  ...programs('mktemp', 'low', 'local', {
    grammar: { flags: 'd directory u dry-run q quiet t', values: 'suffix', optionals: 'tmpdir', writes: 'p' },
    operands: 'writes',
  }),
  ...programs('mkfifo mknod', 'medium', 'local', {
    grammar: { flags: 'Z', values: 'm mode' },
    operands: 'writes',
  }),
  ...programs('truncate fallocate', 'medium', 'local', {
    grammar: { open: true, values: 's size l length o offset', reads: 'r reference' },
    operands: 'writes',
  }),
  ...programs('rm', 'high', 'local', {
    grammar: {
      flags: 'f force i I r R recursive d dir v verbose one-file-system no-preserve-root help version',
      optionals: 'interactive preserve-root',
    },
    operands: 'removes',
  }),
  ...programs('unlink trash trash-put srm', 'high', 'local', { operands: 'removes' }),
  ...programs('rmdir', 'medium', 'local', {
    grammar: { flags: 'p parents v verbose ignore-fail-on-non-empty' },
    operands: 'removes',
  }),
  ...programs('chmod chgrp chattr setfacl setfattr', 'high', 'local', {
    grammar: { open: true, flags: 'R recursive v verbose f silent quiet c changes', reads: 'reference' },
    // The first operand is the mode.
    operands: 'script-then-reads',
    scriptOptions: 'reference',
  }),
  ...programs('tee', 'medium', 'local', {
    grammar: { flags: 'a append i ignore-interrupts p', optionals: 'output-error' },
    operands: 'writes',
    // tee would make a file that is called `-`.
    onlyReads: ({ operands }) =>
      operands.every(({ text, complete }) => complete && text !== '-' && isSink(text)),
  }),
  ...programs('split csplit', 'medium', 'local', {
    grammar: {
      flags: 'd x e elide-empty-files verbose u unbuffered k keep-files s quiet silent z',
      values:
        'a suffix-length additional-suffix b bytes C line-bytes l lines n number t separator f prefix digits',
      optionals: 'numeric-suffixes hex-suffixes',
      executes: 'filter',
    },
    operands: 'reads',
  }),
  ...programs('realpath readlink basename dirname', 'low', 'local', {
    grammar: {
      flags:
        'f canonicalize e canonicalize-existing m canonicalize-missing n no-newline q quiet s no-symlinks strip z zero a multiple v verbose silent L logical P physical no-symlinks',
      values: 'S suffix relative-to relative-base',
    },
    operands: 'none',
  }),
  ...programs(
    'cksum md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum sum shasum',
    'low',
    'local',
    {
      // -c is no option with a value: the list of sums is an operand.
      grammar: {
        open: true,
        flags: 'b binary c check t text z zero w warn tag quiet status strict ignore-missing',
        values: 'a algorithm l length',
      },
      operands: 'reads',
    },
  ),
  ...programs('stat du df wc', 'low', 'local', {
    // None of their options writes or runs anything.
    grammar: {
      open: true,
      values: 'c format printf t d max-depth B block-size threshold a algorithm total type x',
      reads: 'files0-from exclude-from X',
    },
    operands: 'reads',
  }),
  ...programs('file', 'low', 'local', {
    grammar: {
      open: true,
      values: 'e exclude F separator P parameter',
      reads: 'f files-from m magic-file',
      writing: 'C compile',
    },
    operands: 'reads',
  }),
  ...programs('which', 'low', 'local', {
    grammar: { flags: 'a s' },
    operands: 'none',
    strict: (use) => [
      ...atLeast(1, 'needs a name')(use),
      ...use.operands
        .filter(({ text }) => text.includes('/'))
        .map(({ word }) => ({
          effect: 'invalid' as const,
          code: 'arguments',
          message: 'takes names, not paths',
          words: [word.source],
        })),
    ],
  }),
  ...programs('whereis locate', 'low', 'local', { operands: 'none' }),
];

/** True if `cp` copies directories. */
export function copiesDirectories(use: Use): boolean {
  return hasOption(use, 'a archive r R recursive');
}
