import { readFileSync, readlinkSync } from 'node:fs';
import { orElse } from '../../base/or-else.ts';

/** What /proc says of a process that commands which it starts would inherit; see proc(5). */
interface ProcessLooks {
  /** As text, to be compared and nothing else. */
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
  // Which of the two keeps names apart that are not text; the other is read in one call.
  const read = (file: string, as: 'utf8' | 'latin1' = 'utf8') => readFileSync(`/proc/${process}/${file}`, as);
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
      read('cgroup', 'latin1'),
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

/**
 * Whether a command that this process starts for another one has what it would have there: who it is, what it may, where
 * it is, and how much it can have. A sandboxed command, which has filters of its own, is never like us.
 */
export function isLikeThisProcess({ inherited }: ProcessLooks): boolean {
  return inherited === ownLooks().inherited;
}

/**
 * Whether a process is in the same namespaces with the same root directory, whatever its control group, limits and rights.
 * That it is of the same user and no more confined was asked before (`isOurs`).
 */
export function isWhereThisProcessIs({ place }: ProcessLooks): boolean {
  return place === ownLooks().place;
}
