import { type Finding, finding, type Grammar, type ProgramRow, programs } from '../behaviour.ts';
import type { Use } from '../use.ts';

/** Each of them has a runner in `programs/runs/shells.ts`, which says what it runs. */
export const SHELL_NAMES = 'sh bash dash zsh ksh mksh ash fish csh tcsh rbash sandbox-sh';

const SHELL: Grammar = {
  stopAtOperand: true,
  flags:
    'a b e f h i k l m n p r t u v x B C E H P T login norc noprofile posix restricted verbose noediting',
  values: 'o O',
  // The text is listed command by command.
  optionals: 'c',
  loads: 'rcfile init-file',
  executing: 's',
};

/** A shell without a script runs its standard input, which was not seen beforehand. */
function inspectShell(use: Use): readonly Finding[] {
  const text = use.options.some(({ name, word }) => name === 'c' || /^-[a-zA-Z]*c/.test(word.value ?? ''));
  if (text) return [];
  const [script] = use.operands;
  return script === undefined
    ? [
        finding(
          'executes',
          'executes_input',
          'runs what it reads from its standard input',
          use.command.words[0]?.source ?? '',
        ),
      ]
    : [finding('loads', 'runs_script', 'runs a script', script.word.source)];
}

/** Programs that run another one, which the parser lists beside them. */
export const RUNNERS: readonly ProgramRow[] = [
  ...programs(
    'command exec builtin nohup timeout nice ionice chrt taskset stdbuf setsid unbuffer setarch env caffeinate dbus-run-session catchsegv',
    'low',
    'local',
    {
      operands: 'none',
      grammar: { open: true, stopAtOperand: true },
    },
  ),
  ...programs('xargs', 'low', 'local', {
    operands: 'none',
    grammar: {
      open: true,
      stopAtOperand: true,
      flags: '0 r t p x o',
      values: 'd delimiter E I L n max-args P max-procs s max-chars',
      optionals: 'e i l eof replace max-lines',
      reads: 'a arg-file',
    },
  }),
  ...programs('time', 'low', 'local', {
    operands: 'none',
    grammar: {
      stopAtOperand: true,
      flags: 'p a append v verbose q quiet portability',
      values: 'f format',
      writes: 'o output',
    },
  }),
  ...programs('parallel watch entr flock script busybox toybox', 'medium', 'local', { operands: 'none' }),
  ...programs(SHELL_NAMES, 'low', 'network', {
    operands: 'guess',
    grammar: SHELL,
    inspect: inspectShell,
  }),
  ...programs(
    'chroot unshare nsenter bwrap firejail proot fakeroot fakechroot setpriv capsh run-parts start-stop-daemon runuser sg newgrp',
    'high',
    'unknown',
    {
      operands: 'none',
    },
  ),
  ...programs('ld.so ld-linux.so.2 ld-linux-x86-64.so.2 ld-linux-aarch64.so.1', 'medium', 'unknown', {
    operands: 'guess',
  }),
];
