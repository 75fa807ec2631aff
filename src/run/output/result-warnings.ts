import { relative } from 'node:path';
import type { ExecutionResult } from '../../model/execution-result.ts';
import type { LeftBehind } from '../../model/left-behind.ts';
import type { Connection } from '../../model/network.ts';
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
    ...refusedOf(result).slice(0, NAMED).map(describeRefused),
    ...moreRefused(result),
  ];
}

function refusedOf({ connections = [] }: ExecutionResult): readonly Connection[] {
  return connections.filter(({ verdict }) => verdict === 'refused');
}

function moreRefused(result: ExecutionResult): readonly string[] {
  const more = refusedOf(result).length - NAMED;
  return more > 0 ? [`${more} more connections were refused; the result with --json has them all`] : [];
}

/** What a command wanted to reach, in words for a person: who, where, why not, and what would let it. */
function describeRefused({ program, host, port, protocol, rule, entry, address }: Connection): string {
  const where = visibleLine(port === undefined ? host : `${host}:${port}`, QUOTED_CHARACTERS);
  const who = program === undefined ? 'the command' : visibleLine(program, QUOTED_CHARACTERS);
  const what =
    protocol === 'name'
      ? `asked for ${where}`
      : `wanted to reach ${where}${protocol === 'udp' ? ' (UDP)' : ''}`;
  const why =
    rule !== undefined && address !== undefined && protocol === 'name'
      ? `which leads to ${address}, an address that no entry allows`
      : rule === undefined
        ? 'which the policy does not list'
        : `which network.deny forbids (${rule})`;
  const next =
    entry === undefined
      ? ''
      : `; network.${protocol === 'unix' ? 'unix' : 'allow'} = [${JSON.stringify(entry)}] or --${protocol === 'unix' ? 'unix' : 'net'} ${entry} would allow it`;
  return `refused: ${who} ${what}, ${why}${next}`;
}

/** The same for the model that wrote the command; `undefined`: nothing was refused. Only a person can change the policy. */
export function refusedForModel(result: ExecutionResult): string | undefined {
  const refused = refusedOf(result);
  if (refused.length === 0) return undefined;
  const places = new Set(refused.map(({ host, port }) => (port === undefined ? host : `${host}:${port}`)));
  const named = [...places].slice(0, NAMED).map((place) => visibleLine(place, QUOTED_CHARACTERS));
  const more = places.size > NAMED ? ` and ${places.size - NAMED} more` : '';
  return `Sandbox: these hosts or sockets are not among those that can be reached: ${named.join(', ')}${more}. To try again does not help; do it without them, or tell the user what they are needed for.`;
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
