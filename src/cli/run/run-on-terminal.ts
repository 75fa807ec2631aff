import { finished } from 'node:stream/promises';
import type { Command } from '../../model/command.ts';
import type { ExecutionResult } from '../../model/execution-result.ts';
import type { SpawnOptions, TerminalSize } from '../../model/options.ts';
import type { NativeAddon } from '../../native/contract.ts';
import { loadAddon } from '../../native/load.ts';
import type { Sandbox } from '../../run/sandbox.ts';
import type { SignalForwarding } from '../shared/signals.ts';

const STDIN = 0;
/** Of a terminal that does not know its own, such as a serial line. */
const USUAL_SIZE: TerminalSize = { cols: 80, rows: 24 };

/** How a command on a terminal ended; `by`: a signal to this process ended it. */
interface EndedOnTerminal {
  readonly result: ExecutionResult;
  readonly by: NodeJS.Signals | undefined;
}

/**
 * Runs a command on a terminal of its own and connects it with that of this process, which is raw meanwhile: Ctrl-C and
 * Ctrl-Z are bytes like others, and mean something to the command's terminal only. What is asked before the launch is
 * asked before that.
 */
export async function runOnTerminal(
  sandbox: Sandbox,
  command: Command,
  options: SpawnOptions,
  signals: SignalForwarding,
): Promise<EndedOnTerminal> {
  const addon = loadAddon();
  const size = () => sizeOf(addon);
  let endedBy: NodeJS.Signals | undefined;
  const controller = new AbortController();
  const child = sandbox.spawn(command, { ...options, signal: controller.signal, pty: size() });
  const raw = () => addon.enterRawMode(STDIN);
  const resize = () => {
    const { cols, rows } = size();
    child.resize(cols, rows);
  };
  signals.to(child, {
    resize,
    suspend: () => addon.leaveRawMode(),
    resume: () => {
      raw();
      resize();
    },
    end: (signal) => {
      endedBy ??= signal;
      controller.abort();
    },
  });
  // However this process ends, the terminal is put back.
  const leave = () => addon.leaveRawMode();
  process.once('exit', leave);
  const hangUp = () => child.terminal.destroy();
  process.stdout.on('error', hangUp);
  const shown = finished(child.terminal, { writable: false }).catch(() => {});
  try {
    child.terminal.pipe(process.stdout, { end: false });
    if (await child.launched) {
      raw();
      process.stdin.pipe(child.terminal);
    }
    const result = await child.result;
    await shown;
    return { result, by: endedBy };
  } finally {
    process.stdin.unpipe(child.terminal);
    // An open terminal would keep this process.
    process.stdin.destroy();
    leave();
    process.off('exit', leave);
    process.stdout.off('error', hangUp);
  }
}

function sizeOf(addon: NativeAddon): TerminalSize {
  const [cols, rows] = addon.terminalSize(STDIN) ?? addon.terminalSize(1) ?? [];
  return cols === undefined || rows === undefined ? USUAL_SIZE : { cols, rows };
}
