import { looksSecret } from '../../../base/secret-name.ts';
import {
  type Argument,
  type Finding,
  finding,
  type Grammar,
  type ProgramRow,
  programs,
  type Use,
} from '../behaviour.ts';
import { hasOption, readsZone, writtenAt } from '../options.ts';

/** A count is a positive number. */
function strictHead(use: Use): readonly Finding[] {
  const findings: Finding[] = [];
  for (const { name, value, word } of use.options) {
    if (name !== 'n' && name !== 'c' && name !== 'lines' && name !== 'bytes') continue;
    if (value?.complete !== true || !/^[1-9]\d{0,8}$/.test(value.text)) {
      findings.push(finding('invalid', 'count', 'takes a positive number of lines or bytes', word.source));
    }
  }
  return findings;
}

/** All of them, as what is secret is not in the environment of a command; or one, by its plain name. */
function strictPrintenv({ operands }: Use): readonly Finding[] {
  const [, ...others] = operands;
  if (others.length > 0)
    return [finding('invalid', 'arguments', 'takes one name', ...others.map(({ word }) => word.source))];
  return operands
    .filter(({ complete, text }) => !complete || !/^[A-Za-z_]\w*$/.test(text))
    .map(({ word }) => finding('invalid', 'arguments', 'takes the plain name of a variable', word.source));
}

function inspectPrintenv(use: Use): readonly Finding[] {
  return use.operands
    .filter(({ text }) => looksSecret(text))
    .map(({ word }) => finding('reads', 'secret', 'prints a variable that looks like a secret', word.source));
}

/** Commands that a pager is given to run at its start. */
function inspectPager(use: Use): readonly Finding[] {
  return use.operands
    .filter(({ text }) => /^\+\+?[^\d/G]|^\+.*!/.test(text))
    .map(({ word }) => finding('executes', 'pager_command', 'runs a command of the pager', word.source));
}

const DIFF: Grammar = {
  source: 'diffutils 3.8',
  flags:
    '0 1 2 3 4 5 6 7 8 9 a text b ignore-space-change B ignore-blank-lines c d minimal e ed E ignore-tab-expansion i ignore-case ignore-file-name-case no-ignore-file-name-case l paginate left-column n rcs N new-file no-dereference normal p show-c-function q brief r recursive s report-identical-files H speed-large-files strip-trailing-cr suppress-blank-empty suppress-common-lines t expand-tabs T initial-tab u P unidirectional-new-file v version w ignore-all-space y side-by-side Z ignore-trailing-space help',
  values:
    'C D ifdef F show-function-line horizon-lines I ignore-matching-lines L label line-format old-line-format new-line-format unchanged-line-format old-group-format new-group-format unchanged-group-format changed-group-format palette tabsize U W width x exclude',
  optionals: 'color context unified',
  reads: 'S starting-file X exclude-from from-file to-file',
  // Of its kin.
  writes: 'o output',
  executes: 'diff-program',
};

/** Of two directories, diff reads what links in them lead to. */
function followsLinksOfDiff(use: Use, isDirectory: (argument: Argument) => boolean): boolean {
  return (
    !hasOption(use, 'no-dereference') && (hasOption(use, 'r recursive') || use.operands.some(isDirectory))
  );
}

/** Programs that print files, the environment or facts about the machine. */
export const READERS: readonly ProgramRow[] = [
  ...programs('cat', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags:
        'b number-nonblank n number t T show-tabs A show-all e E show-ends s squeeze-blank u v show-nonprinting help version',
    },
    operands: 'reads',
    prints: (words, input) => (words.length === 1 && words[0]?.value === 'cat' ? input : undefined),
    passesOn: 'u',
    wantsInput: ({ operands }) => (operands.length === 0 ? 'needs a file here' : undefined),
    application: {},
  }),
  ...programs('tac', 'low', 'local', {
    grammar: { source: 'coreutils 9.1', flags: 'b before r regex help version', values: 's separator' },
    operands: 'reads',
    wantsInput: ({ operands }) => (operands.length === 0 ? 'needs a file here' : undefined),
    application: {},
  }),
  ...programs('bat batcat', 'low', 'local', {
    grammar: {
      source: 'bat 0.22.1',
      flags:
        'A show-all p plain n number S chop-long-lines f force-colorization d diff u unbuffered L list-languages list-themes diagnostic acknowledgements h help V version',
      values:
        'l language H highlight-line file-name tabs wrap terminal-width color italic-text decorations paging m map-syntax ignored-suffix theme style r line-range diff-context',
      optionals: 'nonprintable-notation',
      executes: 'pager',
    },
    operands: 'reads',
  }),
  ...programs('head', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      numeric: true,
      flags: 'q quiet silent v verbose z zero-terminated help version',
      values: 'n lines c bytes',
    },
    passesOn: 'n lines q quiet silent z zero-terminated',
    operands: 'reads',
    strict: strictHead,
    wantsInput: ({ command }) => (command.words.length === 1 ? 'needs a file here' : undefined),
    application: {},
  }),
  ...programs('tail', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      numeric: true,
      flags: 'F q quiet silent v verbose z zero-terminated retry f help version',
      values: 'n lines c bytes s sleep-interval pid max-unchanged-stats',
      optionals: 'follow',
    },
    passesOn: 'n lines q quiet silent z zero-terminated',
    operands: 'reads',
    application: { without: 'pid' },
  }),
  ...programs('more', 'low', 'local', {
    grammar: {
      source: 'util-linux 2.38.1',
      numeric: true,
      flags:
        'd silent f logical l no-pause c print-over p clean-print e exit-on-eof s squeeze u plain h help V version',
      values: 'n lines',
    },
    operands: 'reads',
    inspect: inspectPager,
  }),
  ...programs('less most pg', 'low', 'local', {
    grammar: {
      source: 'less 590',
      numeric: true,
      flags:
        'a A c C d e E f F g G i I J K L m M n N q Q r R s S u U w W X quit-at-eof quit-if-one-screen RAW-CONTROL-CHARS chop-long-lines no-init LINE-NUMBERS ignore-case IGNORE-CASE squeeze-blank-lines',
      values: 'b B h j p P x y z tabs pattern',
      writes: 'o O log-file LOG-FILE',
      loads: 'k lesskey-file lesskey-src',
      reads: 'T tag-file',
      executes: 't tag',
    },
    operands: 'reads',
    inspect: inspectPager,
  }),
  ...programs('info', 'low', 'local', {
    grammar: {
      source: 'info 6.8',
      flags: 'a all h help O show-options usage subnodes version w where location',
      values: 'k apropos index-search n node v variable',
      reads: 'd directory f file',
      writes: 'o output dribble',
    },
    operands: 'none',
  }),
  ...programs('man apropos whatis tldr', 'low', 'local', {
    grammar: {
      source: 'man-db 2.11.2',
      flags:
        'a all f k w where location K i I t c e h help d u l local-file ascii regex wildcard names-only no-subpages',
      values: 's S sections L locale m systems R recode E encoding',
      executes: 'P pager H html p preprocessor T troff-device X gxditview Z ditroff',
      loads: 'C config-file M manpath',
    },
  }),
  ...programs('printenv', 'low', 'local', {
    grammar: { source: 'coreutils 9.1', stopAtOperand: true, flags: '0 null help version' },
    operands: 'none',
    inspect: inspectPrintenv,
    strict: strictPrintenv,
    application: { words: 'any', obeysEnvironment: () => true },
  }),
  ...programs('date', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: 'u utc universal R rfc-email debug help version',
      values: 'd date rfc-3339',
      optionals: 'I iso-8601',
      reads: 'f file r reference',
    },
    operands: 'none',
    inspect: ({ command, operands }) =>
      command.words
        .filter(({ value }) => value !== undefined && /^(?:-[a-zA-Z]*s|--s)/.test(value))
        // An operand that is not a format is the time to set.
        .concat(operands.filter(({ text }) => text !== '' && text[0] !== '+').map(({ word }) => word))
        .map(({ source }) => finding('writes', 'sets_clock', 'sets the clock', source)),
    application: { objection: readsZone },
  }),
  ...programs('hostname', 'low', 'local', {
    operands: 'none',
    inspect: ({ operands }) =>
      operands.map(({ word }) =>
        finding('writes', 'sets_name', 'changes the name of the machine', word.source),
      ),
  }),
  ...programs(
    'cal uname arch nproc id whoami groups users who w uptime tty logname hostid getconf locale lscpu lsblk lsusb lspci free vmstat iostat ps top htop pgrep pidof pstree lsof lsns tput clear reset stty sleep seq yes expr factor numfmt',
    'low',
    'local',
    {
      operands: 'none',
      application: { names: 'uname arch nproc id whoami sleep seq yes expr', words: 'any' },
    },
  ),
  ...programs('getent', 'high', 'network', {
    grammar: { source: 'glibc 2.36', values: 's service', flags: 'i no-idn' },
    operands: 'none',
    // The other data bases ask name servers.
    onlyReads: ({ operands }) => /^(?:passwd|group|shells|services|protocols)$/.test(operands[0]?.text ?? ''),
  }),
  ...programs('hexdump hd', 'low', 'local', {
    grammar: {
      source: 'util-linux 2.38.1',
      open: true,
      flags:
        'b c C d o x v h V one-byte-octal one-byte-char canonical two-bytes-decimal two-bytes-octal two-bytes-hex no-squeezing help version',
      values: 'e format n length s skip',
      optionals: 'L color',
      reads: 'f format-file',
    },
    operands: 'reads',
  }),
  ...programs('od', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      open: true,
      flags: 'a b c d f i l o s x v output-duplicates traditional help version',
      values: 'A address-radix endian j skip-bytes N read-bytes S t format',
      optionals: 'w width strings',
    },
    operands: 'reads',
  }),
  ...programs('strings', 'low', 'local', {
    grammar: {
      source: 'binutils 2.40',
      open: true,
      numeric: true,
      flags: 'a all d data f print-file-name o w include-all-whitespace v V h version help',
      values: 'n bytes t radix T target e encoding U unicode s output-separator',
    },
    operands: 'reads',
  }),
  ...programs('xxd', 'low', 'local', {
    grammar: {
      source: 'xxd 2022-01-14',
      open: true,
      // `-ps` is one option, and not `-p -s`.
      style: 'single-dash',
      flags:
        'a autoskip b bits C capitalize d E EBCDIC e h help i include p ps plain postscript r revert u v version',
      values: 'c cols g groupsize l len n name o s seek',
    },
    paths: ({ operands }) => writtenAt(operands, 1),
    operands: 'reads',
    // The second file is its output.
    inspect: ({ operands: [, target] }) =>
      target === undefined
        ? []
        : [finding('writes', 'writes_output', 'writes its second file', target.word.source)],
  }),
  ...programs('comm', 'low', 'local', {
    grammar: {
      source: 'coreutils 9.1',
      flags: '1 2 3 z zero-terminated total check-order nocheck-order help version',
      values: 'output-delimiter',
    },
    operands: 'reads',
    application: {},
  }),
  ...programs('cmp', 'low', 'local', {
    grammar: {
      source: 'diffutils 3.8',
      flags: 'b print-bytes l verbose s quiet silent v help version',
      values: 'i ignore-initial n bytes',
    },
    operands: 'reads',
    application: {},
  }),
  ...programs('diff', 'low', 'local', {
    grammar: DIFF,
    operands: 'reads',
    followsLinks: followsLinksOfDiff,
    application: {
      without:
        'ignore-file-name-case no-ignore-file-name-case l paginate H speed-large-files suppress-blank-empty P unidirectional-new-file D ifdef horizon-lines line-format old-line-format new-line-format unchanged-line-format old-group-format new-group-format unchanged-group-format changed-group-format palette S starting-file X exclude-from from-file to-file o output',
      objection: (use, isDirectory) =>
        followsLinksOfDiff(use, isDirectory)
          ? 'follows symbolic links in directories; give --no-dereference'
          : undefined,
    },
  }),
  ...programs('diff3', 'low', 'local', {
    grammar: {
      source: 'diffutils 3.8',
      open: true,
      flags:
        'A show-all e ed E show-overlap 3 easy-only x overlap-only X i m merge a text strip-trailing-cr T initial-tab v version help',
      values: 'L label',
      executes: 'diff-program',
    },
    operands: 'reads',
  }),
  ...programs('sdiff', 'low', 'local', {
    grammar: {
      source: 'diffutils 3.8',
      open: true,
      flags:
        'i ignore-case E ignore-tab-expansion Z ignore-trailing-space b ignore-space-change W ignore-all-space B ignore-blank-lines strip-trailing-cr a text l left-column s suppress-common-lines t expand-tabs d minimal H speed-large-files v version help',
      values: 'I ignore-matching-lines w width tabsize',
      writes: 'o output',
      executes: 'diff-program',
    },
    operands: 'reads',
  }),
  ...programs('colordiff', 'low', 'local', {
    grammar: {
      ...DIFF,
      source: 'colordiff 1.0.20 and diffutils 3.8',
      open: true,
      values: `${DIFF.values} difftype`,
      executes: `${DIFF.executes} pager`,
    },
    operands: 'reads',
  }),
];
