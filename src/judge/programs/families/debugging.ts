import {
  type Behaviour,
  type Call,
  type Grammar,
  type ProgramRow,
  programs,
  type Runs,
} from '../behaviour.ts';
import { behindOptions, hasOption, NOTHING, refused, runWords, wordOf } from '../options.ts';

/** Commands for gdb that start no program but the one that is examined. */
const GDB_COMMAND =
  /^(?:run|r|start|bt|bt full|backtrace|where|quit|q|continue|c|info [a-z ]+|thread apply all bt(?: full)?|set pagination off|set confirm off|break [\w:.]+)$/;

/** `gdb [options] program`, `gdb --args program words`. */
function runsOfGdb(call: Call): Runs {
  const args = call.args;
  for (let at = 0; at < args.length; at += 1) {
    const word = args[at];
    const text = word?.value?.replace(/^--/, '-');
    if (word === undefined || text === undefined)
      return refused(`gdb: ${word?.source} must be written out.`, word);
    if (text === '-args') return runWords(args.slice(at + 1));
    if (/^-(?:batch|q|quiet|nx|n|nh|nw|silent|return-child-result|version|help)$/.test(text)) continue;
    if (text === '-ex' || text === '-eval-command') {
      at += 1;
      if (!GDB_COMMAND.test(args[at]?.value ?? ''))
        return refused(`gdb: ${args[at]?.source} may run anything.`, args[at]);
    } else if (text.startsWith('-'))
      return refused(`gdb: the option ${word.source} is not known here.`, word);
    else
      return args.length > at + 2 ? refused('gdb: use --args before the program.', word) : runWords([word]);
  }
  return NOTHING;
}

/** What tmux and screen run is typed or given in many ways; only questions are understood. */
function runsOfMultiplexer(call: Call): Runs {
  const verb = call.args[0]?.value ?? '';
  const asks =
    /^(?:ls|list-\w+|has-session|has|kill-\w+|display-message|capture-pane|show-\w+|-V|-ls|-list|-v)$/.test(
      verb,
    );
  return asks
    ? NOTHING
    : refused(
        `${call.name} runs what it is given in a session of its own: run the command directly.`,
        call.words[0],
      );
}

/** Options of hyperfine whose value is run as well. */
const HYPERFINE_TEXTS = 'p prepare c cleanup s setup conclude'.split(' ');

/** `hyperfine [options] text…`: each text, and those of some options, is run by `sh`. */
const runsOfHyperfine = behindOptions((read) => {
  if (hasOption(read, 'N'))
    return refused('hyperfine -N splits its texts by rules of its own: leave it out.');
  const given = read.options.flatMap(({ name, value }) =>
    HYPERFINE_TEXTS.includes(name) && value !== undefined ? [wordOf(value)] : [],
  );
  const texts = [...read.rest, ...given];
  return { runs: texts.map((text) => ({ kind: 'text', text: [text], dialect: 'posix' })) };
}, 'anywhere');

/** Verbs of perf that are not known here may run programs of their own. */
function runsOfPerf({ args: [verb] }: Call): Runs {
  const looks = /^(?:list|version|evlist|buildid-list|--version|--help)$/;
  return verb === undefined || looks.test(verb.value ?? '')
    ? NOTHING
    : refused(
        `perf ${verb.source} may run programs of its own: only stat, record and list are known here.`,
        verb,
      );
}

/** Values of valgrind are attached. From valgrind 3.19's --help, and the manuals of its tools. */
const VALGRIND =
  'alignment alloc-fn allow-mismatched-debuginfo aspace-minaddr avg-transtab-entry-size basic-counts branch-sim cache-sim check-stack-refs check-stack-var child-silent-after-fork collect-atstart collect-bus collect-jumps collect-systime combine-dumps compress-pos compress-strings conflict-cache-size D1 default-suppressions delta-stacktrace demangle depth detailed-counts detailed-freq dsymutil dump-after dump-before dump-every-bb dump-instr dump-line error-exitcode error-limit error-markers errors-for-leak-kinds exclusive-threshold exit-on-first-error expensive-definedness-checks extra-debuginfo-path fair-sched first-race-only fnname free-fill free-is-write freelist-big-blocks freelist-vol fullpath-after gen-suppressions heap heap-admin history-level I1 ignore-fn ignore-range-below-sp ignore-ranges ignore-thread-creation input-fd instr-atstart instr-count-only interval-size join-list-vol keep-debuginfo keep-stacktraces kernel-variant leak-check leak-check-heuristics leak-resolution LL log-fd main-stacksize malloc-fill max-snapshots max-stackframe max-threads merge-recursive-frames num-callers num-transtab-sectors pages-as-heap partial-loads-ok peak-inaccuracy progress-interval ptrace-addr read-inline-info read-var-info redzone-size report-signal-unlocked require-text-symbol resync-filter run-cxx-freeres run-libc-freeres segment-merging segment-merging-interval separate-threads shared-threshold show-below-main show-confl-seg show-emwarns show-error-list show-leak-kinds show-mismatched-frees show-possibly-lost show-reachable show-stack-usage sigill-diagnostics sim-hints smc-check soname-synonyms stacks suppressions threshold time-stamp time-unit toggle-collect tool trace-addr trace-alloc trace-barrier trace-children trace-children-skip trace-children-skip-by-arg trace-cond trace-fork-join trace-hb trace-mem trace-mutex trace-rwlock trace-sched trace-semaphore trace-signals trace-superblocks trace-syscalls track-fds track-lockorders track-origins undef-value-errors unw-stack-scan-frames unw-stack-scan-thresh valgrind-stacksize vgdb vgdb-error vgdb-poll vgdb-prefix vgdb-shadow-registers vgdb-stop-at workaround-gcc296-bugs xml xml-fd xml-user-comment xtree-leak xtree-memory zero-before';

/** A verb of perf that measures the command behind its options. */
const measuring = (grammar: Grammar): Behaviour => ({
  operands: 'none',
  launches: {},
  grammar: { ...grammar, stopAtOperand: true },
});

const DEBUGGER: Grammar = {
  open: true,
  style: 'single-dash',
  stopAtOperand: true,
  flags: 'batch q quiet nx args',
  values: 'p pid',
  executes: 'ex eval-command iex o k',
  loads: 'x command ix init-command s S',
};

/** Programs that look into others. Most run what they look at, or commands of their own. */
export const DEBUGGING: readonly ProgramRow[] = [
  ...programs('gdb', 'medium', 'unknown', {
    grammar: {
      source: 'gdb 13.1',
      open: true,
      style: 'single-dash',
      flags:
        'args readnow readnever write nh nx n fullname f w nw tui q quiet silent batch batch-silent return-child-result configuration help h version v',
      values: 'p pid b l i interpreter t tty',
      reads: 'c core e exec d directory se s symbols cd',
      executes: 'ex eval-command iex init-eval-command eiex early-init-eval-command',
      loads: 'x command ix init-command eix early-init-command D data-directory',
    },
    runs: runsOfGdb,
  }),
  ...programs('lldb', 'medium', 'unknown', {
    grammar: {
      source: 'lldb 14.0.6',
      open: true,
      style: 'single-dash',
      stopAtOperand: true,
      flags:
        'wait-for w batch b local-lldbinit no-lldbinit x source-quietly Q capture debug d editor e help h no-use-colors X reproducer-generate-on-exit version v r print-script-interpreter-info python-path P',
      values: 'attach-name n attach-pid p arch a repl-language R script-language l',
      optionals: 'repl',
      reads: 'core c file f',
      writes: 'capture-path',
      executes: 'one-line o one-line-before-file O one-line-on-crash k',
      loads: 'source s source-before-file S source-on-crash K',
    },
  }),
  ...programs('gcore', 'medium', 'unknown', {
    grammar: { source: 'gdb 13.1', open: true, flags: 'a', writes: 'o' },
    operands: 'none',
  }),
  ...programs('cgdb rr pdb bpftrace bpftool jdb', 'medium', 'unknown', {
    grammar: DEBUGGER,
  }),
  ...programs('heaptrack uftrace systemtap stap sysdig ftrace flamegraph py-spy samply', 'medium', 'unknown'),
  ...programs('strace', 'medium', 'unknown', {
    operands: 'none',
    launches: { inert: 'p attach' },
    grammar: {
      source: 'strace 6.1',
      stopAtOperand: true,
      flags:
        'A c C d f F h i k n q r t T v V w x y Y z Z D debug failed-only failing-only follow-forks help instruction-pointer no-abbrev output-append-mode output-separately pidns-translation seccomp-bpf stack-traces successful-only summary summary-only summary-wall-clock syscall-number version',
      values:
        'a b e E I O p P s S u U X abbrev attach columns const-print-style decode-pids detach-on env fault inject interruptible kvm raw read signals status string-limit summary-columns summary-sort-by summary-syscall-overhead trace trace-path user verbose write',
      optionals:
        'absolute-timestamps timestamps daemonize daemonised daemonized decode-fds secontext quiet silence silent relative-timestamps strings-in-hex syscall-times tips',
      writes: 'o output',
    },
  }),
  ...programs('ltrace', 'medium', 'unknown', {
    operands: 'none',
    launches: {},
    grammar: {
      source: 'ltrace 0.7.3',
      stopAtOperand: true,
      flags: 'b c C f h i L r S t T V no-signals demangle help version',
      values: 'a A D e l n p s u w x align debug indent where library',
      loads: 'F',
      writes: 'o output',
    },
  }),
  ...programs('valgrind', 'medium', 'unknown', {
    operands: 'none',
    launches: {},
    grammar: {
      source: 'valgrind 3.19.0',
      stopAtOperand: true,
      flags: 'v q d h s verbose quiet version help help-debug help-dyn-options',
      optionals: VALGRIND,
      networking: 'log-socket? xml-socket? debuginfo-server?',
      producesAttached:
        'log-file xml-file xtree-leak-file xtree-memory-file callgrind-out-file cachegrind-out-file massif-out-file bb-out-file pc-out-file',
    },
  }),
  ...programs('perf', 'medium', 'unknown', {
    runs: runsOfPerf,
    verbs: {
      stat: measuring({
        flags: 'a d v g A n B S i detailed all-cpus summary',
        values: 'e p t C r x G D I F event repeat',
        writes: 'o output',
      }),
      record: measuring({
        flags: 'a A g R v q d T P n s all-cpus',
        values: 'e p t r c F m C G u j k b D event freq count call-graph',
        writes: 'o output',
      }),
    },
  }),
  ...programs('hyperfine', 'medium', 'unknown', {
    operands: 'none',
    runs: runsOfHyperfine,
    grammar: {
      source: 'hyperfine 1.15.0',
      flags: 'N i h V ignore-failure show-output help version',
      values:
        'w m M r p c s n u warmup min-runs max-runs runs setup prepare conclude cleanup command-name time-unit style',
      writes: 'export-json export-csv export-markdown',
    },
  }),
  ...programs('tmux screen', 'medium', 'unknown', { operands: 'none', runs: runsOfMultiplexer }),
  ...programs('byobu zellij dtach abduco reptyr', 'medium', 'unknown', { operands: 'none' }),
  ...programs('dmesg journalctl last lastlog', 'medium', 'local', { operands: 'none' }),
  ...programs(
    'xdg-open open start xclip xsel pbcopy pbpaste wl-copy wl-paste notify-send zenity dialog whiptail say code cursor',
    'medium',
    'unknown',
  ),
  // Agents that would start agents.
  ...programs('claude codex gemini aider opencode goose cline ollama llm', 'high', 'network', {
    operands: 'none',
  }),
];
