import { type Behaviour, type Call, type ProgramRow, programs, type Runs } from '../behaviour.ts';
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

/** A verb of perf that measures the command behind its options. */
const measuring = (grammar: string): Behaviour => ({
  operands: 'none',
  launches: {},
  grammar,
});

/** Programs that look into others. Most run what they look at, or commands of their own. */
export const DEBUGGING: readonly ProgramRow[] = [
  ...programs('gdb', 'medium', 'unknown', () => ({ grammar: 'gdb', runs: runsOfGdb })),
  ...programs('lldb', 'medium', 'unknown', () => ({ grammar: 'lldb' })),
  ...programs('gcore', 'medium', 'unknown', () => ({ grammar: 'gcore', operands: 'none' })),
  ...programs('cgdb rr pdb bpftrace bpftool jdb', 'medium', 'unknown', () => ({ grammar: 'cgdb' })),
  ...programs('heaptrack uftrace systemtap stap sysdig ftrace flamegraph py-spy samply', 'medium', 'unknown'),
  ...programs('strace', 'medium', 'unknown', () => ({
    operands: 'none',
    launches: { inert: 'p attach' },
    grammar: 'strace',
  })),
  ...programs('ltrace', 'medium', 'unknown', () => ({ operands: 'none', launches: {}, grammar: 'ltrace' })),
  ...programs('valgrind', 'medium', 'unknown', () => ({
    operands: 'none',
    launches: {},
    grammar: 'valgrind',
  })),
  ...programs('perf', 'medium', 'unknown', () => ({
    runs: runsOfPerf,
    verbs: {
      stat: measuring('perf stat'),
      record: measuring('perf record'),
    },
  })),
  ...programs('hyperfine', 'medium', 'unknown', () => ({
    operands: 'none',
    runs: runsOfHyperfine,
    grammar: 'hyperfine',
  })),
  ...programs('tmux screen', 'medium', 'unknown', () => ({ operands: 'none', runs: runsOfMultiplexer })),
  ...programs('byobu zellij dtach abduco reptyr', 'medium', 'unknown', () => ({ operands: 'none' })),
  ...programs('dmesg journalctl last lastlog', 'medium', 'local', () => ({ operands: 'none' })),
  ...programs(
    'xdg-open open start xclip xsel pbcopy pbpaste wl-copy wl-paste notify-send zenity dialog whiptail say code cursor',
    'medium',
    'unknown',
  ),
  // Agents that would start agents.
  ...programs('claude codex gemini aider opencode goose cline ollama llm', 'high', 'network', () => ({
    operands: 'none',
  })),
];
