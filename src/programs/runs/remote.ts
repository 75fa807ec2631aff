import { prefixOf } from '../../model/word.ts';
import { type OptionTable, readOptions } from './options.ts';
import { NOTHING, type Runner, refused, runWords } from './runner.ts';

const SSH: OptionTable = { flags: '46AaCfGgKkMNnqsTtVvXxYy', values: 'BbcDEeFIiJLlmOopPQRSWw' };
/** Settings that run nothing on this side. */
const HARMLESS =
  /^(?:BatchMode|ConnectTimeout|ConnectionAttempts|StrictHostKeyChecking|UserKnownHostsFile|GlobalKnownHostsFile|LogLevel|Port|User|IdentitiesOnly|IdentityFile|ServerAlive\w+|PasswordAuthentication|PreferredAuthentications|ForwardAgent|Compression|RequestTTY|HostName|AddressFamily)[ =]/i;

/** `ssh [options] host [text]`: the words are joined and read by the shell of the other side. */
export const ssh: Runner = (call) => {
  const before = readOptions(call.words.slice(1), SSH);
  if (!before.ok) return refused(`ssh: ${before.message}`, before.word);
  // ssh goes on with options behind the host.
  const behind = readOptions(before.rest.slice(1), SSH);
  if (!behind.ok) return refused(`ssh: ${behind.message}`, behind.word);
  for (const option of [...before.options, ...behind.options]) {
    if (
      option.name === 'o' &&
      !HARMLESS.test(option.value === undefined ? '' : `${prefixOf(option.value)} `)
    ) {
      return refused(`ssh: the setting ${option.value?.source} may run a program.`, option.value);
    }
  }
  return behind.rest.length === 0
    ? NOTHING
    : { runs: [{ kind: 'text', text: behind.rest, dialect: 'posix' }] };
};

const ENGINE: OptionTable = {
  flags: 'Dv',
  values: 'HclL',
  long: {
    host: 'value',
    context: 'value',
    config: 'value',
    debug: 'flag',
    'log-level': 'value',
    tls: 'flag',
    version: 'flag',
    help: 'flag',
  },
};
const EXEC: OptionTable = {
  flags: 'dit',
  values: 'euw',
  long: {
    detach: 'flag',
    interactive: 'flag',
    tty: 'flag',
    privileged: 'flag',
    env: 'value',
    'env-file': 'value',
    user: 'value',
    workdir: 'value',
    'detach-keys': 'value',
  },
};

/** `docker exec [options] container command`: runs inside of the container. */
export const container: Runner = (call) => {
  const before = readOptions(call.words.slice(1), ENGINE);
  if (!before.ok) return refused(`${call.name}: ${before.message}`, before.word);
  const verb = before.rest[0];
  const rest = verb?.value === 'container' ? before.rest.slice(1) : before.rest;
  if (rest[0] !== undefined && rest[0].value === undefined)
    return refused(`${call.name}: the verb must be written out.`, rest[0]);
  if (rest[0]?.value !== 'exec') return NOTHING;
  const read = readOptions(rest.slice(1), EXEC);
  if (!read.ok) return refused(`${call.name}: ${read.message}`, read.word);
  return runWords(read.rest.slice(1), { directory: 'unknown' });
};
