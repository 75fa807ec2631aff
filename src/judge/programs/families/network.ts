import {
  type Argument,
  type Call,
  type Loss,
  type PathUse,
  type ProgramRow,
  programs,
  type Runs,
  type Use,
  withVersion,
} from '../behaviour.ts';
import {
  argumentOf,
  hasOption,
  leadsAway,
  MOVES_AWAY,
  pathInside,
  readOptions,
  refused,
  runText,
  writtenAt,
} from '../options.ts';
import { isMadeAnew } from '../regenerable.ts';
import { curlStays, netcatStays, wgetStays } from '../stays-local.ts';

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

/** Directories that are found from the destination. */
const IN_DESTINATION = /^(?:T|(?:temp|backup|partial)-dir|(?:compare|copy|link)-dest)$/;

function pathsOfRsync({ operands, options }: Use): readonly PathUse[] {
  const isRemote = ({ text }: Argument) => /^[^/]*:/.test(text);
  const to = operands.at(-1);
  const inDestination = options.flatMap(({ name, value }): readonly PathUse[] => {
    if (value === undefined || !IN_DESTINATION.test(name) || (to !== undefined && isRemote(to))) return [];
    const isFound = to?.complete === true && value.complete && !value.text.startsWith('/');
    const argument = isFound ? pathInside(value, `${to.text}/${value.text}`) : value;
    return [{ argument, effect: name.endsWith('-dest') ? 'reads' : 'writes' }];
  });
  const [source, ...others] = operands.slice(0, -1);
  const target: Omit<PathUse, 'argument' | 'effect'> = {
    ...(options.some(({ name }) => name === 'inplace') ? {} : { replaced: true }),
    ...(source === undefined || others.length > 0 ? {} : { receives: source }),
  };
  const own = writtenAt(operands, operands.length - 1)
    .filter(({ argument }) => !isRemote(argument))
    .map((one) => (one.effect === 'writes' ? { ...one, ...target } : one));
  return [...inDestination, ...own];
}

/** What is at the destination and not at the source; what it moves out of the workspace. */
function lossOfRsync(use: Use): Loss | undefined {
  if (hasOption(use, 'n dry-run')) return undefined;
  const to = use.operands.at(-1);
  if (use.operands.length > 1 && to !== undefined && isMadeAnew(to)) return undefined;
  if (use.command.words.some(({ value }) => value?.startsWith('--del') === true))
    return { what: 'always', message: 'would delete what only its destination has' };
  const isGone = hasOption(use, 'remove-source-files remove-sent-files') && leadsAway(to);
  return isGone ? { what: 'always', message: MOVES_AWAY } : undefined;
}

/** The values of options of these names, separated by blanks. */
function valuesOf({ options }: Use, names: string): readonly Argument[] {
  const wanted = names.split(' ');
  return options.flatMap(({ name, value }) => (wanted.includes(name) && value !== undefined ? [value] : []));
}

/** `nc [options] host port`; with one operand, or listening, it names nobody. */
function hostOfNetcat(use: Use): readonly Argument[] {
  const [host, port] = use.operands;
  const isCall = host !== undefined && /^\d+(?:-\d+)?$/.test(port?.text ?? '') && !hasOption(use, 'l listen');
  return isCall && use.operands.length === 2 ? [host] : [];
}

/** `TCP:host:port` of socat, by any of its names. */
function hostsOfSocat({ operands }: Use): readonly Argument[] {
  return operands.flatMap(({ word, text }) => {
    const kind = /^(?:(?:tcp|udp|sctp)[46]?(?:-connect|-sendto)?|openssl(?:-connect)?|ssl):/i.exec(text);
    return kind === null ? [] : [argumentOf(word, kind[0].length)];
  });
}

/** `openssl s_client -connect host:port`. */
function hostsOfOpenssl({ command: { words } }: Use): readonly Argument[] {
  return words.flatMap((word, index) =>
    /^--?(?:connect|proxy)$/.test(words[index - 1]?.value ?? '') ? [argumentOf(word)] : [],
  );
}

const SENDS = 'sends data to a server';
const METHOD_READS = /^(?:GET|HEAD|OPTIONS)$/i;

/** Anything but to get something: a method, a body, a file. */
function outwardOfCurl(use: Use): string | undefined {
  const method = valuesOf(use, 'X request').at(-1);
  const hasBody =
    hasOption(use, 'd data data-ascii data-binary data-raw data-urlencode json') && !hasOption(use, 'G get');
  const isSent =
    method === undefined
      ? hasBody || hasOption(use, 'F form form-string T upload-file Q quote mail-rcpt')
      : !METHOD_READS.test(method.text) || hasBody;
  return isSent ? SENDS : undefined;
}

/** True for POST or no method: an unknown one may be DELETE, and PUT replaces what is there. */
const posts = (method: Argument | undefined) =>
  method === undefined || (method.complete && /^POST$/i.test(method.text));
const curlPosts = (use: Use): boolean =>
  posts(valuesOf(use, 'X request').at(-1)) && !hasOption(use, 'K config T upload-file Q quote mail-rcpt');
const wgetPosts = (use: Use): boolean =>
  posts(valuesOf(use, 'method').at(-1)) && !hasOption(use, 'config e execute');

function outwardOfWget(use: Use): string | undefined {
  const method = valuesOf(use, 'method').at(-1);
  const isSent =
    hasOption(use, 'post-data post-file body-data body-file') ||
    (method !== undefined && !METHOD_READS.test(method.text));
  return isSent ? SENDS : undefined;
}

/** `http [METHOD] URL [ITEM …]`: a word of letters before a URL is the method, in any case. */
function requestOfHttpie({ operands }: Use): { readonly method?: Argument; readonly url?: Argument } {
  const [first, second] = operands;
  const isMethod = second !== undefined && (first?.complete !== true || /^[a-z]+$/i.test(first.text));
  if (!isMethod) return first === undefined ? {} : { url: first };
  return first === undefined ? {} : { method: first, url: second };
}

/** `http POST URL`, `http URL name=value`. */
function outwardOfHttpie(use: Use): string | undefined {
  const { method } = requestOfHttpie(use);
  const hasBody = hasOption(use, 'raw') || use.operands.some(({ text }) => /^[\w.[\]-]+(?::?=|@)/.test(text));
  const isSent = method === undefined ? hasBody : !METHOD_READS.test(method.text) || hasBody;
  return isSent ? SENDS : undefined;
}

/** Only a POST. False if PUT, PATCH or DELETE stands anywhere in the command: after an unknown option it may be the method. */
const httpiePosts = (use: Use): boolean =>
  posts(requestOfHttpie(use).method) &&
  !use.command.words.some(({ value }) => /^(?:PUT|PATCH|DELETE)$/i.test(value ?? ''));

/** Clients that take a URL among other words. */
function urlsAmong({ operands }: Use): readonly Argument[] {
  return operands.filter(({ text }) => /^[a-z]+:\/\//i.test(text));
}

/** Programs that use the network by design. */
export const NETWORK: readonly ProgramRow[] = [
  ...programs('curl', 'high', 'network', () => ({
    grammar: 'curl',
    operands: 'none',
    staysLocal: curlStays,
    hosts: (use) => [
      ...use.operands,
      ...valuesOf(use, 'url x proxy preproxy proxy1.0 socks4 socks4a socks5 socks5-hostname'),
    ],
    connects: { port: 'web' },
    outward: outwardOfCurl,
    onlySends: curlPosts,
  })),
  ...programs('wget wget2', 'high', 'network', () => ({
    grammar: 'wget',
    operands: 'none',
    staysLocal: wgetStays,
    hosts: ({ operands }) => operands,
    connects: { port: 'web' },
    outward: outwardOfWget,
    onlySends: wgetPosts,
  })),
  ...programs('ssh', 'high', 'network', () => ({
    versionOption: '-V',
    operands: 'none',
    needs: 'network',
    connects: { port: 22, ssh: true },
    outward: 'works on another machine',
    runs: runsOfSsh,
    grammar: 'ssh',
  })),
  ...programs('scp sftp sshfs autossh ssh-copy-id', 'high', 'network', () => ({
    operands: 'none',
    needs: 'network',
    connects: { port: 22, ssh: true },
    outward: 'works on another machine',
  })),
  ...programs('lftp tftp mosh ssh-keyscan rlogin rsh rexec youtube-dl yt-dlp', 'high', 'network', () => ({
    operands: 'none',
    needs: 'network',
    outward: 'works on another machine',
  })),
  ...programs(
    'nc netcat nc.openbsd nc.traditional',
    'high',
    'network',
    () => ({
      grammar: 'nc',
      operands: 'none',
      staysLocal: netcatStays,
      hosts: hostOfNetcat,
    }),
    withVersion('nc'),
  ),
  ...programs('ncat', 'high', 'network', () => ({
    grammar: 'ncat',
    operands: 'none',
    staysLocal: netcatStays,
    hosts: hostOfNetcat,
  })),
  ...programs('telnet', 'high', 'network', () => ({
    grammar: 'telnet',
    operands: 'none',
    hosts: ({ operands }) => operands.slice(0, 1),
    connects: { port: 23 },
  })),
  ...programs('ftp', 'high', 'network', () => ({
    grammar: 'ftp',
    operands: 'none',
    hosts: ({ operands }) => operands.slice(0, 1),
    connects: { port: 21 },
  })),
  ...programs('socat', 'high', 'network', () => ({
    grammar: 'socat',
    operands: 'none',
    // `-lf` alone of those that begin with `-l` has a value.
    morePaths: ({ command: { words } }) =>
      words.flatMap((word) =>
        word.value?.startsWith('-lf') === true
          ? [{ argument: argumentOf(word, 3), effect: 'writes' as const }]
          : [],
      ),
    hosts: hostsOfSocat,
  })),
  ...programs('http https xh xhs', 'high', 'network', () => ({
    grammar: 'http',
    operands: 'none',
    hosts: (use) => [requestOfHttpie(use).url ?? []].flat(),
    connects: { port: 'web' },
    outward: outwardOfHttpie,
    onlySends: httpiePosts,
  })),
  ...programs('httpie websocat hurl grpcurl aria2c axel lynx w3m links elinks', 'high', 'network', () => ({
    operands: 'none',
    hosts: urlsAmong,
  })),
  ...programs('rsync', 'high', 'network', () => ({
    grammar: 'rsync',
    paths: pathsOfRsync,
    loses: lossOfRsync,
    followsLinks: (use) => hasOption(use, 'L k copy-links copy-dirlinks copy-unsafe-links'),
    // `host::module` is another protocol, and a name behind a slash no host.
    hosts: ({ operands }) => operands.filter(({ text }) => /^[^/:]+:(?!:)/.test(text)),
    connects: { port: 22, ssh: true },
    outward: ({ operands }) =>
      /^[^/]*:/.test(operands.at(-1)?.text ?? '') ? 'changes files on another machine' : undefined,
  })),
  ...programs(
    'dig nslookup host ping ping6 fping traceroute tracepath mtr whois nmap masscan arp arping resolvectl drill kdig finger ntpdate',
    'high',
    'network',
    () => ({
      operands: 'none',
      needs: 'network',
    }),
  ),
  ...programs(
    'ip ifconfig route tc bridge ethtool iw nmcli tcpdump tshark wireshark wg wg-quick openvpn tailscale cloudflared ngrok ssserver tor',
    'high',
    'network',
    () => ({
      operands: 'none',
    }),
  ),
  ...programs('ss netstat', 'low', 'local', () => ({ operands: 'none' })),
  ...programs('openssl', 'high', 'network', () => ({ grammar: 'openssl', hosts: hostsOfOpenssl })),
  ...programs('ssh-keygen ssh-add gpg gpg2 gpgconf age pass secret-tool vault op bw sops', 'high', 'unknown'),
  ...programs('mail mailx sendmail mutt swaks msmtp telegram-cli', 'high', 'network', () => ({
    operands: 'none',
    needs: 'network',
    outward: 'sends messages',
  })),
  ...programs('ab wrk hey k6 siege vegeta newman', 'high', 'network', () => ({ hosts: urlsAmong })),
];
