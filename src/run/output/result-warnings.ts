import { relative } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { ApprovalAnswer, Connection, Denial, ExecutionResult, LeftBehind } from '../../model/index.ts';
import { denialsForPerson } from './denial-texts.ts';
import { refusedConnection, refusedConnections } from './denials.ts';
import { notKeptForPerson } from './not-kept.ts';

/** How many of a kind are named. */
const NAMED = 5;
const QUOTED_CHARACTERS = 200;
const KEPT = '; sandbox-run kept list shows it, sandbox-run kept restore ID puts it back';

/** What a person should know about an ended command, one sentence each: its warnings, what it left behind, and what it did not reach. */
export function warningsOf(result: ExecutionResult): readonly string[] {
  const refused = refusedConnections(result.connections).map(refusedConnection);
  const remedyFor = ({ key, value }: NonNullable<Denial['allow']>) => `${key} = [${JSON.stringify(value)}]`;
  const told = denialsForPerson(refused, { cwd: result.cwd, remedyFor });
  return [
    ...warningsBesideDenials(result),
    ...(told === undefined ? [] : [[told.what, ...listOf(told.remedy)].join('; ')]),
  ];
}

/** Warnings without denials, which the command line reports in its own words. */
export function warningsBesideDenials(result: ExecutionResult): readonly string[] {
  return [
    ...result.warnings,
    ...warningsOfLeftBehind(result.leftBehind, result.cwd),
    ...listOf(notKeptForPerson(result)),
    ...unknownNames(result).map((name) => `${name} is listed, and does not exist outside the sandbox either`),
  ];
}

/** Names that the policy lists, and that lead nowhere. */
const unknownNames = ({ connections = [] }: ExecutionResult): readonly string[] =>
  connections
    .filter(({ verdict, protocol }) => verdict === 'allowed' && protocol === 'name')
    .slice(0, NAMED)
    .map(({ host }) => visibleLine(host, QUOTED_CHARACTERS));

const listOf = (text: string | undefined) => (text === undefined || text === '' ? [] : [text]);

/** Warnings about what a command left behind. Paths are shown relative to `cwd`. */
export function warningsOfLeftBehind(leftBehind: readonly LeftBehind[], cwd: string): readonly string[] {
  const { shut, restored, copied, told } = byDeed(leftBehind);
  const line = (what: string, some: readonly LeftBehind[], next: string) =>
    some.length === 0 ? [] : [`${what}: ${listed(some, cwd)}${next}`];
  return [
    ...line(
      'set aside, because another program would run it later',
      shut,
      shut.some(({ kept }) => kept !== undefined) ? KEPT : '',
    ),
    ...line('in the sandbox only', copied, ''),
    ...line('put back, because commands may not change it', restored, ''),
    ...line('look at this before you use it', told, ''),
  ];
}

/** What came of asking, for a model, behind the place. */
function answerForModel(approval: ApprovalAnswer | undefined): string {
  if (approval === undefined || approval.approved || approval.reason === 'nobody') return '';
  return {
    denied: ' (the user was asked and refused)',
    expired: ' (the user was asked, and there was no answer)',
    failed: '',
  }[approval.reason];
}

/** Refused connections, for the model that wrote the command; `undefined`: none was refused. Only a person can change the policy. */
export function refusedForModel(result: ExecutionResult): string | undefined {
  const refused = refusedConnections(result.connections);
  const unnamed = placesOf(refused.filter(({ flaw }) => flaw !== undefined));
  const unlisted = placesOf(refused.filter(({ flaw }) => flaw === undefined));
  const unknown = unknownNames(result);
  const sentences = [
    ...(unknown.length === 0
      ? []
      : [`Sandbox: no such host exists, outside of the sandbox either: ${unknown.join(', ')}.`]),
    ...(unlisted === undefined
      ? []
      : [
          `Sandbox: these hosts or sockets are not among those that can be reached: ${unlisted}. To try again does not help; do it without them, or tell the user what they are needed for.`,
        ]),
    ...(unnamed === undefined
      ? []
      : [
          `Sandbox: what was sent to ${unnamed} did not say which host it is for, and was stopped: a connection there must be TLS with a server name, or plain HTTP/1 with a Host header at port 80.`,
        ]),
  ];
  return sentences.length === 0 ? undefined : sentences.join(' ');
}

/** Where connections wanted to go, those by whose own words that is known by these; `undefined`: there are none. */
function placesOf(refused: readonly Connection[]): string | undefined {
  if (refused.length === 0) return undefined;
  const places = new Set(
    refused.map(({ host, port, askedFor, flaw, approval }) => {
      const name = flaw === undefined ? (askedFor ?? host) : host;
      const place = visibleLine(port === undefined ? name : `${name}:${port}`, QUOTED_CHARACTERS);
      return `${place}${answerForModel(approval)}`;
    }),
  );
  const named = [...places].slice(0, NAMED);
  return `${named.join(', ')}${places.size > NAMED ? ` and ${places.size - NAMED} more` : ''}`;
}

/** What a command left behind, for the model that wrote it; `undefined`: nothing. */
export function leftBehindForModel(result: ExecutionResult): string | undefined {
  const { shut, restored, copied, told } = byDeed(result.leftBehind);
  const undone = [...shut, ...restored];
  const sentences = [
    ...(undone.length === 0
      ? []
      : [
          `Not left in place, because programs outside the sandbox would run it: ${listed(undone, result.cwd)}. Only the user can put it back; tell the user if the task needs it.`,
        ]),
    ...(copied.length === 0 ? [] : [`Only commands in the sandbox have ${listed(copied, result.cwd)}.`]),
    ...(told.length === 0 ? [] : [`The user is told to look at ${listed(told, result.cwd)}.`]),
  ];
  return sentences.length === 0 ? undefined : `Sandbox: ${sentences.join(' ')}`;
}

function byDeed(all: readonly LeftBehind[]) {
  const of = (done: LeftBehind['done']) => all.filter((one) => one.done === done);
  return { shut: of('shut'), restored: of('restored'), copied: of('copied'), told: of('told') };
}

function listed(some: readonly LeftBehind[], cwd: string): string {
  const named = some.slice(0, NAMED).map((one) => visibleLine(nameOf(one, cwd), QUOTED_CHARACTERS));
  return `${named.join('; ')}${some.length > NAMED ? `; and ${some.length - NAMED} more` : ''}`;
}

function nameOf({ path, settings, reason, madeBy }: LeftBehind, cwd: string): string {
  const where = isBeneath(path, cwd) ? relative(cwd, path) || '.' : path;
  return `${settings === undefined ? '' : `${settings.join(', ')} in `}${where} (${reason}${madeBy === undefined ? '' : `; made by ${madeBy}`})`;
}
