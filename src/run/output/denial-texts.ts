import { isAbsolute, relative } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { assertNever } from '../../base/assert-never.ts';
import { readableWord } from '../../base/shell-quote.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { Denial, ExecutionResult } from '../../model/index.ts';
import { homeDirectory } from '../../workspace/index.ts';
import { INSTALL_HERE, isInstalledThere } from '../proposals.ts';
import { isNameServer, refusedConnection, refusedConnections, SOCKETS, WHY } from './denials.ts';

/** The most characters of a line for a person; the first thing is named however long its name is. */
const LINE = 106;
/** How many are named to a model. */
const NAMED = 4;
const QUOTED_CHARACTERS = 200;

/**
 * The denials of a result that are reported: refused connections and files that git left as they were always, all others only if the
 * command failed.
 */
export function toldDenials({
  ok,
  denials = [],
  connections,
}: Pick<ExecutionResult, 'ok' | 'denials' | 'connections'>): readonly Denial[] {
  const refused = refusedConnections(connections).map(refusedConnection);
  const others = untoldDenials({ denials, connections });
  return [...(ok ? others.filter(({ why }) => why === WHY.restOfTree) : others), ...refused];
}

/** Denials that nothing else reports: refused connections of a listed network, and limits, are reported separately. */
function untoldDenials({
  denials = [],
  connections,
}: Pick<ExecutionResult, 'denials' | 'connections'>): readonly Denial[] {
  return denials.filter(
    (one) =>
      one.operation !== 'limit' &&
      (one.operation !== 'connect' || connections === undefined) &&
      !asksAboutMachine(one),
  );
}

/** Runtimes look there for memory and processors as they start, and go on without: no command fails for it. */
const asksAboutMachine = ({ operation, object }: Denial) =>
  operation === 'read' && /^\/(?:sys|proc)\//.test(object);

/** How a line for a person names things. */
interface ForPerson {
  /** What paths are shown relative to. */
  readonly cwd: string;
  /** How a person allows something: an option, or a policy line; `undefined`: neither can. */
  readonly remedyFor: (allow: NonNullable<Denial['allow']>) => string | undefined;
  /** What the sentence begins with. */
  readonly begin?: string;
  /** Propose an option for denied reads even where other operations were denied. */
  readonly isNeeded?: boolean;
}

/** What was denied, for a person. */
interface DenialsForPerson {
  /** What failed, and why. */
  readonly what: string;
  /** How to allow it, or why no option is proposed; `undefined`: neither is known. */
  readonly remedy: string | undefined;
}

/** What was denied, for a person, in a line or two. `undefined`: nothing. */
export function denialsForPerson(
  denials: readonly Denial[],
  { cwd, remedyFor, begin = '', isNeeded = false }: ForPerson,
): DenialsForPerson | undefined {
  if (denials.length === 0) return undefined;
  const remedy = remedyOf(isNeeded ? denials : decisive(denials), remedyFor, cwd);
  return {
    what: `${begin}${whatFailed(denials, cwd)}`,
    remedy,
  };
}

/** Programs look for many files that they can do without: reads count only where nothing else was denied. */
function decisive(denials: readonly Denial[]): readonly Denial[] {
  const others = denials.filter(({ operation }) => operation !== 'read');
  return others.length > 0 ? others : denials;
}

/** "cat could not read a, b and 3 more: the policy does not list it", with as many names as a line holds. */
function whatFailed(denials: readonly Denial[], cwd: string): string {
  const groups = new Map<string, Denial[]>();
  for (const one of denials) {
    const key = [one.program, deedOf(one), one.why].join('\n');
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  let line = '';
  let untold = denials.length;
  for (const group of groups.values()) {
    const sentence = sentenceOf(group, cwd);
    const joined = line === '' ? sentence : `${line}; ${sentence}`;
    if (line !== '' && joined.length > LINE) break;
    line = joined;
    untold -= group.length;
  }
  return untold === 0 ? line : `${line}; and ${untold} more`;
}

function sentenceOf(group: readonly Denial[], cwd: string): string {
  const [first] = group;
  if (first === undefined) return '';
  const who = first.program === undefined ? 'the command' : visibleLine(first.program, QUOTED_CHARACTERS);
  const names = [...new Set(group.map((one) => nameFor(one, cwd)))];
  const withNames = (count: number) => {
    const more = names.length - count;
    const listed = `${names.slice(0, count).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
    return `${who} could not ${[deedOf(first), listed].filter(Boolean).join(' ')}: ${first.why}`;
  };
  const counts = names.map((_, index) => names.length - index);
  return withNames(counts.find((count) => withNames(count).length <= LINE) ?? 1);
}

function deedOf({ operation, object, control }: Denial): string {
  switch (operation) {
    case 'create':
      return 'make';
    case 'execute':
      return 'run';
    case 'connect':
      if (isOfSocket(object)) return 'open';
      return control === 'network' && isNameServer(object) ? 'look up a host' : 'reach';
    case 'read':
    case 'write':
    case 'signal':
      return operation;
    case 'limit':
      return 'use more of';
    default:
      return assertNever(operation);
  }
}

function nameFor(one: Denial, cwd: string): string {
  if (deedOf(one) === 'look up a host') return '';
  return visibleLine(shortPath(one.object, cwd), QUOTED_CHARACTERS);
}

/** What lets it through, as much as a line holds; else why that is not proposed. */
function remedyOf(
  denials: readonly Denial[],
  remedyFor: ForPerson['remedyFor'],
  cwd: string,
): string | undefined {
  const absent: string[] = [];
  const remedies: string[] = [];
  for (const one of denials) {
    const remedy = one.allow === undefined ? hostToName(one) : remedyFor(one.allow);
    if (remedy === undefined || remedies.includes(remedy)) continue;
    if (remedies.length > 0 && [...remedies, remedy].join(' ').length > LINE) break;
    remedies.push(remedy);
    const kind = one.allow?.absent;
    if (kind !== undefined)
      absent.push(
        `${kind === 'directory' ? 'the directory ' : ''}${shortPath(String(one.allow?.value), cwd)}`,
      );
  }
  if (remedies.length > 0) {
    const first = absent.length === 0 ? '' : `create ${absent.join(', ')} first, then `;
    return visibleLine(`to allow: ${first}${remedies.join(' ')}`, 1_000);
  }
  const [why] = denials.flatMap(({ notProposed = [] }) => notProposed);
  return why === undefined ? undefined : `no option is proposed: ${why}`;
}

/** The option to propose where a socket was refused and the address is unknown: `--net HOST`, or `--net @own` for a server of the command itself. */
function hostToName({ operation, object, why }: Denial): string | undefined {
  if (operation !== 'connect' || why !== WHY.networkOff) return undefined;
  return object === SOCKETS.inet ? `${ANY_HOST}; --net @own for servers of its own` : ANY_HOST;
}
const ANY_HOST = '--net HOST, with the host that it is to reach';

/** A path as a person would write it, in the shortest way; anything else stays as it is. */
export function shortPath(path: string, cwd: string): string {
  if (!isAbsolute(path)) return path;
  const home = homeDirectory();
  const inHome = isBeneath(path, home) ? [`~${path.slice(home.length)}`] : [];
  return shortest([relative(cwd, path), ...inHome, path]);
}

/** A short path as a word of a command line: with `~` only if nothing has to be quoted, so that a shell expands it. */
export function shortWord(path: string, cwd: string): string {
  const short = shortPath(path, cwd);
  const isPlain = /^~[\w@%+=:,./-]*$/.test(short);
  if (isPlain) return short;
  return readableWord(short.startsWith('~') ? path : short);
}

const shortest = (ways: readonly string[]) =>
  ways
    .filter((way) => way !== '' && !way.startsWith('-'))
    .reduce((best, way) => (way.length < best.length ? way : best), ways.at(-1) ?? '');

/** What was denied, for the model that wrote the command, without what would allow it: only a person can change the policy. `undefined`: nothing. */
export function denialsForModel(result: ExecutionResult): string | undefined {
  // For a command that exited, another message already says that the network is off.
  const denials = untoldDenials(result).filter(
    ({ why }) => result.status !== 'exited' || why !== WHY.networkOff,
  );
  // What its text was refused for is said with the rule.
  if (denials.length === 0 || result.status === 'denied') return undefined;
  const what = listDenied(decisive(denials).map(describeDenial));
  const home = homeDirectory();
  const installs = denials.some(
    ({ operation, object }) =>
      (operation === 'create' || operation === 'write') && isInstalledThere(object, home),
  );
  const instead = installs ? INSTALL_HERE : 'do it without';
  return `Sandbox: denied to the command: ${what}. To try again does not help; ${instead}, or tell the user what it is needed for.`;
}

/** What was denied, in a few words. */
export function describeDenial({ operation, object, program }: Denial): string {
  const who = program === undefined ? '' : ` (${visibleLine(program, QUOTED_CHARACTERS)})`;
  const deed = isOfSocket(object) ? 'open' : operation;
  return `${deed} ${visibleLine(object, QUOTED_CHARACTERS)}${who}`;
}

/** Whether a denial is about making a socket, so that it has no address. */
const isOfSocket = (object: string) => object === SOCKETS.inet || object === SOCKETS.unix;

/** Several texts in one line, each once, as many as are read. */
function listDenied(texts: readonly string[]): string {
  const distinct = [...new Set(texts)];
  const more = distinct.length - NAMED;
  return `${distinct.slice(0, NAMED).join('; ')}${more > 0 ? `; and ${more} more` : ''}`;
}
