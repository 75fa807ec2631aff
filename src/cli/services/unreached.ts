import { realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { orElse } from '../../base/or-else.ts';
import { readableWord } from '../../base/shell-quote.ts';
import { visibleLine } from '../../base/visible-text.ts';
import { loadAddon } from '../../confine/native/load.ts';
import { stateDirectory } from '../../run/index.ts';
import { inheritedDifference, peerProcess } from '../../serve/index.ts';
import type { RunArguments } from '../run/options.ts';
import { currentDirectory } from '../shared/caller.ts';
import { sharedWords } from '../shared/options.ts';
import { printError } from '../shared/print.ts';
import { isAnswering } from '../warm/start.ts';
import { upToRepositoryRoot } from './places.ts';
import { isRunning, readRecords, type ServiceRecord } from './records.ts';

/** Characters of options in a message. */
const LONGEST_OPTIONS = 300;

/**
 * For a command that no supervisor has accepted: says why it does not reach the services of its workspace, or of a parent directory in
 * the same repository. Returns false, and prints nothing, if there are no such services.
 */
export async function sayUnreached({ sandbox, tty, dryRun }: RunArguments): Promise<boolean> {
  if (dryRun === true) return false;
  const named = resolve(currentDirectory(), String(sandbox.workspace ?? '.'));
  const workspace = orElse(() => realpathSync.native(named), named);
  const all = readRecords().filter(isRunning);
  const places = all.length === 0 ? [] : upToRepositoryRoot(workspace);
  const place = places.find((at) => all.some((one) => one.workspace === at));
  if (place === undefined) return false;
  const running = all.filter((one) => one.workspace === place);
  const names = running.map(({ name }) => name).join(', ');
  if (place !== workspace) {
    const where = readableWord(visibleLine(place, 4096));
    printError(
      `this command does not reach the services of ${where} (${names}) at localhost: its workspace is a subdirectory. To reach them: --workspace ${where}`,
    );
    return true;
  }
  const reasons = [
    ...new Set(
      tty
        ? ['it has a terminal of its own (-t)']
        : await Promise.all(running.map((one) => differenceFrom(one, sandbox))),
    ),
  ];
  printError(
    `this command does not reach the services of this workspace (${names}) at localhost: ${reasons.join('; ')}`,
  );
  return true;
}

/** What keeps a command from a service of its workspace, in words: the options that differ, else an inherited limit or right. */
async function differenceFrom(
  { name, pid, server, options }: ServiceRecord,
  own: RunArguments['sandbox'],
): Promise<string> {
  const [theirs, ours] = [sharedWords(options), sharedWords(own)];
  const missing = [...theirs].flatMap(([flag, words]) => (ours.get(flag) === words ? [] : [words]));
  const more = [...ours].flatMap(([flag, words]) => (theirs.get(flag) === words ? [] : [words]));
  const shown = (words: readonly string[]) => visibleLine(words.join(' '), LONGEST_OPTIONS);
  if (missing.length > 0)
    return `${name} has ${shown(missing)}${more.length > 0 ? `, this command ${shown(more)}` : ''}; both need the same`;
  if (more.length > 0) return `${name} was started without ${shown(more)}; both need the same`;
  const difference = inheritedDifferenceInWords(pid);
  if (difference !== undefined) return `${name} was started by a process with ${difference}`;
  if (!(await isAnswering(join(stateDirectory(), server))))
    return `their supervisor (process ${pid}) does not answer: it is suspended or busy`;
  return `the policy has changed since ${name} was started (sandbox-run stop ${name}, then up again), the policy wants a question about this command on the terminal, or HOME differs`;
}

/** The first inherited limit or right that differs between a supervisor and this process: `"nice 0", and this one has "nice 3"`. */
function inheritedDifferenceInWords(supervisor: number): string | undefined {
  const looks = peerProcess(supervisor);
  const lines = looks && inheritedDifference(supervisor, looks, loadAddon());
  if (lines === undefined) return undefined;
  const [there, here] = lines.map((line) => `"${visibleLine(line.replace(/\s+/g, ' '), LONGEST_OPTIONS)}"`);
  return `${there}, and this one has ${here}`;
}
