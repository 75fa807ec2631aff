import {
  type Argument,
  type Behaviour,
  type Finding,
  finding,
  type Loss,
  type PathUse,
  type ProgramRow,
  programs,
  type Use,
} from '../behaviour.ts';
import {
  directoryPaths,
  hasOption,
  leadsAway,
  MOVES_AWAY,
  plainPaths,
  replacedPaths,
  takesNamesFrom,
} from '../options.ts';

/** `tar xzf` without a dash: the first word bundles options whose values follow in order. */
function inspectTar(use: Use): readonly Finding[] {
  const first = use.command.words[1]?.value ?? '';
  const old = /^[A-Za-z]+$/.test(first) ? first : '';
  const findings: Finding[] = [];
  if (old.includes('I') || old.includes('F')) {
    findings.push(finding('executes', 'executes_by_option', 'can run a program through I or F', first));
  }
  const creates =
    /[crux]/.test(old) ||
    use.options.some(({ name }) => /^(?:[crux]|create|extract|get|append|update|delete)$/.test(name));
  if (creates) findings.push(finding('writes', 'writes_archive', 'writes an archive or unpacks one', first));
  for (const { name, value, word } of use.options) {
    if (name === 'checkpoint-action' && !/^(?:echo|dot|ttyout|sleep|bell|totals)\b/.test(value?.text ?? '')) {
      findings.push(
        finding('executes', 'executes_by_option', 'can run a program at a checkpoint', word.source),
      );
    }
    if ((name === 'f' || name === 'file') && /^[\w.@-]+:/.test(value?.text ?? '') && !hasForceLocal(use)) {
      findings.push(finding('network', 'remote_archive', 'opens an archive on another host', word.source));
    }
  }
  const archive = /^[A-Za-z]*f[A-Za-z]*$/.test(old) ? use.operands[1] : undefined;
  if (archive !== undefined && /^[\w.@-]+:/.test(archive.text) && !hasForceLocal(use)) {
    findings.push(
      finding('network', 'remote_archive', 'opens an archive on another host', archive.word.source),
    );
  }
  return findings;
}

/** The archive is written or read, members are read when it is made; what is unpacked goes to the directory. */
function pathsOfTar(use: Use): readonly PathUse[] {
  const first = use.command.words[1]?.value ?? '';
  const old = /^[A-Za-z]+$/.test(first) ? first : '';
  const makes =
    /[cru]/.test(old) || use.options.some(({ name }) => /^(?:[cru]|create|append|update|delete)$/.test(name));
  const reads =
    /[xt]/.test(old) ||
    use.options.some(({ name }) => /^(?:[xtd]|extract|get|list|diff|compare)$/.test(name));
  const archives = use.options.flatMap(({ name, value }) => (name === 'f' || name === 'file' ? [value] : []));
  const operands = old === '' ? [...use.operands] : use.operands.slice(1);
  if (old.includes('f')) archives.push(operands.shift());
  return [
    ...plainPaths(
      archives.filter((argument) => argument?.text !== '-'),
      makes ? 'writes' : 'reads',
    ),
    // Members of an archive that is read are names in it.
    ...(reads ? [] : plainPaths(operands, 'reads')),
  ];
}

/** Files that are only in the archive afterwards, which does not stay in the workspace. */
function movedInto(archive: Argument | undefined): Loss | undefined {
  return leadsAway(archive) ? { what: 'always', message: MOVES_AWAY } : undefined;
}

function lossOfTar(use: Use): Loss | undefined {
  if (!hasOption(use, 'remove-files')) return undefined;
  const archive = pathsOfTar(use).find(({ effect }) => effect === 'writes')?.argument;
  // Without a file it goes to where its output goes.
  return archive === undefined ? { what: 'always', message: MOVES_AWAY } : movedInto(archive);
}

function lossOf7z({ command, operands }: Use): Loss | undefined {
  return command.words.some(({ value }) => value === '-sdel') ? movedInto(operands[1]) : undefined;
}

function hasForceLocal(use: Use): boolean {
  return use.options.some(({ name }) => name === 'force-local');
}

const isRemote = (archive: Argument | undefined) => /^[\w.@-]+:/.test(archive?.text ?? '');

/** Archives, and where copies go; the other operands of cpio are patterns. */
function pathsOfCpio(use: Use): readonly PathUse[] {
  const archives = (names: RegExp) =>
    use.options.flatMap(({ name, value }) => (names.test(name) && !isRemote(value) ? [value] : []));
  return [
    ...plainPaths(archives(/^I$/), 'reads'),
    ...plainPaths(archives(/^O$/), 'writes'),
    ...plainPaths(archives(/^(?:F|file)$/), hasOption(use, 'o create A append') ? 'writes' : 'reads'),
    ...(hasOption(use, 'p pass-through') ? directoryPaths(use.operands) : []),
  ];
}

/** The archive, what goes into it, and the file behind `-lf`. */
function pathsOfZip({ command, operands }: Use): readonly PathUse[] {
  const log = command.words.findIndex(({ value }) => /^-[a-zA-Z0-9]*lf$/.test(value ?? '')) + 1;
  const logs = operands.filter(({ word }) => log > 0 && word === command.words[log]);
  const [archive, ...files] = operands.filter((operand) => !logs.includes(operand));
  return [...plainPaths(logs, 'writes'), ...replacedPaths([archive]), ...plainPaths(files, 'reads')];
}

/** `7z a archive files`, `7z x archive names`. */
function pathsOf7z({ operands: [verb, archive, ...files] }: Use): readonly PathUse[] {
  if (!/^(?:a|u|d|rn)$/.test(verb?.text ?? '')) return plainPaths([archive], 'reads');
  return [...replacedPaths([archive]), ...plainPaths(verb?.text === 'd' ? [] : files, 'reads')];
}

/** zip runs what `-TT` names, and unpacks or packs files. */
function inspectZip({ command }: Use): readonly Finding[] {
  return command.words
    .filter(({ value }) => value !== undefined && /^(?:-\w*TT|--unzip-command)/.test(value))
    .map(({ source }) => finding('executes', 'executes_by_option', 'can run a program through -TT', source));
}

/** True if a compressor prints what it is given, or looks at it, and leaves the file. */
function toStdout(use: Use): boolean {
  return hasOption(use, 'c stdout to-stdout t test l list');
}

/** What all that put a file in the place of another do. */
const COMPRESSES: Pick<Behaviour, 'paths' | 'onlyReads'> = {
  // The file that it makes has another name.
  paths: (use) => (toStdout(use) ? plainPaths(use.operands, 'reads') : replacedPaths(use.operands)),
  onlyReads: toStdout,
};

/** Programs that pack and unpack. */
export const ARCHIVES: readonly ProgramRow[] = [
  ...programs('tar bsdtar gtar', 'low', 'local', {
    // Such a file may hold -C, too.
    strict: takesNamesFrom('T files-from'),
    grammar: {
      source: 'tar 1.34',
      flags:
        't list v verbose z gzip gunzip ungzip j bzip2 J xz a auto-compress no-auto-compress zstd lzma lzip lzop Z compress p preserve-permissions same-permissions same-owner no-same-owner no-same-permissions k keep-old-files O to-stdout h dereference S sparse w interactive P absolute-names W verify m touch wildcards no-wildcards anchored no-anchored ignore-case null numeric-owner overwrite no-overwrite-dir force-local strip l check-links one-file-system exclude-vcs exclude-vcs-ignores exclude-caches exclude-backups no-recursion recursion skip-old-files keep-newer-files keep-directory-symlink unlink-first U o i ignore-zeros B R G seek n A catenate concatenate d diff compare version help show-transformed-names no-xattrs xattrs acls selinux c create x extract get r append u update',
      values:
        'f file exclude strip-components transform xform owner group mode mtime format H b blocking-factor record-size level N newer after-date newer-mtime label V hole-detection sort warning quoting-style suffix pax-option checkpoint-action',
      optionals: 'checkpoint backup occurrence totals',
      reads: 'T files-from X exclude-from g listed-incremental K starting-file',
      writes: 'C directory index-file one-top-level?',
      removing: 'delete remove-files recursive-unlink',
      executes:
        'I use-compress-program F info-script new-volume-script to-command rsh-command rmt-command volno-file',
    },
    paths: pathsOfTar,
    targetOptions: 'C directory one-top-level',
    inspect: inspectTar,
    loses: lossOfTar,
    unpacks: ({ command: { words }, options }) =>
      /^[a-z]*x[a-z]*$/i.test(words[1]?.value ?? '') ||
      options.some(({ name }) => /^(?:x|extract|get)$/.test(name)),
  }),
  ...programs('zip', 'medium', 'local', {
    grammar: {
      // Options of two letters are read as two of one, but for those that name a file or a program.
      source: 'zip 3.0',
      open: true,
      flags:
        '1 2 3 4 5 6 7 8 9 0 @ A c C d D e E f F g h i I j J k l L m N o p q r R S T u U v V w y X z adjust-sfx archive-clear archive-set archive-comment ascii binary copy-entries delete difference-archive display-bytes display-counts display-dots display-globaldots display-usize display-volume encrypt entry-comments fifo filesync fix fixfix freshen from-crlf grow help ignore-case junk-paths junk-sfx latest-time license log-append log-info longnames more-help move must-match names-stdin no-dir-entries no-extra no-image no-wild notes paths preserve-case quiet recurse-paths recurse-patterns regex show-command show-files show-just-unicode show-options show-unicode split-bell split-pause split-verbose symlinks system-hidden test to-crlf unicode update verbose volume-label wild-stop-dirs',
      values:
        'n P s t x Z suffixes password split-size from-date before-date exclude include compression-method dot-size',
      writes: 'b O temp-path output-file logfile-path',
      executes: 'unzip-command',
    },
    paths: pathsOfZip,
    inspect: inspectZip,
    followsLinks: (use) => hasOption(use, 'r R recurse-paths') && !hasOption(use, 'y symlinks'),
    loses: (use) => (hasOption(use, 'm move') ? movedInto(use.operands[0]) : undefined),
  }),
  ...programs('unzip', 'medium', 'local', {
    grammar: {
      source: 'unzip 6.0',
      open: true,
      flags: '2 a A b B c C D E f F h i j J K l L M n N o p q s S t T u U v V W X Y z Z',
      // The last two of Debian: sets of characters.
      values: 'P x O I',
      writes: 'd',
    },
    // Behind the archive stand names in it.
    paths: ({ operands }) => plainPaths(operands.slice(0, 1), 'reads'),
    targetOptions: 'd',
    onlyReads: ({ options }) => options.some(({ name }) => /^[ltvpcZz]$/.test(name)),
  }),
  ...programs('cpio', 'medium', 'local', {
    grammar: {
      source: 'cpio 2.13',
      open: true,
      flags:
        '? 0 a A b B c d f i k l L m n o p r s S t u v V absolute-filenames append create dereference device-independent dot extract force-local help ignore-devno link list make-directories no-absolute-filenames no-preserve-owner nonmatching null numeric-uid-gid only-verify-crc pass-through preserve-modification-time quiet rename renumber-inodes reproducible reset-access-time sparse swap swap-bytes swap-halfwords to-stdout unconditional usage verbose version',
      values: 'F file I O C io-size H format M message R owner W warning block-size',
      writes: 'D directory',
      reads: 'E pattern-file',
      executes: 'rsh-command to-command',
    },
    paths: pathsOfCpio,
    targetOptions: 'D directory',
    inspect: ({ options }) =>
      options.flatMap(({ name, value, word }) =>
        /^(?:F|file|I|O)$/.test(name) && isRemote(value)
          ? [finding('network', 'remote_archive', 'opens an archive on another host', word.source)]
          : [],
      ),
  }),
  ...programs('7z 7za 7zr 7zz', 'medium', 'local', {
    grammar: {
      source: '7-Zip 26.02',
      open: true,
      optionals: 'a b i m p r s t u v x y',
      producesAttached: 'o w',
    },
    paths: pathsOf7z,
    loses: lossOf7z,
  }),
  ...programs('unrar rar pax ar', 'medium', 'local'),
  ...programs('gzip gunzip', 'medium', 'local', {
    ...COMPRESSES,
    grammar: {
      source: 'gzip 1.12',
      open: true,
      exact: true,
      flags:
        '0 1 2 3 4 5 6 7 8 9 a ascii c stdout to-stdout d decompress uncompress f force h help k keep l list L license n no-name N name q quiet r recursive rsyncable synchronous t test v verbose V version fast best',
      values: 'S suffix',
    },
  }),
  ...programs('bzip2 bunzip2', 'medium', 'local', {
    ...COMPRESSES,
    grammar: {
      source: 'bzip2 1.0.8',
      open: true,
      exact: true,
      flags:
        '0 1 2 3 4 5 6 7 8 9 h help d decompress z compress k keep f force t test c stdout q quiet v verbose L license V version s small fast best repetitive-fast repetitive-best',
    },
  }),
  ...programs('xz unxz lzma', 'medium', 'local', {
    ...COMPRESSES,
    grammar: {
      source: 'xz 5.4.1',
      open: true,
      exact: true,
      flags:
        '0 1 2 3 4 5 6 7 8 9 z compress d decompress uncompress t test l list k keep f force c stdout to-stdout single-stream no-sparse ignore-check e extreme no-adjust q quiet v verbose Q no-warn robot info-memory h help H long-help V version fast best',
      values:
        'S suffix F format C check T threads block-size block-list flush-timeout memlimit-compress memlimit-decompress memlimit-mt-decompress M memlimit memory',
      optionals: 'lzma1 lzma2 x86 arm armthumb arm64 powerpc ia64 sparc delta',
      reads: 'files? files0?',
    },
  }),
  ...programs('zstd unzstd', 'medium', 'local', {
    ...COMPRESSES,
    grammar: {
      source: 'zstd 1.5.4',
      open: true,
      exact: true,
      flags:
        '0 1 2 3 4 5 6 7 8 9 k keep d decompress uncompress z compress f force h H help V version c stdout v verbose q quiet r t test l list S n adapt ultra rsyncable single-thread exclude-compressed no-dictID train C best no-name content-size no-progress show-default-cparams',
      optionals:
        'fast long zstd T B M b e i auto-threads train-cover train-fastcover train-legacy priority format',
      values: 'block-size threads maxdict dictID stream-size size-hint target-compressed-block-size memory',
      reads: 'D filelist patch-from',
      writes: 'o output-dir-flat output-dir-mirror trace',
      removing: 'rm',
    },
  }),
  ...programs('pigz', 'medium', 'local', {
    ...COMPRESSES,
    grammar: {
      source: 'pigz 2.6',
      open: true,
      exact: true,
      flags:
        '0 1 2 3 4 5 6 7 8 9 fast best c stdout d decompress f force F first h help H huffman i independent k keep K zip l list L license m no-time M time n no-name N name O oneblock q quiet r recursive R rsyncable t test U rle v verbose V version Y synchronous z zlib',
      values: 'A alias b blocksize C comment I iterations J maxsplits p processes S suffix',
    },
  }),
  ...programs('compress uncompress', 'medium', 'local', {
    grammar: { source: 'ncompress 4.2.4.6', open: true, flags: 'f v c V r d', values: 'b' },
    ...COMPRESSES,
  }),
  ...programs('lz4', 'medium', 'local', {
    grammar: {
      source: 'lz4 1.9.4',
      open: true,
      exact: true,
      flags:
        '0 1 2 3 4 5 6 7 8 9 d z f k h H V v q c t m r l no-frame-crc frame-crc content-size list sparse no-sparse favor-decSpeed best',
      // Numbers and letters that are attached.
      optionals: 'B b e i fast',
      reads: 'D',
      removing: 'rm',
    },
    operands: 'writes',
  }),
  ...programs('brotli', 'medium', 'local', {
    grammar: {
      source: 'brotli 1.0.9',
      open: true,
      exact: true,
      flags:
        '0 1 2 3 4 5 6 7 8 9 c stdout d decompress f force h help k keep n no-copy-stat t test v verbose V version Z best',
      values: 'q quality w lgwin large_window S suffix',
      writes: 'o output',
      removing: 'j rm',
    },
    operands: 'writes',
  }),
  ...programs('zcat bzcat xzcat zstdcat lzcat zless zmore zipinfo', 'low', 'local', { operands: 'reads' }),
];
