import { createInterface } from 'node:readline';
import { deferred } from '../../base/deferred.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { isIncomplete } from '../../gate/index.ts';
import type { TurnResult } from '../../model/index.ts';
import { endedBy, exitStatus, type Sandbox } from '../../run/index.ts';
import { printRemarks, printRestart } from '../run/pass-through.ts';
import { currentDirectory } from '../shared/caller.ts';
import { printBytes, printNote } from '../shared/print.ts';
import { onSignals } from '../shared/signals.ts';
import type { Wanted } from './arguments.ts';

const HISTORY_LINES = 1000;

/**
 * Lines of standard input, each judged and run in one confined shell that lives on: what a person types on a terminal, with
 * editing and history, or what a program writes to a pipe. Commands have no standard input of their own and no terminal.
 */
export async function runInteractively(sandbox: Sandbox, wanted: Wanted, quiet: boolean): Promise<number> {
  if (wanted.options.length > 0 || wanted.args.length > 0)
    throw new SandboxError(
      'usage.invalid',
      'an interactive sandbox-sh takes no options of set and no arguments; type them: set -e, set -- ARG',
    );
  const shell = await sandbox.session({ cwd: currentDirectory() });
  const onTerminal = process.stdin.isTTY === true;
  const lines: string[] = [];
  let isOver = false;
  let wake = deferred<void>();
  let endedBySignal: NodeJS.Signals | undefined;
  let knowsBoundaries = false;
  let typed = '';
  let status = 0;

  const editor = createInterface({
    input: process.stdin,
    // As bash: what is shown of typing is not output.
    ...(onTerminal ? { output: process.stderr } : {}),
    terminal: onTerminal,
    historySize: HISTORY_LINES,
    removeHistoryDuplicates: true,
  });
  editor.on('line', (line) => {
    lines.push(line);
    wake.resolve();
  });
  editor.on('close', () => {
    isOver = true;
    wake.resolve();
  });
  const prompt = () => {
    if (!onTerminal) return;
    editor.setPrompt(typed === '' ? 'sandbox$ ' : '> ');
    editor.prompt();
  };
  editor.on('SIGINT', () => {
    typed = '';
    lines.length = 0;
    status = endedBy('SIGINT');
    editor.write(null, { ctrl: true, name: 'e' });
    editor.write(null, { ctrl: true, name: 'u' });
    printNote('^C\n');
    prompt();
  });
  // While a command runs the terminal is as commands know it, and Ctrl-C is a signal.
  const rest = (isResting: boolean) => {
    if (!onTerminal) return;
    if (isResting) editor.pause();
    else editor.resume();
    process.stdin.setRawMode(!isResting);
  };
  const interrupt = () => void shell.interrupt();
  const end = (signal: NodeJS.Signals) => {
    endedBySignal = signal;
    shell.interrupt();
    editor.close();
  };
  using _ = onSignals(['SIGINT'], interrupt);
  using __ = onSignals(['SIGTERM', 'SIGHUP'], end);
  try {
    prompt();
    for (;;) {
      const line = lines.shift();
      if (line === undefined && !isOver) {
        await wake.promise;
        wake = deferred<void>();
        continue;
      }
      if (endedBySignal !== undefined) return endedBy(endedBySignal);
      if (line === undefined && typed === '') return status;
      typed = line === undefined ? typed : `${typed}${line}\n`;
      if (line === undefined || !isIncomplete(typed)) {
        const text = typed.trimEnd();
        typed = '';
        if (text.trim() !== '') {
          rest(true);
          const result = await shell.run(text, {
            onOutput: ({ stream, bytes }) => void printBytes(stream === 'stdout' ? 1 : 2, bytes),
          });
          rest(false);
          status = shown(result, text, sandbox, { quiet, knowsBoundaries });
          knowsBoundaries ||= result.error !== undefined;
          // `exit`, or something to the same effect.
          if (result.restarted && result.status === 'exited') return status;
        }
      }
      if (lines.length === 0 && !isOver) prompt();
    }
  } finally {
    editor.close();
    process.stdin.destroy();
  }
}

/** Says what is to be said of a command that has ended, and gives its exit status. */
function shown(
  result: TurnResult,
  said: string,
  { plan }: Sandbox,
  how: { readonly quiet: boolean; readonly knowsBoundaries: boolean },
): number {
  printRemarks(result, { said, plan, ...how });
  if (result.restarted && result.status !== 'exited') printRestart();
  return result.status === 'canceled' ? endedBy('SIGINT') : exitStatus(result);
}
