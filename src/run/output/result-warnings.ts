import { relative } from 'node:path';
import type { ExecutionResult } from '../../model/execution-result.ts';
import type { LeftBehind } from '../../model/left-behind.ts';
import { isBeneath } from '../../util/absolute-path.ts';
import { visibleLine } from '../../util/visible-text.ts';

/** How many of a kind are named. */
const NAMED = 5;
const QUOTED_CHARACTERS = 200;
const KEPT = '; sandbox-run kept list shows it, sandbox-run kept restore ID puts it back';

/** What a person should know about an ended command, one sentence each: its warnings, and what it left behind. */
export function warningsOf(result: ExecutionResult): readonly string[] {
  const { shut, restored, told } = byDeed(result.leftBehind);
  const line = (what: string, some: readonly LeftBehind[], next: string) =>
    some.length === 0 ? [] : [`${what}: ${listed(some, result.cwd)}${next}`];
  return [
    ...result.warnings,
    ...line(
      'set aside, because another program would run it later',
      shut,
      shut.some(({ kept }) => kept !== undefined) ? KEPT : '',
    ),
    ...line('put back, because commands may not change it', restored, ''),
    ...line('look at this before you use it', told, ''),
  ];
}

/** The same for the model that wrote the command; `undefined`: there is nothing to say. */
export function leftBehindForModel(result: ExecutionResult): string | undefined {
  const { shut, restored, told } = byDeed(result.leftBehind);
  const undone = [...shut, ...restored];
  const sentences = [
    ...(undone.length === 0
      ? []
      : [
          `Not left in place, because programs outside the sandbox would run it: ${listed(undone, result.cwd)}. Only the user can put it back; tell the user if the task needs it.`,
        ]),
    ...(told.length === 0 ? [] : [`The user is told to look at ${listed(told, result.cwd)}.`]),
  ];
  return sentences.length === 0 ? undefined : `Sandbox: ${sentences.join(' ')}`;
}

function byDeed(all: readonly LeftBehind[]) {
  const of = (done: LeftBehind['done']) => all.filter((one) => one.done === done);
  return { shut: of('shut'), restored: of('restored'), told: of('told') };
}

function listed(some: readonly LeftBehind[], cwd: string): string {
  const named = some.slice(0, NAMED).map((one) => visibleLine(nameOf(one, cwd), QUOTED_CHARACTERS));
  return `${named.join('; ')}${some.length > NAMED ? `; and ${some.length - NAMED} more` : ''}`;
}

function nameOf({ path, settings, reason }: LeftBehind, cwd: string): string {
  const where = isBeneath(path, cwd) ? relative(cwd, path) || '.' : path;
  return `${settings === undefined ? '' : `${settings.join(', ')} in `}${where} (${reason})`;
}
