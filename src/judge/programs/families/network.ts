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

/** A method that is not known may be DELETE; what is uploaded takes the place of what is there. */
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
  ...programs('curl', 'high', 'network', {
    grammar: {
      source: 'curl 7.88.1',
      open: true,
      flags:
        '0 1 2 3 4 6 a B f g G i I j J k l L M n N O p q R s S v V Z # : anyauth append basic cert-status compressed compressed-ssh create-dirs crlf digest disable disable-eprt disable-epsv disallow-username-in-url doh-cert-status doh-insecure fail fail-early fail-with-body false-start form-escape ftp-create-dirs ftp-pasv ftp-pret ftp-skip-pasv-ip ftp-ssl-ccc ftp-ssl-control get globoff haproxy-protocol head http0.9 http1.0 http1.1 http2 http2-prior-knowledge http3 http3-only ignore-content-length include insecure ipv4 ipv6 junk-session-cookies list-only location location-trusted mail-rcpt-allowfails manual metalink negotiate netrc netrc-optional next no-alpn no-buffer no-clobber no-keepalive no-npn no-progress-meter no-sessionid ntlm ntlm-wb parallel parallel-immediate path-as-is post301 post302 post303 progress-bar proxy-anyauth proxy-basic proxy-digest proxy-insecure proxy-negotiate proxy-ntlm proxy-ssl-allow-beast proxy-ssl-auto-client-cert proxy-tlsv1 proxytunnel raw remote-header-name remote-name remote-name-all remote-time remove-on-error retry-all-errors retry-connrefused sasl-ir show-error silent socks5-basic socks5-gssapi socks5-gssapi-nec ssl ssl-allow-beast ssl-auto-client-cert ssl-no-revoke ssl-reqd ssl-revoke-best-effort sslv2 sslv3 styled-output suppress-connect-headers tcp-fastopen tcp-nodelay tftp-no-options tlsv1 tlsv1.0 tlsv1.1 tlsv1.2 tlsv1.3 tr-encoding trace-time use-ascii verbose version xattr',
      values:
        'A b C d e F h H m P Q r t u U w x X y Y z abstract-unix-socket aws-sigv4 cert-type ciphers connect-timeout connect-to continue-at cookie create-file-mode curves data data-ascii data-binary data-raw data-urlencode delegation dns-interface dns-ipv4-addr dns-ipv6-addr dns-servers doh-url engine expect100-timeout form form-string ftp-account ftp-alternative-to-user ftp-method ftp-port ftp-ssl-ccc-mode happy-eyeballs-timeout-ms header help hostpubmd5 hostpubsha256 interface json keepalive-time key-type krb limit-rate local-port login-options mail-auth mail-from mail-rcpt max-filesize max-redirs max-time noproxy oauth2-bearer parallel-max pass pinnedpubkey preproxy proto proto-default proto-redir proxy proxy-cert-type proxy-ciphers proxy-header proxy-key-type proxy-pass proxy-pinnedpubkey proxy-service-name proxy-tls13-ciphers proxy-tlsauthtype proxy-tlspassword proxy-tlsuser proxy-user proxy1.0 quote range rate referer request request-target resolve retry retry-delay retry-max-time sasl-authzid service-name socks4 socks4a socks5 socks5-gssapi-service socks5-hostname speed-limit speed-time telnet-option tftp-blksize time-cond tls-max tls13-ciphers tlsauthtype tlspassword tlsuser url url-query user user-agent write-out',
      reads:
        'E T upload-file cacert capath cert crlfile egd-file etag-compare key netrc-file proxy-cacert proxy-capath proxy-cert proxy-crlfile proxy-key pubkey random-file unix-socket',
      loads: 'K config',
      writes:
        'o output c cookie-jar D dump-header output-dir stderr trace trace-ascii libcurl etag-save alt-svc hsts',
    },
    operands: 'none',
    staysLocal: curlStays,
    hosts: (use) => [
      ...use.operands,
      ...valuesOf(use, 'url x proxy preproxy proxy1.0 socks4 socks4a socks5 socks5-hostname'),
    ],
    connects: { port: 'web' },
    outward: outwardOfCurl,
    onlySends: curlPosts,
  }),
  ...programs('wget wget2', 'high', 'network', {
    grammar: {
      source: 'wget 1.21.3',
      open: true,
      flags: '4 6 b c d E F h H k K L m N p q r S v V x',
      values:
        'A B D I l n Q R t T U w X accept accept-regex base bind-address body-data certificate-type ciphers compression connect-timeout cut-dirs default-page dns-timeout domains exclude-directories exclude-domains follow-tags ftp-password ftp-user header http-password http-user ignore-tags include-directories level limit-rate local-encoding max-redirect method password pinnedpubkey post-data prefer-family private-key-type progress proxy-password proxy-user quota read-timeout referer regex-type reject reject-regex remote-encoding retry-on-http-error secure-protocol start-pos timeout tries user user-agent wait waitretry warc-header warc-max-size bind-dns-address dns-servers metalink-index preferred-location',
      optionals: 'report-speed restrict-file-names',
      reads:
        'i input-file post-file body-file ca-certificate ca-directory certificate private-key crl-file load-cookies warc-dedup egd-file input-metalink random-file',
      loads: 'config',
      writes:
        'O output-document P directory-prefix o output-file a append-output save-cookies rejected-log hsts-file warc-file warc-tempdir',
      executes: 'use-askpass e execute',
    },
    operands: 'none',
    staysLocal: wgetStays,
    hosts: ({ operands }) => operands,
    connects: { port: 'web' },
    outward: outwardOfWget,
    onlySends: wgetPosts,
  }),
  ...programs('ssh', 'high', 'network', {
    versionOption: '-V',
    operands: 'none',
    needs: 'network',
    connects: { port: 22, ssh: true },
    outward: 'works on another machine',
    runs: runsOfSsh,
    grammar: {
      source: 'OpenSSH 9.2p1',
      stopAtOperand: true,
      flags: '4 6 A a C f G g K k M N n q s T t V v X x Y y',
      values: 'B b c D E e F I i J L l m O o p P Q R S W w',
    },
  }),
  ...programs('scp sftp sshfs autossh ssh-copy-id', 'high', 'network', {
    operands: 'none',
    needs: 'network',
    connects: { port: 22, ssh: true },
    outward: 'works on another machine',
  }),
  ...programs('lftp tftp mosh ssh-keyscan rlogin rsh rexec youtube-dl yt-dlp', 'high', 'network', {
    operands: 'none',
    needs: 'network',
    outward: 'works on another machine',
  }),
  ...programs('nc netcat nc.openbsd nc.traditional', 'high', 'network', {
    alsoCalled: withVersion('nc'),
    grammar: {
      // Which of the two a name stands for is not known: letters that only one has are here, too.
      source: 'netcat-openbsd 1.219, netcat-traditional 1.10',
      open: true,
      flags: '4 6 b C D d F h k l N n r S t U u v Z z',
      values: 'G g I i M m O P p q s T V W w X x',
      executes: 'c e',
      writes: 'o',
    },
    operands: 'none',
    staysLocal: netcatStays,
    hosts: hostOfNetcat,
  }),
  ...programs('ncat', 'high', 'network', {
    grammar: {
      source: 'ncat 7.93',
      open: true,
      flags:
        '4 6 C h k l n t U u v z append-output broker chat crlf help keep-open listen no-shutdown nodns recv-only sctp send-only ssl ssl-verify telnet udp unixsock verbose version vsock zero',
      values:
        'd G g i m p s w allow delay deny idle-timeout max-conns proxy proxy-auth proxy-dns proxy-type source source-port ssl-alpn ssl-ciphers ssl-servername wait',
      reads: 'allowfile denyfile ssl-cert ssl-key ssl-trustfile',
      executes: 'c e exec sh-exec lua-exec',
      writes: 'o x output hex-dump',
    },
    operands: 'none',
    staysLocal: netcatStays,
    hosts: hostOfNetcat,
  }),
  ...programs('telnet', 'high', 'network', {
    grammar: {
      source: 'inetutils 2.4',
      open: true,
      flags:
        '4 ipv4 6 ipv6 8 binary L binary-output E no-escape a login K no-login r rlogin c no-rc d debug x encrypt',
      values: 'e escape l user X disable-auth k realm',
      writes: 'n trace',
    },
    operands: 'none',
    hosts: ({ operands }) => operands.slice(0, 1),
    connects: { port: 23 },
  }),
  ...programs('ftp', 'high', 'network', {
    grammar: {
      source: 'tnftp 20210827',
      open: true,
      // Behind -u stands the host, as it does without.
      flags: '4 6 A a d e f g i n p R t u V v ?',
      values: 'P q r s T x',
      reads: 'N',
      writes: 'o',
    },
    operands: 'none',
    hosts: ({ operands }) => operands.slice(0, 1),
    connects: { port: 21 },
  }),
  ...programs('socat', 'high', 'network', {
    grammar: {
      source: 'socat 1.7.4.4',
      open: true,
      flags: '4 6 D d g h s U u V v x',
      values: 'b S T t',
      writes: 'L R r W',
    },
    operands: 'none',
    // `-lf` alone of those that begin with `-l` has a value.
    morePaths: ({ command: { words } }) =>
      words.flatMap((word) =>
        word.value?.startsWith('-lf') === true
          ? [{ argument: argumentOf(word, 3), effect: 'writes' as const }]
          : [],
      ),
    hosts: hostsOfSocat,
  }),
  ...programs('http https xh xhs', 'high', 'network', {
    grammar: {
      source: 'HTTPie 3.2.4, xh 0.25',
      open: true,
      flags:
        '4 6 b c d f F h I j m q S v x all body chunked check-status compress continue curl curl-long debug download follow form headers ignore-netrc ignore-stdin json meta multipart offline path-as-is quiet sorted stream traceback unsorted verbose version',
      values:
        'a A p P s auth auth-type boundary cert-key-pass ciphers default-scheme format-options history-print http-version max-headers max-redirects pretty print proxy raw resolve response-charset response-mime session session-read-only ssl style timeout verify',
      reads: 'cert cert-key',
      writes: 'o output',
    },
    operands: 'none',
    hosts: (use) => [requestOfHttpie(use).url ?? []].flat(),
    connects: { port: 'web' },
    outward: outwardOfHttpie,
    onlySends: httpiePosts,
  }),
  ...programs('httpie websocat hurl grpcurl aria2c axel lynx w3m links elinks', 'high', 'network', {
    operands: 'none',
    hosts: urlsAmong,
  }),
  ...programs('rsync', 'high', 'network', {
    grammar: {
      source: 'rsync 3.5.0',
      open: true,
      exact: true,
      flags:
        '0 4 6 8 a A b c C d D E F g h H i I J k K l L m n N o O p P q r R s S t u U v V W x X y z 8-bit-output acls append append-verify archive atimes backup blocking-io checksum compress copy-devices copy-dirlinks copy-links copy-unsafe-links crtimes cvs-exclude daemon del delay-updates delete delete-after delete-before delete-delay delete-during delete-excluded delete-missing-args devices dirs dry-run executability existing fake-super force from0 fsync fuzzy group hard-links help human-readable ignore-errors ignore-existing ignore-missing-args ignore-non-existing ignore-times inc-recursive inplace insecure-links ipv4 ipv6 itemize-changes keep-dirlinks links list-only mkpath munge-links no-detach no-implied-dirs no-motd numeric-ids old-args old-dirs omit-dir-times omit-link-times one-file-system open-noatime owner partial perms preallocate progress prune-empty-dirs quiet recursive relative remove-source-files remove-sent-files safe-links secluded-args size-only sparse specials stats super times trust-sender update verbose version whole-file write-devices xattrs',
      values:
        'T temp-dir backup-dir partial-dir compare-dest copy-dest link-dest B f M @ address block-size bwlimit cc checksum-choice checksum-seed chmod chown compress-choice compress-level compress-threads contimeout copy-as debug dparam exclude filter groupmap iconv include info log-file-format max-alloc max-delete max-size min-size modify-window out-format outbuf port protocol remote-option skip-compress sockopts stderr stop-after stop-at suffix time-limit timeout usermap zc zl zt',
      reads: 'exclude-from include-from files-from password-file early-input read-batch config confine-root',
      executes: 'e rsh rsync-path',
      writes: 'log-file write-batch only-write-batch',
    },
    paths: pathsOfRsync,
    loses: lossOfRsync,
    followsLinks: (use) => hasOption(use, 'L k copy-links copy-dirlinks copy-unsafe-links'),
    // `host::module` is another protocol, and a name behind a slash no host.
    hosts: ({ operands }) => operands.filter(({ text }) => /^[^/:]+:(?!:)/.test(text)),
    connects: { port: 22, ssh: true },
    outward: ({ operands }) =>
      /^[^/]*:/.test(operands.at(-1)?.text ?? '') ? 'changes files on another machine' : undefined,
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
  ...programs('openssl', 'high', 'network', {
    grammar: {
      source: 'OpenSSL 3.0',
      open: true,
      style: 'single-dash',
      values:
        'subj addext days newkey passin passout pass servername connect proxy name multi set_serial iter k K iv S nameopt certopt sigopt pkeyopt algorithm purpose',
      reads: 'in inkey CA CAfile CAkey cert certfile key sign verify signature',
      writes: 'out keyout writerand CAserial',
      loads: 'config extfile',
      executes: 'engine provider provider-path',
    },
    hosts: hostsOfOpenssl,
  }),
  ...programs('ssh-keygen ssh-add gpg gpg2 gpgconf age pass secret-tool vault op bw sops', 'high', 'unknown'),
  ...programs('mail mailx sendmail mutt swaks msmtp telegram-cli', 'high', 'network', {
    operands: 'none',
    needs: 'network',
    outward: 'sends messages',
  }),
  ...programs('ab wrk hey k6 siege vegeta newman', 'high', 'network', { hosts: urlsAmong }),
];
