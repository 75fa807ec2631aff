import { readFileSync, readlinkSync } from 'node:fs';
import { orElse } from '../../base/or-else.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';

/** What commands would inherit from a process, according to /proc; see proc(5). */
interface ProcessLooks {
  /** All inherited properties except the control group, one per line. Only to be compared. */
  readonly inherited: string;
  /** The part of `inherited` that says where the process is: its namespaces and root directory. */
  readonly place: string;
  readonly hasTerminal: boolean;
}

/** Lines of /proc/PID/status that are compared: identity, rights, filters, file mode mask and processors. */
const INHERITED =
  /^(?:Umask|Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp|Seccomp_filters|Cpus_allowed):.*$/gm;
const NAMESPACES = ['mnt', 'net', 'pid', 'user', 'ipc', 'uts', 'cgroup'];
// Fields of /proc/PID/stat, counted after the name, which may contain spaces.
const PARENT = 1;
const TERMINAL = 4;
const NICE = 16;
const BEGAN = 19;
/** A process that is further away says nothing about who called. */
const MOST_ABOVE = 32;

function statOf(process: number | 'self'): readonly string[] {
  const stat = readFileSync(`/proc/${process}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** The processes above one, the nearest first, each with the time of its start: another one may have its number later. */
export function processesAbove(process: number): readonly string[] {
  const above: string[] = [];
  let parent = orElse(() => statOf(process)[PARENT], undefined);
  while (Number(parent) > 0 && above.length < MOST_ABOVE) {
    const stat = orElse(() => statOf(Number(parent)), undefined);
    if (stat === undefined) break;
    above.push(`${parent} ${stat[BEGAN]}`);
    parent = stat[PARENT];
  }
  return above;
}

/** Reads the inherited properties of a process; `undefined`: they cannot be read, for example because it is gone. */
export function peerProcess(process: number | 'self'): ProcessLooks | undefined {
  const read = (file: string) => readFileSync(`/proc/${process}/${file}`, 'utf8');
  return orElse(() => {
    const fields = statOf(process);
    const place = [
      ...NAMESPACES.map((name) => readlinkSync(`/proc/${process}/ns/${name}`)),
      readlinkSync(`/proc/${process}/root`),
    ].join('\n');
    const inherited = [
      ...(read('status').match(INHERITED) ?? []),
      place,
      // Node raises its soft limit of open files at start, so that is not compared, nor the padding behind it, which depends on it.
      read('limits').replace(/^(Max open files +)\S+ +/m, '$1'),
      `nice ${fields[NICE]}`,
    ];
    const hasTerminal = fields[TERMINAL] !== '0';
    return { inherited: inherited.join('\n'), place, hasTerminal };
  }, undefined);
}

let own: Pick<ProcessLooks, 'inherited' | 'place'> | undefined;

/** As it was when it was asked for first; empty texts, which no other process has, if it cannot be known. */
function ownLooks(): NonNullable<typeof own> {
  own ??= peerProcess('self');
  return own ?? { inherited: '', place: '' };
}

/** A property in which two processes differ: one line about each. */
type Difference = readonly [theirs: string, ours: string];

/**
 * The first inherited property (identity, rights, namespaces, limits, control group) in which another process differs from this one: a
 * command that this process starts on its behalf would have ours instead of its own. `undefined`: there is no difference. A
 * sandboxed command always differs, because it has additional seccomp filters.
 */
export function inheritedDifference(
  process: number,
  { inherited }: Pick<ProcessLooks, 'inherited'>,
  addon: Pick<NativeAddon, 'controlGroups'>,
): Difference | undefined {
  const own = ownLooks().inherited;
  if (inherited !== own) {
    const [theirs, ours] = [inherited.split('\n'), own.split('\n')];
    const at = theirs.findIndex((line, index) => line !== ours[index]);
    return [theirs[at] ?? '', ours[at] ?? ''];
  }
  const groups = orElse(() => addon.controlGroups(process), ['unknown', ''] as const);
  return groups[0] === groups[1] ? undefined : differenceOfGroups(groups);
}

/** The first line of each text that the other one does not have. */
function differenceOfGroups([theirs, ours]: Difference): Difference {
  const onlyIn = (text: string, other: string) => {
    const others = other.split('\n');
    return `control group ${text.split('\n').find((line) => !others.includes(line)) ?? 'without that'}`;
  };
  return [onlyIn(theirs, ours), onlyIn(ours, theirs)];
}

/**
 * Whether a process is in the same namespaces with the same root directory, whatever its control group, limits and rights.
 * That it is of the same user and no more confined was asked before (`isOurs`).
 */
export function isWhereThisProcessIs({ place }: ProcessLooks): boolean {
  return place === ownLooks().place;
}
