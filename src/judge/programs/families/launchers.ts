import {
  inputWord,
  prefixOf,
  type Reach,
  type Risk,
  type Word,
  withInput,
  wordFrom,
} from '../../../model/index.ts';
import { type Behaviour, type Call, type ProgramRow, programs, type Runs } from '../behaviour.ts';
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

/** `watch [options] words`: a shell reads them, except with -x. */
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
  grammar: string,
  launches: Behaviour['launches'] = {},
): readonly ProgramRow[] {
  return programs(names, risk, reach, () => ({ operands: 'none', grammar, launches }));
}

/** Builtins that run their words in the shell: `command -p NAME …`, `builtin NAME …`. */
const runsInShell = behindOptions((read) => {
  if (hasOption(read, 'v V') || read.rest.length === 0) return NOTHING;
  return { runs: [{ kind: 'argv', words: read.rest, inShell: true }] };
});

/** Programs that run another one, which the parser lists beside them. */
export const LAUNCHERS: readonly ProgramRow[] = [
  ...programs('builtin', 'low', 'local', () => ({
    operands: 'none',
    builtin: true,
    runs: runsInShell,
    grammar: 'builtin',
  })),
  ...programs('command', 'low', 'local', () => ({
    operands: 'none',
    builtin: true,
    runs: runsInShell,
    grammar: 'command',
  })),
  ...programs('exec', 'low', 'local', () => ({
    operands: 'none',
    builtin: true,
    grammar: 'exec',
    launches: {},
  })),
  ...launchers('nohup', 'low', 'local', 'nohup'),
  ...launchers('timeout', 'low', 'local', 'timeout', { operands: 1 }),
  ...launchers('time', 'low', 'local', 'time'),
  ...launchers('nice', 'low', 'local', 'nice'),
  ...launchers('ionice', 'low', 'local', 'ionice', { inert: 'p P u pid pgid uid' }),
  ...launchers('stdbuf', 'low', 'local', 'stdbuf'),
  ...launchers('setsid', 'low', 'local', 'setsid'),
  ...launchers('setarch', 'low', 'local', 'setarch', { operands: 1, optionsBehind: true }),
  ...launchers('taskset', 'low', 'local', 'taskset', { operands: 1 }),
  ...launchers('chrt', 'low', 'local', 'chrt', { operands: 1 }),
  // Only where they stand alone are they its own.
  ...launchers('catchsegv', 'low', 'local', 'catchsegv'),
  ...launchers('caffeinate', 'low', 'local', 'caffeinate'),
  ...launchers('dbus-run-session', 'low', 'local', 'dbus-run-session'),
  // cross-env has no options of its own, and refuses the same words as env.
  ...programs('cross-env', 'low', 'local', () => ({
    operands: 'none',
    runs: runsOfEnv,
    assigns: ({ operands }) => assignmentsBefore(operands.map(({ word }) => word)),
    grammar: 'cross-env',
  })),
  ...programs('env', 'low', 'local', () => ({
    operands: 'none',
    runs: runsOfEnv,
    assigns: ({ operands }) => assignmentsBefore(operands.map(({ word }) => word)),
    grammar: 'env',
  })),
  ...programs('xargs', 'low', 'local', () => ({
    operands: 'none',
    runs: runsOfXargs,
    interprets: 'input',
    passesOn:
      '0 null r no-run-if-empty t verbose p interactive x exit o open-tty n max-args P max-procs L l max-lines s max-chars I i replace d=\\n d=\\0 delimiter=\\n delimiter=\\0',
    grammar: 'xargs',
  })),
  ...programs('parallel', 'medium', 'local', () => ({
    operands: 'none',
    runs: runsOfParallel,
    interprets: 'input',
    passesOn: '0 null k keep-order j jobs m X bar eta will-cite no-notice line-buffer t verbose',
    grammar: 'parallel',
  })),
  ...programs('watch', 'medium', 'local', () => ({ operands: 'none', runs: runsOfWatch, grammar: 'watch' })),
  ...programs('entr', 'medium', 'local', () => ({
    operands: 'none',
    runs: runsOfEntr,
    // `-x` is of later versions.
    grammar: 'entr',
  })),
  ...programs('flock', 'medium', 'local', () => ({ operands: 'none', runs: runsOfFlock, grammar: 'flock' })),
  ...programs('script', 'medium', 'local', () => ({
    operands: 'none',
    runs: runsOfScript,
    grammar: 'script',
  })),
  ...programs('busybox toybox', 'medium', 'local', () => ({ operands: 'none', runs: runsOfBusybox })),
  ...programs(
    'ld.so ld-linux.so.2 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1',
    'medium',
    'unknown',
    () => ({
      // Under the names that systems give it.

      runs: runsOfLoader,
      grammar: 'ld.so',
    }),
    /^ld(?:-linux|-musl|-[0-9.]+|64)?[A-Za-z0-9_.-]*\.so(?:\.[0-9]+)*$/,
  ),
  ...launchers('chroot', 'high', 'unknown', 'chroot', { operands: 1 }),
  ...launchers('unshare', 'high', 'unknown', 'unshare', { directory: 'w wd' }),
  ...launchers('nsenter', 'high', 'unknown', 'nsenter'),
  ...launchers('fakeroot', 'high', 'unknown', 'fakeroot'),
  ...launchers('setpriv', 'high', 'unknown', 'setpriv'),
  ...programs('bwrap firejail capsh start-stop-daemon sg newgrp', 'high', 'unknown', () => ({
    operands: 'none',
    runs: unreadable,
  })),
  ...programs('proot fakechroot run-parts', 'high', 'unknown', () => ({ operands: 'none' })),
  ...programs('unbuffer', 'low', 'local', () => ({ operands: 'none', runs: unreadable })),
  ...programs('daemonize expect chpst concurrently sem runcon tsp watchexec', 'medium', 'unknown', () => ({
    runs: unreadable,
  })),
  ...programs('nodemon', 'medium', 'network', () => ({ runs: unreadable })),
  ...launchers('prlimit', 'high', 'local', 'prlimit'),
  ...launchers('xvfb-run', 'medium', 'unknown', 'xvfb-run'),
  ...launchers('cgexec', 'medium', 'unknown', 'cgexec'),
  ...launchers('systemd-inhibit', 'medium', 'unknown', 'systemd-inhibit'),
  ...launchers('numactl', 'medium', 'unknown', 'numactl'),
  ...launchers('torsocks', 'high', 'network', 'torsocks'),
  ...launchers('proxychains proxychains4', 'high', 'network', 'proxychains'),
  ...launchers('rlwrap', 'medium', 'unknown', 'rlwrap'),
  ...launchers('faketime', 'medium', 'unknown', 'faketime', { operands: 1 }),
  ...launchers('eatmydata ccache sccache distcc', 'medium', 'unknown', 'eatmydata'),
  ...launchers('ssh-agent', 'high', 'unknown', 'ssh-agent', { inert: 'k' }),
  ...launchers('gpg-agent', 'high', 'unknown', 'gpg-agent'),
];
