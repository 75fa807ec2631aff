import { prefixOf } from '../../model/word.ts';
import { type Call, type Grammar, type ProgramRow, programs, type Runs } from '../behaviour.ts';
import { hasOption, optionValue, readOptions } from '../options.ts';
import { NOTHING, refused, runText, runWords } from '../runs.ts';

/** `sudo [options] [NAME=value] command`. */
function runsOfSudo(call: Call): Runs {
  const read = readOptions(call.args, call.grammar);
  if (!read.ok) return refused(`sudo: ${read.message}`, read.word);
  const first = read.rest.findIndex((word) => !/^[A-Za-z_][A-Za-z0-9_]*=/.test(prefixOf(word)));
  const command = first === -1 ? [] : read.rest.slice(first);
  if (hasOption(read, 'e edit')) return NOTHING;
  if (hasOption(read, 's i shell login')) return shellOf(call, command);
  return runWords(command, optionValue(read.options, 'D chdir'));
}

/** sudo escapes the words for its shell, so that they are words again. */
function shellOf(call: Call, command: Parameters<typeof runWords>[0]): Runs {
  if (command.length > 0) return runWords(command);
  return refused(
    `${call.name} would start a shell that reads its standard input: name the command.`,
    call.words[0],
  );
}

function runsOfDoas(call: Call): Runs {
  const read = readOptions(call.args, call.grammar);
  if (!read.ok) return refused(`doas: ${read.message}`, read.word);
  if (hasOption(read, 'L C')) return NOTHING;
  return hasOption(read, 's') ? shellOf(call, []) : runWords(read.rest);
}

/** `su [options] [-] [user]` with `-c text`; runuser likewise, and `runuser -u user command`. */
function runsOfSu(call: Call): Runs {
  const before = readOptions(call.args, call.grammar);
  if (before.ok && call.name === 'runuser' && hasOption(before, 'u user')) return runWords(before.rest);
  const read = readOptions(call.args, call.grammar, 'anywhere');
  if (!read.ok) return refused(`${call.name}: ${read.message}`, read.word);
  if (hasOption(read, 'help version h V')) return NOTHING;
  const other = optionValue(read.options, 's shell');
  if (other !== undefined && !/^\/(?:usr\/)?bin\/(?:ba|da)?sh$/.test(other.value ?? '')) {
    return refused(`${call.name}: the shell ${other.source} is not known.`, other);
  }
  if (read.rest.filter((word) => word.value !== '-').length > 1) {
    return refused(`${call.name}: words behind the user go to the shell: use -c.`, call.words[0]);
  }
  const text = optionValue(read.options, 'c command session-command C');
  if (text === undefined) return shellOf(call, []);
  return runText([text]);
}

const SU: Grammar = {
  source: 'util-linux 2.38.1',
  flags: 'f l m p P h V login preserve-environment fast pty help version',
  values: 'c C s g G w T u command session-command shell group supp-group whitelist-environment user',
};

/** Programs that run another one as another user. */
export const PRIVILEGE: readonly ProgramRow[] = [
  ...programs('sudo', 'high', 'unknown', {
    danger: 'privilege',
    operands: 'none',
    runs: runsOfSudo,
    grammar: {
      flags:
        'A b B e E H i K k l n P S s V v N askpass background bell edit set-home help login remove-timestamp reset-timestamp list non-interactive no-update preserve-groups stdin shell version validate',
      values:
        'C D g h p R r t T U u close-from chdir group host prompt chroot role type command-timeout other-user user',
      optionals: 'preserve-env',
    },
  }),
  ...programs('doas', 'high', 'unknown', {
    danger: 'privilege',
    operands: 'none',
    runs: runsOfDoas,
    grammar: { flags: 'L n s', values: 'a C u' },
  }),
  ...programs('su', 'high', 'unknown', {
    danger: 'privilege',
    operands: 'none',
    runs: runsOfSu,
    grammar: SU,
  }),
  ...programs('runuser', 'high', 'unknown', { operands: 'none', runs: runsOfSu, grammar: SU }),
  ...programs('pkexec', 'high', 'unknown', {
    danger: 'privilege',
    operands: 'none',
    launches: {},
    grammar: { flags: 'help version disable-internal-agent keep-cwd', values: 'user' },
  }),
  ...programs('gosu su-exec', 'high', 'unknown', {
    danger: 'privilege',
    operands: 'none',
    launches: { operands: 1 },
    grammar: {},
  }),
  ...programs('sudoedit run0 dzdo calife super', 'high', 'unknown', {
    danger: 'privilege',
    operands: 'none',
  }),
];
