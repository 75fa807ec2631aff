import { type ProgramRow, programs } from '../behaviour.ts';

/** Programs that look into others. Most run what they look at, or commands of their own. */
export const DEBUGGING: readonly ProgramRow[] = [
  ...programs('gdb lldb cgdb rr pdb bpftrace bpftool gcore jdb', 'medium', 'unknown', {
    grammar: {
      open: true,
      style: 'single-dash',
      stopAtOperand: true,
      flags: 'batch q quiet nx args',
      values: 'p pid',
      executes: 'ex eval-command iex o k',
      loads: 'x command ix init-command s S',
    },
    operands: 'guess',
  }),
  ...programs(
    'strace ltrace perf valgrind heaptrack hyperfine uftrace systemtap stap sysdig ftrace flamegraph py-spy samply',
    'medium',
    'unknown',
    {
      operands: 'guess',
    },
  ),
  ...programs('tmux screen byobu zellij dtach abduco reptyr', 'medium', 'unknown', { operands: 'none' }),
  ...programs('dmesg journalctl last lastlog', 'medium', 'local', { operands: 'none' }),
  ...programs(
    'xdg-open open start xclip xsel pbcopy pbpaste wl-copy wl-paste notify-send zenity dialog whiptail say code cursor',
    'medium',
    'unknown',
    {
      operands: 'guess',
    },
  ),
  // Agents that would start agents.
  ...programs('claude codex gemini aider opencode goose cline ollama llm', 'high', 'network', {
    operands: 'none',
  }),
];
