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
  ...programs('tar bsdtar gtar', 'low', 'local', () => ({
    // A file of names (`-T`) may contain `-C DIRECTORY` too.
    strict: takesNamesFrom('T files-from'),
    grammar: 'tar',
    paths: pathsOfTar,
    targetOptions: 'C directory one-top-level',
    inspect: inspectTar,
    loses: lossOfTar,
    unpacks: ({ command: { words }, options }) =>
      /^[a-z]*x[a-z]*$/i.test(words[1]?.value ?? '') ||
      options.some(({ name }) => /^(?:x|extract|get)$/.test(name)),
  })),
  ...programs('zip', 'medium', 'local', () => ({
    grammar: 'zip',
    paths: pathsOfZip,
    inspect: inspectZip,
    followsLinks: (use) => hasOption(use, 'r R recurse-paths') && !hasOption(use, 'y symlinks'),
    loses: (use) => (hasOption(use, 'm move') ? movedInto(use.operands[0]) : undefined),
  })),
  ...programs('unzip', 'medium', 'local', () => ({
    grammar: 'unzip',
    // Behind the archive stand names in it.
    paths: ({ operands }) => plainPaths(operands.slice(0, 1), 'reads'),
    targetOptions: 'd',
    onlyReads: ({ options }) => options.some(({ name }) => /^[ltvpcZz]$/.test(name)),
  })),
  ...programs('cpio', 'medium', 'local', () => ({
    grammar: 'cpio',
    paths: pathsOfCpio,
    targetOptions: 'D directory',
    inspect: ({ options }) =>
      options.flatMap(({ name, value, word }) =>
        /^(?:F|file|I|O)$/.test(name) && isRemote(value)
          ? [finding('network', 'remote_archive', 'opens an archive on another host', word.source)]
          : [],
      ),
  })),
  ...programs('7z 7za 7zr 7zz', 'medium', 'local', () => ({
    grammar: '7z',
    paths: pathsOf7z,
    loses: lossOf7z,
  })),
  ...programs('unrar rar pax ar', 'medium', 'local'),
  ...programs('gzip gunzip', 'medium', 'local', () => ({ ...COMPRESSES, grammar: 'gzip' })),
  ...programs('bzip2 bunzip2', 'medium', 'local', () => ({ ...COMPRESSES, grammar: 'bzip2' })),
  ...programs('xz unxz lzma', 'medium', 'local', () => ({ ...COMPRESSES, grammar: 'xz' })),
  ...programs('zstd unzstd', 'medium', 'local', () => ({ ...COMPRESSES, grammar: 'zstd' })),
  ...programs('pigz', 'medium', 'local', () => ({ ...COMPRESSES, grammar: 'pigz' })),
  ...programs('compress uncompress', 'medium', 'local', () => ({ grammar: 'compress', ...COMPRESSES })),
  ...programs('lz4', 'medium', 'local', () => ({ grammar: 'lz4', operands: 'writes' })),
  ...programs('brotli', 'medium', 'local', () => ({ grammar: 'brotli', operands: 'writes' })),
  ...programs('zcat bzcat xzcat zstdcat lzcat zless zmore zipinfo', 'low', 'local', () => ({
    operands: 'reads',
  })),
];
