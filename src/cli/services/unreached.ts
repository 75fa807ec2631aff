import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { orElse } from '../../base/or-else.ts';
import { readableWord } from '../../base/shell-quote.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { loadAddon } from '../../confine/native/load.ts';
import { inheritedDifference, peerProcess } from '../../serve/index.ts';
import type { RunArguments } from '../run/options.ts';
import { currentDirectory } from '../shared/caller.ts';
import { sharedWords } from '../shared/options.ts';
import { printError } from '../shared/print.ts';
import { withinRepository } from './places.ts';
import { isRunning, readRecords, type ServiceRecord } from './records.ts';

/** Characters of options in a message. */
const LONGEST_OPTIONS = 300;

/**
 * Says why a command that no supervisor has taken cannot reach services that run in its workspace, or in one around it. False: there
 * are none.
 */
export function sayUnreached({ sandbox, tty, dryRun }: RunArguments): boolean {
  if (dryRun === true) return false;
  const named = resolve(currentDirectory(), String(sandbox.workspace ?? '.'));
  const workspace = orElse(() => realpathSync.native(named), named);
  const all = readRecords().filter(isRunning);
  const places = all.length === 0 ? [] : withinRepository(workspace);
  const place = places.find((at) => all.some((one) => one.workspace === at));
  if (place === undefined) return false;
  const running = all.filter((one) => one.workspace === place);
  const names = running.map(({ name }) => name).join(', ');
  if (place !== workspace) {
    const where = readableWord(visibleLine(place, 4096));
    printError(
      `this command does not reach the services of ${where} (${names}) at localhost: its workspace is a directory beneath. To reach them: --workspace ${where}`,
    );
    return true;
  }
  const reasons = [
    ...new Set(
      tty ? ['it has a terminal of its own (-t)'] : running.map((one) => differenceFrom(one, sandbox)),
    ),
  ];
  printError(
    `this command does not reach the services of this workspace (${names}) at localhost: ${reasons.join('; ')}`,
  );
  return true;
}

/** What a command and a service of its workspace do not have in common. */
function differenceFrom({ name, pid, options }: ServiceRecord, own: RunArguments['sandbox']): string {
  const [theirs, ours] = [sharedWords(options), sharedWords(own)];
  const missing = [...theirs].flatMap(([flag, words]) => (ours.get(flag) === words ? [] : [words]));
  const more = [...ours].flatMap(([flag, words]) => (theirs.get(flag) === words ? [] : [words]));
  const shown = (words: readonly string[]) => visibleLine(words.join(' '), LONGEST_OPTIONS);
  if (missing.length > 0)
    return `${name} has ${shown(missing)}${more.length > 0 ? `, this command ${shown(more)}` : ''}; both need the same`;
  if (more.length > 0) return `${name} was started without ${shown(more)}; both need the same`;
  const line = unlikeLines(pid);
  if (line !== undefined) return `${name} was started by a process with ${line}`;
  return `its policy is not what it was when ${name} was started (sandbox-run stop ${name}, then up again), its command asks its user on the terminal, or HOME differs`;
}

/** The first thing that commands inherit here and not from a supervisor: `"nice 0", and this one has "nice 3"`. */
function unlikeLines(supervisor: number): string | undefined {
  const looks = peerProcess(supervisor);
  const lines = looks && inheritedDifference(supervisor, looks, loadAddon());
  if (lines === undefined) return undefined;
  const [there, here] = lines.map((line) => `"${visibleLine(line.replace(/\s+/g, ' '), LONGEST_OPTIONS)}"`);
  return `${there}, and this one has ${here}`;
}
