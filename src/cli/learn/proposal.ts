import { dirname } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { hostAndPort } from '../../base/host-and-port.ts';
import { visibleLine, visibleToml } from '../../base/visible-text.ts';
import type { Denial, ExecutionResult } from '../../model/index.ts';
import type { Entry } from '../../policy/index.ts';
import { type Places, projectsAround, whyNotProposed } from '../../run/index.ts';

/** Lists of a policy that learning adds to. */
const LEARNED_LISTS = ['filesystem.read', 'filesystem.write', 'network.allow', 'network.unix'] as const;
type LearnedList = (typeof LEARNED_LISTS)[number];

/** Limits that learning writes where somebody asked for them, in the units of policy files. */
const LEARNED_LIMITS = [
  'timeout_seconds',
  'idle_timeout_seconds',
  'memory',
  'processes',
  'cpu_seconds',
  'tmp_bytes',
] as const;
type LearnedLimit = (typeof LEARNED_LIMITS)[number];

/** The least policy under which what was run would run. What is only told is as it is shown: so it is found again in a file. */
export interface Proposal {
  /** The command lines that it was learned from. */
  readonly commands: ReadonlySet<string>;
  /** Each entry with the programs that needed it. */
  readonly lists: Readonly<Record<LearnedList, ReadonlyMap<string, ReadonlySet<string>>>>;
  readonly limits: Readonly<Partial<Record<LearnedLimit, number>>>;
  /** What was denied and is not proposed, with the reason. */
  readonly leftOut: ReadonlyMap<string, string>;
}

/** So many entries of one directory stand for all of it. */
const ENOUGH_SIBLINGS = 3;

/** What one run needs, with the limits that its options asked for. */
export function proposalOf(
  command: string,
  denials: readonly Denial[],
  { connections = [] }: Pick<ExecutionResult, 'connections'>,
  { places, asked }: { readonly places: Places; readonly asked: Asked },
): Proposal {
  const lists = emptyLists();
  for (const [key, value] of asked.grants) addTo(lists[key], value, undefined);
  const leftOut = new Map<string, string>();
  for (const { allow, notProposed, operation, object, program } of denials) {
    const leave = (why: string) => leftOut.set(visibleLine(`${operation} ${object}`, 300), why);
    if (notProposed !== undefined) leave(notProposed);
    const key = LEARNED_LISTS.find((name) => name === allow?.key);
    if (allow === undefined || key === undefined) continue;
    const value = String(allow.value);
    if (allow.absent !== undefined) {
      leave('it is not there; make it, and list it then');
      continue;
    }
    const isPath = key.startsWith('filesystem.');
    // Another run may have made something there meanwhile.
    const reason = isPath ? whyNotProposed(value, places, key) : undefined;
    if (reason !== undefined) leave(reason);
    else if (key === 'network.unix')
      leave('it is a socket of a daemon; allow it by hand if you know what it does');
    else addTo(lists[key], value, shown(program));
  }
  for (const { verdict, protocol, rule, host, port, program } of connections)
    if (verdict === 'allowed' && protocol !== 'unix' && port !== undefined && rule === undefined)
      addTo(lists['network.allow'], hostAndPort(host, port), shown(program));
  return generalised(
    { commands: new Set([visibleLine(command, 500)]), lists, limits: asked.limits, leftOut },
    places,
  );
}

/** Several are told with a comma and a blank between them. */
const shown = (program: string | undefined) =>
  program === undefined ? undefined : visibleLine(program, 60).replaceAll(', ', ',');

function emptyLists(): Record<LearnedList, Map<string, Set<string>>> {
  return {
    'filesystem.read': new Map(),
    'filesystem.write': new Map(),
    'network.allow': new Map(),
    'network.unix': new Map(),
  };
}

function addTo(list: Map<string, Set<string>>, value: string, program: string | undefined): void {
  const programs = list.get(value) ?? new Set();
  if (program !== undefined) programs.add(program);
  list.set(value, programs);
}

/** Grants and limits from the options and `--policy` of this call. The result has to repeat them, because the command ran with them. */
interface Asked {
  readonly limits: Proposal['limits'];
  readonly grants: readonly (readonly [LearnedList, string])[];
}

/** @see Asked */
export function askedFor(entries: readonly Entry[], inFull: (path: string) => string): Asked {
  const own = entries.filter(({ layer }) => layer.name === 'caller');
  const limits = Object.fromEntries(
    LEARNED_LIMITS.flatMap((name) =>
      own.flatMap(({ key, value }) =>
        key === `limits.${name}` && typeof value === 'number' ? [[name, value]] : [],
      ),
    ),
  );
  const grants = LEARNED_LISTS.flatMap((name) =>
    own.flatMap(({ key, value }): [LearnedList, string][] => {
      if (key !== name || typeof value !== 'string') return [];
      return [[name, name.startsWith('filesystem.') ? inFull(value) : value]];
    }),
  );
  return { limits, grants };
}

/** Both: what either needs. The order does not matter. */
export function merged(one: Proposal, other: Proposal, places: Places): Proposal {
  const lists = emptyLists();
  for (const name of LEARNED_LISTS) {
    for (const [value, programs] of [...one.lists[name], ...other.lists[name]]) {
      addTo(lists[name], value, undefined);
      for (const program of programs) addTo(lists[name], value, program);
    }
  }
  const limits = Object.fromEntries(
    LEARNED_LIMITS.flatMap((name) => {
      const values = [one.limits[name], other.limits[name]].filter((value) => value !== undefined);
      return values.length === 0 ? [] : [[name, Math.max(...values)]];
    }),
  );
  return generalised(
    {
      commands: new Set([...one.commands, ...other.commands]),
      lists,
      limits,
      leftOut: new Map([...one.leftOut, ...other.leftOut]),
    },
    places,
  );
}

/** Several entries of a directory become the directory, and what lies in another entry goes. */
function generalised(proposal: Proposal, places: Places): Proposal {
  const read = mutable(proposal.lists['filesystem.read']);
  const write = mutable(proposal.lists['filesystem.write']);
  while (join(read, byParent(read), places, 'filesystem.read'));
  while (join(read, byProject(read), places, 'filesystem.read'));
  // A whole project that can be written is more than three files of it.
  while (join(write, byParent(write), places, 'filesystem.write'));
  for (const [list, above] of [
    [read, read],
    [write, write],
    [read, write],
  ] as const) {
    for (const path of [...list.keys()])
      if ([...above.keys()].some((outer) => (list !== above || outer !== path) && isBeneath(path, outer)))
        list.delete(path);
  }
  const lists = { ...proposal.lists, 'filesystem.read': read, 'filesystem.write': write };
  return { ...proposal, lists };
}

function mutable(list: ReadonlyMap<string, ReadonlySet<string>>): Map<string, Set<string>> {
  return new Map([...list].map(([value, programs]) => [value, new Set(programs)]));
}

/** Replaces the entries in one directory by that directory, if it may be proposed. Returns whether one was replaced. */
function join(
  list: Map<string, Set<string>>,
  directories: ReadonlyMap<string, readonly string[]>,
  places: Places,
  name: LearnedList,
): boolean {
  for (const [directory, paths] of directories) {
    if (paths.length < ENOUGH_SIBLINGS || whyNotProposed(directory, places, name) !== undefined) continue;
    for (const path of paths) {
      for (const program of list.get(path) ?? []) addTo(list, directory, program);
      addTo(list, directory, undefined);
      list.delete(path);
    }
    return true;
  }
  return false;
}

const byParent = (list: ReadonlyMap<string, unknown>) => grouped(list, (path) => [dirname(path)]);

/** Entries by the projects around them, the innermost projects first. */
const byProject = (list: ReadonlyMap<string, unknown>) =>
  new Map([...grouped(list, projectsAround)].sort(([one], [other]) => other.length - one.length));

function grouped(
  list: ReadonlyMap<string, unknown>,
  groupsOf: (path: string) => readonly string[],
): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const path of list.keys())
    for (const group of groupsOf(path)) groups.set(group, [...(groups.get(group) ?? []), path]);
  return groups;
}

const HEAD = '# Proposed by sandbox-run learn from:';

/** As a policy file, which names what lies in the home by `~/`: the same proposal gives the same text. */
export function policyText({ commands, lists, limits, leftOut }: Proposal, home: string): string {
  const inHome = (value: string) => (value.startsWith(`${home}/`) ? `~${value.slice(home.length)}` : value);
  const lines = [HEAD, ...[...commands].sort().map((command) => `#   ${command}`)];
  const table = (name: string, content: readonly string[]) =>
    content.length === 0 ? [] : ['', `[${name}]`, ...content];
  const list = (name: LearnedList) => {
    const entries = [...lists[name]].sort(([one], [other]) => (one < other ? -1 : 1));
    if (entries.length === 0) return [];
    const [, key] = name.split('.');
    return [
      `${key} = [`,
      ...entries.map(([value, programs]) => {
        const who = [...programs].sort().join(', ');
        return `  ${visibleToml(inHome(value))},${who === '' ? '' : `  # ${who}`}`;
      }),
      ']',
    ];
  };
  const network = [...list('network.allow'), ...list('network.unix')];
  lines.push(
    ...table('filesystem', [...list('filesystem.read'), ...list('filesystem.write')]),
    ...table('network', network.length === 0 ? [] : ['mode = "listed"', ...network]),
    ...table(
      'limits',
      LEARNED_LIMITS.flatMap((name) => (limits[name] === undefined ? [] : [`${name} = ${limits[name]}`])),
    ),
  );
  if (leftOut.size > 0)
    lines.push(
      '',
      '# Denied, and not proposed:',
      ...[...leftOut].sort().map(([what, why]) => `#   ${what} (${why})`),
    );
  return `${lines.join('\n')}\n`;
}

/** A path of a policy file without `~/`. */
export const inFull = (value: string, home: string) =>
  value.startsWith('~/') ? `${home}${value.slice(1)}` : value;

/** What an earlier run has written, to be merged with. */
export function readProposal(
  text: string,
  parsed: Readonly<Record<string, unknown>>,
  home: string,
): Proposal {
  const lists = emptyLists();
  const valueAt = (place: string): unknown =>
    place
      .split('.')
      .reduce<unknown>((at, name) => (at as Record<string, unknown> | undefined)?.[name], parsed);
  const programs = new Map(
    [...text.matchAll(/^ {2}("(?:[^"\\]|\\.)*"),(?: {2}# (.*))?$/gm)].map(([, value = '', who = '']) => [
      value,
      who.split(', ').filter((program) => program !== ''),
    ]),
  );
  for (const name of LEARNED_LISTS) {
    for (const value of (valueAt(name) ?? []) as readonly string[]) {
      addTo(lists[name], inFull(value, home), undefined);
      for (const program of programs.get(visibleToml(value)) ?? [])
        addTo(lists[name], inFull(value, home), program);
    }
  }
  const limits = Object.fromEntries(
    LEARNED_LIMITS.flatMap((name) => {
      const value = valueAt(`limits.${name}`);
      return typeof value === 'number' ? [[name, value]] : [];
    }),
  );
  const comments = (from: string) =>
    [...(text.split(`${from}\n`)[1]?.matchAll(/^# {3}(.*)$/gm) ?? [])].map(([, line = '']) => line);
  const leftOut = comments('# Denied, and not proposed:').map((line): [string, string] => {
    const [, what = line, why = ''] = /^(.*) \((.*)\)$/.exec(line) ?? [];
    return [what, why];
  });
  const all = comments(HEAD);
  return {
    commands: new Set(all.slice(0, all.length - leftOut.length)),
    ...{ lists, limits, leftOut: new Map(leftOut) },
  };
}
