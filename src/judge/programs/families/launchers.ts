import {
  inputWord,
  prefixOf,
  type Reach,
  type Risk,
  type Word,
  withInput,
  wordFrom,
} from '../../../model/index.ts';
import {
  type Behaviour,
  type Call,
  type Grammar,
  type ProgramRow,
  programs,
  type Runs,
} from '../behaviour.ts';
import {
  behindOptions,
  hasOption,
  NOTHING,
  optionValue,
  refused,
  runText,
  runWords,
  unreadable,
} from '../options.ts';

const HELP = 'help version';
const PLAIN_ASSIGNMENT = /^(?:[A-Za-z_][A-Za-z0-9_]*=|-$)/;

/** env has options, then assignments, then the command; `-S` splits a text into words. */
const runsOfEnv = behindOptions((read, call) => {
  if (hasOption(read, 'S split-string')) {
    return refused('env -S splits a text by rules of its own: write the words out.', call.words[0]);
  }
  const assignments = assignmentsBefore(read.rest);
  const odd = assignments.find((word) => !PLAIN_ASSIGNMENT.test(prefixOf(word)));
  // Among others: BASH_FUNC_ls%% gives bash a function.
  if (odd !== undefined) return refused(`env: ${odd.source} is not a plain variable.`, odd);
  return runWords(read.rest.slice(assignments.length), optionValue(read.options, 'C chdir'));
});

/** What stands before the command of env. A lone dash means -i, and assignments may follow. */
function assignmentsBefore(words: readonly Word[]): readonly Word[] {
  const first = words.findIndex((word) => !/^[^=]*=/.test(prefixOf(word)) && word.value !== '-');
  return words.slice(0, first === -1 ? undefined : first);
}

/** `xargs [options] command [words]`: the items of the input are put in where the marker stands, or at the end. */
const runsOfXargs = behindOptions((read) => {
  const [first] = read.rest;
  if (first === undefined) return NOTHING;
  if (!hasOption(read, 'I i replace')) return runWords([...read.rest, inputWord(first.span)]);
  const given = optionValue(read.options, 'I i replace');
  if (given !== undefined && given.value === undefined)
    return refused('xargs: the marker must be written out.', given);
  const marker = given?.value === undefined || given.value === '' ? '{}' : given.value;
  return runWords(read.rest.map((word) => withInput(word, marker, false)));
});

/** Characters that the shell which parallel starts takes as they are. */
const PLAIN = /^[A-Za-z0-9_./:=@%+,{}#-]*$/;

/** `parallel [options] command [words] ::: items`: the words are a text for a shell. */
const runsOfParallel = behindOptions((read, call) => {
  if (hasOption(read, 'I')) return refused('parallel: only the usual markers are understood.', call.words[0]);
  const end = read.rest.findIndex((word) => /^:::/.test(prefixOf(word)));
  const command = read.rest.slice(0, end === -1 ? undefined : end);
  const [first] = command;
  if (first === undefined)
    return refused('parallel would run its input as commands: name the command.', call.words[0]);
  const unplain = command.find((word) => word.value === undefined || !PLAIN.test(word.value));
  if (unplain !== undefined)
    return refused(`parallel: ${unplain.source} is read by a shell: use plain words.`, unplain);
  const inner = command.map(marked);
  return runWords(
    inner.some((word, index) => word !== command[index]) ? inner : [...inner, inputWord(first.span)],
  );
});

/** Replacement strings of parallel: `{}`, `{.}`, `{/}`, `{1}`, `{#}` and their kin. */
function marked(word: Word): Word {
  const marker = /\{[^{}]*\}/.exec(word.value ?? '')?.[0];
  return marker === undefined ? word : withInput(word, marker, false);
}

/** `watch [options] words`: a shell reads them, but for -x. */
const runsOfWatch = behindOptions((read) => {
  return hasOption(read, 'x exec') ? runWords(read.rest) : runText(read.rest);
});

/** `flock [options] file command…`, `flock file -c text`, `flock descriptor`. */
const runsOfFlock = behindOptions((read) => {
  const [file, first, text] = read.rest;
  if (file !== undefined && file.value === undefined)
    return refused(`flock: ${file.source} must be written out.`, file);
  if (first?.value !== '-c' && first?.value !== '--command') return runWords(read.rest.slice(1));
  if (text === undefined || read.rest.length > 3) return refused('flock: -c takes one text.', first);
  return runText([text]);
});

/** `script -c text`. */
const runsOfScript = behindOptions((read, call) => {
  const text = optionValue(read.options, 'c command');
  return text === undefined
    ? refused('script would start a shell that reads its standard input: use -c.', call.words[0])
    : runText([text]);
}, 'anywhere');

/** `entr [options] command`, where `/_` is a file; `entr -s text`. */
const runsOfEntr = behindOptions((read) => {
  if (hasOption(read, 's')) return runText(read.rest.slice(0, 1));
  return runWords(read.rest.map((word) => withInput(word, '/_', true)));
});

/** `busybox applet …`, `toybox applet …`. */
function runsOfBusybox(call: Call): Runs {
  const [applet] = call.args;
  if (applet?.value?.startsWith('-') !== true) return runWords(call.args);
  return /^--(?:list|list-full|help|version)$/.test(applet.value)
    ? NOTHING
    : refused(`${call.name}: the option ${applet.source} is not known here.`, applet);
}

/** The dynamic loader, which runs the program that it is given. */
const runsOfLoader = behindOptions((read, call) => {
  return hasOption(read, 'preload audit')
    ? refused(`${call.name} would load other code first.`, call.words[0])
    : runWords(read.rest);
});

const PROC_ROOT = /^\/+proc\/+(?:self|thread-self|[0-9]+)\/+(?:root|task\/+[0-9]+\/+root)(\/.*)$/;

/** `/proc/self/root/bin/rm` is `/bin/rm`. */
export function runsOfProcName(call: Call): Runs {
  const [first] = call.words;
  const path = first?.value ?? '';
  const inner = PROC_ROOT.exec(path)?.[1];
  return first === undefined || inner === undefined
    ? refused(`${path} is another name for a program: use its own.`, first)
    : runWords([wordFrom(inner, first), ...call.args]);
}

/** A row of programs that run what stands behind their options. */
function launchers(
  names: string,
  risk: Risk,
  reach: Reach,
  grammar: Grammar,
  launches: Behaviour['launches'] = {},
): readonly ProgramRow[] {
  return programs(names, risk, reach, {
    operands: 'none',
    grammar: { ...grammar, stopAtOperand: true },
    launches,
  });
}

/** Builtins that run their words in the shell: `command -p NAME …`, `builtin NAME …`. */
const runsInShell = behindOptions((read) => {
  if (hasOption(read, 'v V') || read.rest.length === 0) return NOTHING;
  return { runs: [{ kind: 'argv', words: read.rest, inShell: true }] };
});

/** Programs that run another one, which the parser lists beside them. */
export const LAUNCHERS: readonly ProgramRow[] = [
  ...programs('builtin', 'low', 'local', {
    operands: 'none',
    builtin: true,
    runs: runsInShell,
    grammar: { source: 'bash 5.2.15', stopAtOperand: true },
  }),
  ...programs('command', 'low', 'local', {
    operands: 'none',
    builtin: true,
    runs: runsInShell,
    grammar: { source: 'bash 5.2.15', stopAtOperand: true, flags: 'p v V' },
  }),
  ...programs('exec', 'low', 'local', {
    operands: 'none',
    builtin: true,
    grammar: { source: 'bash 5.2.15', stopAtOperand: true, flags: 'c l', values: 'a' },
    launches: {},
  }),
  ...launchers('nohup', 'low', 'local', { source: 'coreutils 9.1', flags: HELP }),
  ...launchers(
    'timeout',
    'low',
    'local',
    {
      source: 'coreutils 9.1',
      flags: `v foreground preserve-status verbose ${HELP}`,
      values: 'k s kill-after signal',
    },
    { operands: 1 },
  ),
  ...launchers('time', 'low', 'local', {
    source: 'GNU time 1.9',
    flags: `a append p portability q quiet v verbose V ${HELP}`,
    values: 'f format',
    writes: 'o output output-file',
  }),
  ...launchers('nice', 'low', 'local', {
    source: 'coreutils 9.1',
    flags: HELP,
    values: 'n adjustment',
    numeric: true,
  }),
  ...launchers(
    'ionice',
    'low',
    'local',
    {
      source: 'util-linux 2.38.1',
      flags: `t h V ignore ${HELP}`,
      values: 'c n p P u class classdata pid pgid uid',
    },
    { inert: 'p P u pid pgid uid' },
  ),
  ...launchers('stdbuf', 'low', 'local', {
    source: 'coreutils 9.1',
    flags: HELP,
    values: 'i o e input output error',
  }),
  ...launchers('setsid', 'low', 'local', {
    source: 'util-linux 2.38.1',
    flags: `c f w h V ctty fork wait ${HELP}`,
  }),
  ...launchers(
    'setarch',
    'low',
    'local',
    {
      source: 'util-linux 2.38.1',
      flags: `v R F Z L X B I S T 3 h V p 32bit addr-no-randomize uname-2.6 fdpic-funcptrs mmap-page-zero addr-compat-layout read-implies-exec short-inode whole-seconds sticky-timeouts 3gb 4gb verbose list ${HELP}`,
    },
    { operands: 1, optionsBehind: true },
  ),
  ...launchers(
    'taskset',
    'low',
    'local',
    { source: 'util-linux 2.38.1', flags: `a c h V all-tasks cpu-list ${HELP}` },
    { operands: 1 },
  ),
  ...launchers(
    'chrt',
    'low',
    'local',
    {
      source: 'util-linux 2.38.1',
      flags: `b d f i o r m a h V v R batch deadline fifo idle other rr max all-tasks reset-on-fork verbose ${HELP}`,
      values: 'T P D sched-runtime sched-period sched-deadline',
    },
    { operands: 1 },
  ),
  // Only where they stand alone are they its own.
  ...launchers('catchsegv', 'low', 'local', {
    source: 'debug/catchsegv.sh of glibc, commit 04277e02d7f5',
    flags: HELP,
  }),
  ...launchers('caffeinate', 'low', 'local', {
    source: 'caffeine 2.9.12',
    // The letters are those of macOS.
    flags: `d i s u m V version ${HELP}`,
    values: 't w',
  }),
  ...launchers('dbus-run-session', 'low', 'local', {
    source: 'dbus 1.14.10',
    flags: HELP,
    values: 'config-file',
    executes: 'dbus-daemon',
  }),
  // It has no options; env refuses the same words.
  ...programs('cross-env', 'low', 'local', {
    operands: 'none',
    runs: runsOfEnv,
    assigns: ({ operands }) => assignmentsBefore(operands.map(({ word }) => word)),
    grammar: { source: 'cross-env 10.1.0', stopAtOperand: true },
  }),
  ...programs('env', 'low', 'local', {
    operands: 'none',
    runs: runsOfEnv,
    assigns: ({ operands }) => assignmentsBefore(operands.map(({ word }) => word)),
    grammar: {
      source: 'coreutils 9.1',
      stopAtOperand: true,
      flags: `i 0 v ignore-environment null debug list-signal-handling ${HELP}`,
      values: 'u C S unset chdir split-string',
      optionals: 'block-signal default-signal ignore-signal',
    },
  }),
  ...programs('xargs', 'low', 'local', {
    operands: 'none',
    runs: runsOfXargs,
    interprets: 'input',
    passesOn:
      '0 null r no-run-if-empty t verbose p interactive x exit o open-tty n max-args P max-procs L l max-lines s max-chars I i replace d=\\n d=\\0 delimiter=\\n delimiter=\\0',
    grammar: {
      source: 'findutils 4.9.0',
      stopAtOperand: true,
      flags: `0 r t p x o null interactive no-run-if-empty show-limits verbose exit open-tty ${HELP}`,
      values: 'd E I L n P s delimiter max-args max-procs max-chars process-slot-var',
      optionals: 'e i l eof replace max-lines',
      reads: 'a arg-file',
    },
  }),
  ...programs('parallel', 'medium', 'local', {
    operands: 'none',
    runs: runsOfParallel,
    interprets: 'input',
    passesOn: '0 null k keep-order j jobs m X bar eta will-cite no-notice line-buffer t verbose',
    grammar: {
      // Options that send files and commands to other machines, or read data in blocks, are not understood.
      source: 'parallel 20221122',
      stopAtOperand: true,
      flags: `0 k m q t u v x X bar eta keep-order dry-run null verbose tag progress line-buffer no-notice will-cite ungroup group ${HELP}`,
      values:
        'j P I N n d C E L s jobs max-procs halt timeout retries delay max-args max-chars colsep memfree load nice tagstring trim',
      reads: 'a arg-file',
      produces: 'joblog results',
    },
  }),
  ...programs('watch', 'medium', 'local', {
    operands: 'none',
    runs: runsOfWatch,
    grammar: {
      source: 'procps-ng 4.0.2',
      stopAtOperand: true,
      flags: `b c C e g t p r w x h v beep color no-color errexit chgexit precise no-title no-wrap no-rerun exec ${HELP}`,
      values: 'n q s interval equexit',
      optionals: 'd differences',
      produces: 'shotsdir',
    },
  }),
  ...programs('entr', 'medium', 'local', {
    operands: 'none',
    runs: runsOfEntr,
    // `-x` is of later versions.
    grammar: { source: 'entr 5.3', stopAtOperand: true, flags: 'a c d n p r s x z' },
  }),
  ...programs('flock', 'medium', 'local', {
    operands: 'none',
    runs: runsOfFlock,
    grammar: {
      source: 'util-linux 2.38.1',
      stopAtOperand: true,
      flags: `s x e u n o F v h V shared exclusive unlock nonblock nonblocking nb close no-fork verbose ${HELP}`,
      values: 'w E timeout wait conflict-exit-code',
    },
  }),
  ...programs('script', 'medium', 'local', {
    operands: 'none',
    runs: runsOfScript,
    grammar: {
      source: 'util-linux 2.38.1',
      flags: `a e f q h V append return flush force quiet ${HELP}`,
      values: 'c E o m command echo logging-format output-limit',
      optionals: 't timing',
      produces: 'I O B T log-in log-out log-io log-timing',
    },
  }),
  ...programs('busybox toybox', 'medium', 'local', { operands: 'none', runs: runsOfBusybox }),
  ...programs('ld.so ld-linux.so.2 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1', 'medium', 'unknown', {
    // Under the names that systems give it.
    alsoCalled: /^ld(?:-linux|-musl|-[0-9.]+|64)?[A-Za-z0-9_.-]*\.so(?:\.[0-9]+)*$/,
    runs: runsOfLoader,
    grammar: {
      source: 'glibc 2.36',
      flags: `list verify inhibit-cache list-tunables list-diagnostics ${HELP}`,
      values: 'library-path inhibit-rpath argv0 glibc-hwcaps-prepend glibc-hwcaps-mask',
      loads: 'preload audit',
    },
  }),
  ...launchers(
    'chroot',
    'high',
    'unknown',
    { source: 'coreutils 9.1', flags: `skip-chdir ${HELP}`, values: 'groups userspec' },
    { operands: 1 },
  ),
  ...launchers(
    'unshare',
    'high',
    'unknown',
    {
      source: 'util-linux 2.38.1',
      flags: `m u i n p U C T f c r h V fork map-root-user map-current-user map-auto keep-caps ${HELP}`,
      values:
        'R w S G map-user map-group map-users map-groups propagation setgroups root wd setuid setgid monotonic boottime',
      optionals: 'mount uts ipc net pid user cgroup time kill-child mount-proc',
    },
    { directory: 'w wd' },
  ),
  ...launchers('nsenter', 'high', 'unknown', {
    source: 'util-linux 2.38.1',
    flags: `a e r F Z h V all preserve-credentials no-fork env follow-context ${HELP}`,
    values: 't S G W target setuid setgid',
    optionals: 'm u i n p U C T r w mount uts ipc net pid user cgroup time root wd wdns',
  }),
  ...launchers('fakeroot', 'high', 'unknown', {
    source: 'fakeroot 1.31',
    flags: `u h v unknown-is-real ${HELP}`,
    values: 's i b',
    loads: 'l lib',
    executes: 'f faked',
  }),
  ...launchers('setpriv', 'high', 'unknown', {
    source: 'util-linux 2.38.1',
    flags: `d h V no-new-privs clear-groups init-groups keep-groups reset-env ${HELP}`,
    values: 'reuid regid inh-caps bounding-set ruid rgid euid egid groups',
  }),
  ...programs('bwrap firejail capsh start-stop-daemon sg newgrp', 'high', 'unknown', {
    operands: 'none',
    runs: unreadable,
  }),
  ...programs('proot fakechroot run-parts', 'high', 'unknown', { operands: 'none' }),
  ...programs('unbuffer', 'low', 'local', { operands: 'none', runs: unreadable }),
  ...programs('daemonize expect chpst concurrently sem runcon tsp watchexec', 'medium', 'unknown', {
    runs: unreadable,
  }),
  ...programs('nodemon', 'medium', 'network', { runs: unreadable }),
  ...launchers('prlimit', 'high', 'local', {
    source: 'util-linux 2.38.1',
    flags: `h V verbose noheadings raw ${HELP}`,
    optionals:
      'c d e f i l m n q r s t u v x y core data nice fsize nofile nproc as cpu stack rss memlock locks msgqueue rtprio rttime sigpending',
  }),
  ...launchers('xvfb-run', 'medium', 'unknown', {
    source: 'xvfb-run 21.1.7',
    flags: `a l h auto-servernum listen-tcp ${HELP}`,
    values: 'n p s w server-args server-num wait xauth-protocol',
    produces: 'e f error-file auth-file',
  }),
  ...launchers('cgexec', 'medium', 'unknown', {
    source: 'cgroup-tools 2.0.2',
    flags: 'h sticky help',
    values: 'g',
  }),
  ...launchers('systemd-inhibit', 'medium', 'unknown', {
    source: 'systemd 252',
    flags: `list ${HELP}`,
    values: 'what who why mode',
  }),
  ...launchers('numactl', 'medium', 'unknown', {
    source: 'numactl 2.0.16',
    flags: `a b s l H all balancing show hardware localalloc huge strict touch dump dump-nodes ${HELP}`,
    values:
      'i m N C p P S interleave membind cpunodebind physcpubind preferred preferred-many offset length shmmode shmid shm',
    reads: 'file',
  }),
  ...launchers('torsocks', 'high', 'network', {
    source: 'torsocks 2.4.0',
    flags: `h i d q isolate debug quiet ${HELP}`,
    values: 'u p a P user pass address port',
  }),
  ...launchers('proxychains proxychains4', 'high', 'network', {
    source: 'proxychains-ng 4.16',
    flags: 'q',
    loads: 'f',
  }),
  ...launchers('rlwrap', 'medium', 'unknown', {
    source: 'rlwrap 0.46.1',
    flags:
      'c E h i I n N o r R U v W complete-filenames always-echo help case-insensitive pass-sigint-as-sigterm no-warnings no-children one-shot remember renice mirror-arguments version polling',
    // Only attached.
    optionals: 'a A m p always-readline ansi-colour-aware multi-line prompt-colour',
    values:
      'b C D e g M O P q s S t w break-chars command-name history-no-dupes extra-char-after-completion forget-matching multi-line-ext only-cook pre-given quote-characters histsize substitute-prompt set-term-name wait-before-prompt',
    reads: 'f file',
    writes: 'H l history-filename logfile',
    executes: 'z filter',
  }),
  ...launchers(
    'faketime',
    'medium',
    'unknown',
    { source: 'faketime 0.9.10', flags: `f m exclude-monotonic ${HELP}`, values: 'p', executes: 'date-prog' },
    { operands: 1 },
  ),
  // Of the last three no options are understood.
  ...launchers('eatmydata ccache sccache distcc', 'medium', 'unknown', { source: 'eatmydata 130' }),
  ...launchers(
    'ssh-agent',
    'high',
    'unknown',
    { source: 'OpenSSH 9.2p1', flags: 'c s D d T U u k', values: 'a E O P t' },
    { inert: 'k' },
  ),
  ...launchers('gpg-agent', 'high', 'unknown', {
    source: 'gnupg 2.2.40',
    flags: `v q s c k daemon server supervised verbose quiet batch sh csh no-options no-detach no-grab keep-tty keep-display debug-all disable-scdaemon use-standard-socket enable-ssh-support enable-putty-support allow-preset-passphrase allow-loopback-pinentry gpgconf-list gpgconf-test dump-options allow-emacs-pinentry allow-mark-trusted debug-pinentry debug-quick-random disable-check-own-socket disable-extended-key-format enable-extended-key-format enable-passphrase-history enforce-passphrase-constraints pinentry-formatted-passphrase grab ignore-cache-for-signing no-allow-external-cache no-allow-loopback-pinentry no-allow-mark-trusted no-use-standard-socket no-user-trustlist steal-socket use-standard-socket-p ${HELP}`,
    values:
      'debug debug-level debug-wait default-cache-ttl default-cache-ttl-ssh max-cache-ttl max-cache-ttl-ssh display faked-system-time lc-ctype lc-messages listen-backlog max-passphrase-days min-passphrase-len min-passphrase-nonalpha pinentry-invisible-char pinentry-timeout s2k-calibration s2k-count ssh-fingerprint-digest ttyname ttytype',
    reads: 'homedir check-passphrase-pattern check-sym-passphrase-pattern sys-trustlist-name xauthority',
    loads: 'options',
    produces: 'log-file extra-socket browser-socket pinentry-touch-file',
    executes: 'pinentry-program scdaemon-program',
    optionals: 'auto-expand-secmem write-env-file',
  }),
];
