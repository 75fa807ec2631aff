import { relative } from 'node:path';
import type { ApprovalAnswer } from '../../model/approval.ts';
import type { ExecutionResult } from '../../model/execution-result.ts';
import type { LeftBehind } from '../../model/left-behind.ts';
import type { Connection } from '../../model/network.ts';
import { NOT_LOOKED_INTO } from '../../model/words.ts';
import { isBeneath } from '../../util/absolute-path.ts';
import { hostAndPort } from '../../util/host-and-port.ts';
import { readableWord } from '../../util/shell-quote.ts';
import { visibleLine } from '../../util/visible-text.ts';
import { notKeptForPerson } from './not-kept.ts';

/** How many of a kind are named. */
const NAMED = 5;
const QUOTED_CHARACTERS = 200;
const KEPT = '; sandbox-run kept list shows it, sandbox-run kept restore ID puts it back';

/** What a person should know about an ended command, one sentence each: its warnings, and what it left behind. */
export function warningsOf(result: ExecutionResult): readonly string[] {
  return [
    ...result.warnings,
    ...warningsOfLeftBehind(result.leftBehind, result.cwd),
    ...listOf(notKeptForPerson(result)),
    ...refusedOf(result).slice(0, NAMED).map(describeRefused),
    ...moreRefused(result),
  ];
}

const listOf = (text: string | undefined) => (text === undefined ? [] : [text]);

/** The same about what was left behind alone. `cwd`: what paths are shown relative to. */
export function warningsOfLeftBehind(leftBehind: readonly LeftBehind[], cwd: string): readonly string[] {
  const { shut, restored, told } = byDeed(leftBehind);
  const line = (what: string, some: readonly LeftBehind[], next: string) =>
    some.length === 0 ? [] : [`${what}: ${listed(some, cwd)}${next}`];
  return [
    ...line(
      'set aside, because another program would run it later',
      shut,
      shut.some(({ kept }) => kept !== undefined) ? KEPT : '',
    ),
    ...line('put back, because commands may not change it', restored, ''),
    ...line('look at this before you use it', told, ''),
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
function describeRefused(connection: Connection): string {
  const { program, host, port, protocol, entry } = connection;
  const where = visibleLine(port === undefined ? host : hostAndPort(host, port), QUOTED_CHARACTERS);
  const who = program === undefined ? 'the command' : visibleLine(program, QUOTED_CHARACTERS);
  const what =
    protocol === 'name'
      ? `asked for ${where}`
      : `wanted to reach ${where}${protocol === 'udp' ? ' (UDP)' : ''}`;
  const [key, flag] = protocol === 'unix' ? ['network.unix', '--unix'] : ['network.allow', '--net'];
  const next =
    entry === undefined
      ? ''
      : `; ${key} = [${JSON.stringify(entry)}] or ${flag} ${readableWord(entry)} would allow it`;
  return `refused: ${who} ${what}, ${whyRefused(connection)}${next}`;
}

function whyRefused({ protocol, rule, address, askedFor, flaw, approval }: Connection): string {
  if (flaw !== undefined) return `and sent ${flaw} there, where a listed host must be named (network.verify)`;
  const asked =
    askedFor === undefined ? '' : `and asked for ${visibleLine(askedFor, QUOTED_CHARACTERS)} there, `;
  const leads = protocol === 'name' && rule !== undefined && address !== undefined;
  if (leads || (approval?.approved === true && askedFor === undefined))
    return address === undefined
      ? 'which does not exist'
      : `which leads to ${address}, an address that no entry allows`;
  if (rule === NOT_LOOKED_INTO)
    return 'which network.verify forbids: a name asked for by QUIC is not seen, and with TCP it is';
  if (rule !== undefined) return `${asked}which network.deny forbids (${rule})`;
  const answer = approval === undefined || approval.approved ? '' : `: ${answerOf(approval)}`;
  return `${asked}which the policy does not list${answer}`;
}

/** Why there is no approval, for a person. */
function answerOf({ reason, detail }: Extract<ApprovalAnswer, { approved: false }>): string {
  if (reason === 'failed')
    return `asking failed${detail === undefined ? '' : ` (${visibleLine(detail, QUOTED_CHARACTERS)})`}`;
  return {
    denied: 'the answer was no',
    expired: 'nobody answered in time',
    nobody: 'nobody is there to ask',
  }[reason];
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

/** The same for the model that wrote the command; `undefined`: nothing was refused. Only a person can change the policy. */
export function refusedForModel(result: ExecutionResult): string | undefined {
  const refused = refusedOf(result);
  const unnamed = placesOf(refused.filter(({ flaw }) => flaw !== undefined));
  const unlisted = placesOf(refused.filter(({ flaw }) => flaw === undefined));
  const sentences = [
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

function nameOf({ path, settings, reason, madeBy }: LeftBehind, cwd: string): string {
  const where = isBeneath(path, cwd) ? relative(cwd, path) || '.' : path;
  return `${settings === undefined ? '' : `${settings.join(', ')} in `}${where} (${reason}${madeBy === undefined ? '' : `; made by ${madeBy}`})`;
}
