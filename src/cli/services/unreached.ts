import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { orElse } from '../../base/or-else.ts';
import type { RunArguments } from '../run/options.ts';
import { currentDirectory } from '../shared/caller.ts';
import { printError } from '../shared/print.ts';
import { isRunning, readRecords } from './records.ts';

/** Says that services run in the workspace of a command that no supervisor has taken, which cannot reach them. */
export function sayUnreached({ sandbox, tty, dryRun }: RunArguments): void {
  const named = resolve(currentDirectory(), String(sandbox.workspace ?? '.'));
  const workspace = orElse(() => realpathSync.native(named), named);
  const running = readRecords().filter((one) => one.workspace === workspace && isRunning(one));
  if (running.length === 0 || dryRun === true) return;
  const names = running.map(({ name }) => name).join(', ');
  const why = tty
    ? 'it has a terminal of its own (-t)'
    : 'its policy, its options, a question on the terminal, its limits or its control group differ from theirs';
  printError(`this command does not reach the services of this workspace (${names}) at localhost: ${why}`);
}
