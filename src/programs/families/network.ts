import {
  type Argument,
  type Call,
  type Loss,
  type ProgramRow,
  programs,
  type Runs,
  type Use,
} from '../behaviour.ts';
import { readOptions, writtenAt } from '../options.ts';
import { refused, runText } from '../runs.ts';

/** Settings that run nothing on this side. */
const HARMLESS =
  /^(?:BatchMode|ConnectTimeout|ConnectionAttempts|StrictHostKeyChecking|UserKnownHostsFile|GlobalKnownHostsFile|LogLevel|Port|User|IdentitiesOnly|IdentityFile|ServerAlive\w+|PasswordAuthentication|PreferredAuthentications|ForwardAgent|Compression|RequestTTY|HostName|AddressFamily)[ =]/i;

/** `ssh [options] host [text]`: the words are joined and read by the shell of the other side. */
function runsOfSsh(call: Call): Runs {
  const before = readOptions(call.args, call.grammar);
  if (!before.ok) return refused(`ssh: ${before.message}`, before.word);
  // ssh goes on with options behind the host.
  const behind = readOptions(before.rest.slice(1), call.grammar);
  if (!behind.ok) return refused(`ssh: ${behind.message}`, behind.word);
  for (const option of [...before.options, ...behind.options]) {
    const text = option.value?.text ?? '';
    if (option.name === 'o' && !HARMLESS.test(`${text} `)) {
      const word = option.value?.word;
      return refused(`ssh: the setting ${word?.source} may run a program.`, word);
    }
  }
  return runText(behind.rest);
}

/** What is at the destination and not at the source. */
function lossOfRsync({ command }: Use): Loss | undefined {
  const texts = command.words.map(({ value }) => value ?? '');
  const isTrial = texts.some((text) => text === '--dry-run' || /^-[a-zA-Z]*n/.test(text));
  return texts.some((text) => text.startsWith('--delete')) && !isTrial
    ? { what: 'always', message: 'would delete what only its destination has' }
    : undefined;
}

function valuesOf({ options }: Use, wanted: string): readonly Argument[] {
  return options.flatMap(({ name, value }) => (name === wanted && value !== undefined ? [value] : []));
}

/** Programs that use the network by design. */
export const NETWORK: readonly ProgramRow[] = [
  ...programs('curl', 'high', 'network', {
    grammar: {
      open: true,
      flags:
        's S f L k v i I g G j J R N O silent show-error fail location insecure verbose include head compressed',
      values:
        'X H d A e u b c m r x w request header user-agent user max-time connect-timeout retry proxy url',
      reads: 'T upload-file cacert cert key E',
      loads: 'K config',
      writes: 'o output D dump-header output-dir cookie-jar trace stderr',
    },
    operands: 'none',
    hosts: (use) => [...use.operands, ...valuesOf(use, 'url')],
  }),
  ...programs('wget wget2', 'high', 'network', {
    grammar: {
      open: true,
      flags: 'q c nv N S r',
      values: 'U t T header user-agent timeout tries',
      reads: 'i input-file post-file body-file',
      writes: 'O output-document P directory-prefix o output-file a append-output',
      executes: 'use-askpass e execute',
    },
    operands: 'none',
    hosts: ({ operands }) => operands,
  }),
  ...programs('ssh', 'high', 'network', {
    operands: 'none',
    needs: 'network',
    outward: 'works on another machine',
    runs: runsOfSsh,
    grammar: {
      source: 'OpenSSH 9.2p1',
      stopAtOperand: true,
      flags: '4 6 A a C f G g K k M N n q s T t V v X x Y y',
      values: 'B b c D E e F I i J L l m O o p P Q R S W w',
    },
  }),
  ...programs(
    'scp sftp lftp tftp sshfs mosh autossh ssh-keyscan ssh-copy-id rlogin rsh rexec youtube-dl yt-dlp',
    'high',
    'network',
    {
      operands: 'none',
      needs: 'network',
      outward: 'works on another machine',
    },
  ),
  ...programs(
    'nc ncat netcat nc.openbsd nc.traditional socat telnet ftp websocat httpie http https xh hurl grpcurl aria2c axel lynx w3m links elinks',
    'high',
    'network',
    {
      operands: 'none',
    },
  ),
  ...programs('rsync', 'high', 'network', {
    grammar: {
      open: true,
      values: 'f filter exclude include e rsh',
      executes: 'rsync-path',
      writes: 'log-file',
    },
    paths: ({ operands }) =>
      writtenAt(operands, operands.length - 1).filter(({ argument }) => !/^[^/]*:/.test(argument.text)),
    loses: lossOfRsync,
  }),
  ...programs(
    'dig nslookup host ping ping6 fping traceroute tracepath mtr whois nmap masscan arp arping resolvectl drill kdig finger ntpdate',
    'high',
    'network',
    {
      operands: 'none',
      needs: 'network',
    },
  ),
  ...programs(
    'ip ifconfig route tc bridge ethtool iw nmcli tcpdump tshark wireshark wg wg-quick openvpn tailscale cloudflared ngrok ssserver tor',
    'high',
    'network',
    {
      operands: 'none',
    },
  ),
  ...programs('ss netstat', 'low', 'local', { operands: 'none' }),
  ...programs('openssl', 'high', 'network'),
  ...programs('ssh-keygen ssh-add gpg gpg2 gpgconf age pass secret-tool vault op bw sops', 'high', 'unknown'),
  ...programs('mail mailx sendmail mutt swaks msmtp telegram-cli', 'high', 'network', {
    operands: 'none',
    needs: 'network',
    outward: 'sends messages',
  }),
  ...programs('ab wrk hey k6 siege vegeta newman', 'high', 'network'),
];
