import { prefixOf } from '../../model/word.ts';
import { hasOption, type OptionTable, optionValue, readAnywhere, readOptions } from './options.ts';
import { type Call, NOTHING, type Runner, type Runs, refused, runWords } from './runner.ts';

const SUDO: OptionTable = {
  flags: 'AbBeEHiKklnPSsVvN',
  values: 'CDghpRrtTUu',
  long: {
    askpass: 'flag',
    background: 'flag',
    bell: 'flag',
    'close-from': 'value',
    chdir: 'value',
    'preserve-env': 'optional',
    edit: 'flag',
    group: 'value',
    'set-home': 'flag',
    help: 'flag',
    host: 'value',
    login: 'flag',
    'remove-timestamp': 'flag',
    'reset-timestamp': 'flag',
    list: 'flag',
    'non-interactive': 'flag',
    'no-update': 'flag',
    'preserve-groups': 'flag',
    prompt: 'value',
    chroot: 'value',
    role: 'value',
    stdin: 'flag',
    shell: 'flag',
    type: 'value',
    'command-timeout': 'value',
    'other-user': 'value',
    user: 'value',
    version: 'flag',
    validate: 'flag',
  },
};

/** `sudo [options] [NAME=value] command`. */
export const sudo: Runner = (call) => {
  const read = readOptions(call.words.slice(1), SUDO);
  if (!read.ok) return refused(`sudo: ${read.message}`, read.word);
  const first = read.rest.findIndex((word) => !/^[A-Za-z_][A-Za-z0-9_]*=/.test(prefixOf(word)));
  const command = first === -1 ? [] : read.rest.slice(first);
  if (hasOption(read.options, 'e', 'edit')) return NOTHING;
  if (hasOption(read.options, 's', 'i', 'shell', 'login')) return shellOf(call, command);
  const directory = optionValue(read.options, 'D', 'chdir');
  return runWords(command, directory === undefined ? {} : { directory });
};

/** sudo escapes the words for its shell, so that they are words again. */
function shellOf(call: Call, command: Parameters<typeof runWords>[0]): Runs {
  if (command.length > 0) return runWords(command);
  return refused(
    `${call.name} would start a shell that reads its standard input: name the command.`,
    call.words[0],
  );
}

export const doas: Runner = (call) => {
  const read = readOptions(call.words.slice(1), { flags: 'Lns', values: 'aCu' });
  if (!read.ok) return refused(`doas: ${read.message}`, read.word);
  if (hasOption(read.options, 'L', 'C')) return NOTHING;
  return hasOption(read.options, 's') ? shellOf(call, []) : runWords(read.rest);
};

const SU: OptionTable = {
  flags: 'flmpPhV',
  values: 'cCsgGwTu',
  long: {
    command: 'value',
    'session-command': 'value',
    shell: 'value',
    login: 'flag',
    'preserve-environment': 'flag',
    fast: 'flag',
    pty: 'flag',
    group: 'value',
    'supp-group': 'value',
    'whitelist-environment': 'value',
    user: 'value',
    help: 'flag',
    version: 'flag',
  },
};

/** `su [options] [-] [user]` with `-c text`; runuser likewise, and `runuser -u user command`. */
export const su: Runner = (call) => {
  const before = readOptions(call.words.slice(1), SU);
  if (before.ok && call.name === 'runuser' && hasOption(before.options, 'u', 'user'))
    return runWords(before.rest);
  const read = readAnywhere(call.words.slice(1), SU);
  if (!read.ok) return refused(`${call.name}: ${read.message}`, read.word);
  if (hasOption(read.options, 'help', 'version', 'h', 'V')) return NOTHING;
  const other = optionValue(read.options, 's', 'shell');
  if (other !== undefined && !/^\/(?:usr\/)?bin\/(?:ba|da)?sh$/.test(other.value ?? '')) {
    return refused(`${call.name}: the shell ${other.source} is not known.`, other);
  }
  if (read.rest.filter((word) => word.value !== '-').length > 1) {
    return refused(`${call.name}: words behind the user go to the shell: use -c.`, call.words[0]);
  }
  const text = optionValue(read.options, 'c', 'command', 'session-command', 'C');
  if (text === undefined) return shellOf(call, []);
  return { runs: [{ kind: 'text', text: [text], dialect: 'posix' }] };
};
