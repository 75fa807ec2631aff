import { readFileSync, readlinkSync } from 'node:fs';
import { orElse } from '../../base/or-else.ts';
import type { NativeAddon } from '../../confine/native/contract.ts';

/** What /proc says of a process that commands which it starts would inherit; see proc(5). */
interface ProcessLooks {
  /** As text, to be compared and nothing else: all but the control group. */
  readonly inherited: string;
  /** The part of it that says where the process is: its namespaces and root directory. */
  readonly place: string;
  readonly hasTerminal: boolean;
  /** The process that started it. */
  readonly parent: number;
}

/** Of /proc/PID/status: identity, rights, filters, file mode mask and processors. */
const INHERITED =
  /^(?:Umask|Uid|Gid|Groups|CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp|Seccomp_filters|Cpus_allowed):.*$/gm;
const NAMESPACES = ['mnt', 'net', 'pid', 'user', 'ipc', 'uts', 'cgroup'];
/** Fields of /proc/PID/stat, counted behind the name, which may have spaces: its parent, the terminal, and the nice value. */
const PARENT = 1;
const TERMINAL = 4;
const NICE = 16;

/** What is known of a process; `undefined`: not enough, as of one that is gone. */
export function peerProcess(process: number | 'self'): ProcessLooks | undefined {
  const read = (file: string) => readFileSync(`/proc/${process}/${file}`, 'utf8');
  return orElse(() => {
    const stat = read('stat');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const place = [
      ...NAMESPACES.map((name) => readlinkSync(`/proc/${process}/ns/${name}`)),
      readlinkSync(`/proc/${process}/root`),
    ].join('\n');
    const inherited = [
      ...(read('status').match(INHERITED) ?? []),
      place,
      // Node raises its own soft limit of files at its start. Columns are filled up with blanks, which depend on it.
      read('limits').replace(/^(Max open files +)\S+ +/m, '$1'),
      `nice ${fields[NICE]}`,
    ];
    const hasTerminal = fields[TERMINAL] !== '0';
    return { inherited: inherited.join('\n'), place, hasTerminal, parent: Number(fields[PARENT]) };
  }, undefined);
}

let own: Pick<ProcessLooks, 'inherited' | 'place'> | undefined;

/** As it was when it was asked for first; empty texts, which no other process has, if it cannot be known. */
function ownLooks(): NonNullable<typeof own> {
  own ??= peerProcess('self');
  return own ?? { inherited: '', place: '' };
}

/** Something about two processes that is not the same: a line about either. */
type Difference = readonly [theirs: string, ours: string];

/**
 * The first thing that a command which this process starts for another one would not have as it would have it there: who it
 * is, what it may, where it is, and how much it can have. `undefined`: there is none. A sandboxed command, which has filters
 * of its own, is never like us.
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

/** The first line that is in one of the texts only. */
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
