import { looksSecret } from '../../../base/secret-name.ts';
import { type Argument, type Finding, finding, type ProgramRow, programs, type Use } from '../behaviour.ts';
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

/** Of two directories, diff reads what links in them lead to. */
function followsLinksOfDiff(use: Use, isDirectory: (argument: Argument) => boolean): boolean {
  return (
    !hasOption(use, 'no-dereference') && (hasOption(use, 'r recursive') || use.operands.some(isDirectory))
  );
}

/** Programs that print files, the environment or facts about the machine. */
export const READERS: readonly ProgramRow[] = [
  ...programs('cat', 'low', 'local', () => ({
    grammar: 'cat',
    operands: 'reads',
    prints: (words, input) => (words.length === 1 && words[0]?.value === 'cat' ? input : undefined),
    passesOn: 'u',
    wantsInput: ({ operands }) => (operands.length === 0 ? 'needs a file here' : undefined),
    application: {},
  })),
  ...programs('tac', 'low', 'local', () => ({
    grammar: 'tac',
    operands: 'reads',
    wantsInput: ({ operands }) => (operands.length === 0 ? 'needs a file here' : undefined),
    application: {},
  })),
  ...programs('bat batcat', 'low', 'local', () => ({ grammar: 'bat', operands: 'reads' })),
  ...programs('head', 'low', 'local', () => ({
    grammar: 'head',
    passesOn: 'n lines q quiet silent z zero-terminated',
    operands: 'reads',
    strict: strictHead,
    wantsInput: ({ command }) => (command.words.length === 1 ? 'needs a file here' : undefined),
    application: {},
  })),
  ...programs('tail', 'low', 'local', () => ({
    grammar: 'tail',
    passesOn: 'n lines q quiet silent z zero-terminated',
    operands: 'reads',
    application: { without: 'pid' },
  })),
  ...programs('more', 'low', 'local', () => ({ grammar: 'more', operands: 'reads', inspect: inspectPager })),
  ...programs('less most pg', 'low', 'local', () => ({
    grammar: 'less',
    operands: 'reads',
    inspect: inspectPager,
  })),
  ...programs('info', 'low', 'local', () => ({ grammar: 'info', operands: 'none' })),
  ...programs('man apropos whatis tldr', 'low', 'local', () => ({ grammar: 'man' })),
  ...programs('printenv', 'low', 'local', () => ({
    grammar: 'printenv',
    operands: 'none',
    inspect: inspectPrintenv,
    strict: strictPrintenv,
    application: { words: 'any', obeysEnvironment: () => true },
  })),
  ...programs('date', 'low', 'local', () => ({
    grammar: 'date',
    operands: 'none',
    inspect: ({ command, operands }) =>
      command.words
        .filter(({ value }) => value !== undefined && /^(?:-[a-zA-Z]*s|--s)/.test(value))
        // An operand that is not a format is the time to set.
        .concat(operands.filter(({ text }) => text !== '' && text[0] !== '+').map(({ word }) => word))
        .map(({ source }) => finding('writes', 'sets_clock', 'sets the clock', source)),
    application: { objection: readsZone },
  })),
  ...programs('hostname', 'low', 'local', () => ({
    operands: 'none',
    inspect: ({ operands }) =>
      operands.map(({ word }) =>
        finding('writes', 'sets_name', 'changes the name of the machine', word.source),
      ),
  })),
  ...programs(
    'cal uname arch nproc id whoami groups users who w uptime tty logname hostid getconf locale lscpu lsblk lsusb lspci free vmstat iostat ps top htop pgrep pidof pstree lsof lsns tput clear reset stty sleep seq yes expr factor numfmt',
    'low',
    'local',
    () => ({
      operands: 'none',
      application: { names: 'uname arch nproc id whoami sleep seq yes expr', words: 'any' },
    }),
  ),
  ...programs('getent', 'high', 'network', () => ({
    grammar: 'getent',
    operands: 'none',
    // The other data bases ask name servers.
    onlyReads: ({ operands }) => /^(?:passwd|group|shells|services|protocols)$/.test(operands[0]?.text ?? ''),
  })),
  ...programs('hexdump hd', 'low', 'local', () => ({ grammar: 'hexdump', operands: 'reads' })),
  ...programs('od', 'low', 'local', () => ({ grammar: 'od', operands: 'reads' })),
  ...programs('strings', 'low', 'local', () => ({ grammar: 'strings', operands: 'reads' })),
  ...programs('xxd', 'low', 'local', () => ({
    grammar: 'xxd',
    paths: ({ operands }) => writtenAt(operands, 1),
    operands: 'reads',
    // The second file is its output.
    inspect: ({ operands: [, target] }) =>
      target === undefined
        ? []
        : [finding('writes', 'writes_output', 'writes its second file', target.word.source)],
  })),
  ...programs('comm', 'low', 'local', () => ({ grammar: 'comm', operands: 'reads', application: {} })),
  ...programs('cmp', 'low', 'local', () => ({ grammar: 'cmp', operands: 'reads', application: {} })),
  ...programs('diff', 'low', 'local', () => ({
    grammar: 'diff',
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
  })),
  ...programs('diff3', 'low', 'local', () => ({ grammar: 'diff3', operands: 'reads' })),
  ...programs('sdiff', 'low', 'local', () => ({ grammar: 'sdiff', operands: 'reads' })),
  ...programs('colordiff', 'low', 'local', () => ({ grammar: 'colordiff', operands: 'reads' })),
];
