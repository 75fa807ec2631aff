import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { arch, constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll } from 'vitest';
import { syscallsOf } from '../../support/syscall-numbers.ts';

/** What happens to one system call: the process is killed before or after it, or it fails without having been made. */
export const FAULTS = ['before', 'after', 'ENOMEM', 'EPERM', 'EMFILE', 'ENOSPC', 'EINTR'] as const;
export type Fault = (typeof FAULTS)[number];

/** One call of one process that a launcher makes to set a command up, or of the launcher's own threads. */
export interface Row {
  /** `own`: of those threads, where calls are counted by their number. */
  readonly child: number | 'own';
  readonly number: number;
  readonly call: number;
  readonly fault: Fault;
  /** What it is, for people. */
  readonly name: string;
}

/** A process that a launcher made. */
interface TracedChild {
  /** That it executed. */
  readonly programs: string;
  /** The numbers of its calls, up to the program that a command is. */
  readonly calls: readonly number[];
  /** So many of them came before its first program. */
  readonly executed: number;
}

/** What a launcher did under the tracer. */
export interface Traced {
  readonly fired: boolean;
  readonly children: readonly TracedChild[];
  /** By the number of a call how often the launcher's own threads made it; only if they were listed. */
  readonly own: Readonly<Record<string, number>>;
  /** What the kernel said of each command before the first instruction of its program. */
  readonly commands: readonly Readonly<Record<CommandFact, string>>[];
}

/** Lines of /proc/PID/status, links of /proc/PID/ns, which directory is `/`, and the open descriptors. */
type CommandFact =
  | ('program' | 'NoNewPrivs' | 'Seccomp' | 'CapEff' | 'CapPrm' | 'SigIgn' | 'SigBlk')
  | ('net' | 'ipc' | 'mnt' | 'user' | 'root' | 'fds');

const NAMES = new Map(
  syscallsOf(arch() === 'arm64' ? 'arm64' : 'x64').map(([name, number]) => [number, name] as const),
);

/** Compiles fault-tracer.cc; for words to put before a launcher's, and what became of them. */
export function buildFaultTracer() {
  const directory = mkdtempSync(join(realpathSync(tmpdir()), 'sandbox-run-tracer-'));
  chmodSync(directory, 0o777);
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  const program = join(directory, 'fault-tracer');
  const source = fileURLToPath(new URL('./fault-tracer.cc', import.meta.url));
  execFileSync('g++', ['-std=c++20', '-O1', '-Wall', '-Werror', source, '-o', program]);
  let runs = 0;
  return (row: Row | 'list' | 'list-own') => {
    runs += 1;
    const report = join(directory, `report-${runs}`);
    return {
      words: [program, report, typeof row === 'string' ? row : specOf(row)],
      traced: () => {
        const traced = JSON.parse(readFileSync(report, 'utf8')) as Traced;
        rmSync(report);
        return traced;
      },
    };
  };
}

function specOf({ child, number, call, fault }: Row): string {
  const what = fault in constants.errno ? constants.errno[fault as keyof typeof constants.errno] : fault;
  return child === 'own' ? `own.${number}.${call}.${what}` : `${child}.${call}.${what}`;
}

/** What Node and libc do all the time on threads of their own, and what cannot fail. */
const OF_NODE = new Set([
  ...['read', 'write', 'close', 'futex', 'mmap', 'munmap', 'mprotect', 'madvise', 'rt_sigprocmask', 'exit'],
  ...['set_robust_list', 'rseq', 'clone3', 'epoll_create1', 'epoll_ctl', 'epoll_pwait', 'epoll_wait'],
  ...[
    'getpid',
    'gettid',
    'geteuid',
    'getegid',
    'getppid',
    'pread64',
    'pwrite64',
    'statx',
    'eventfd2',
    'lseek',
  ],
  ...['sched_yield', 'sched_getaffinity', 'sigaltstack', 'brk', 'getrandom', 'restart_syscall'],
]);

/** Every call of the launcher's own threads, with every errno. */
export function ownRowsOf({ own }: Traced): readonly Row[] {
  return Object.entries(own).flatMap(([text, count]) => {
    const number = Number(text);
    const name = NAMES.get(number) ?? text;
    if (OF_NODE.has(name)) return [];
    return Array.from({ length: count }, (_, call) =>
      FAULTS.filter((fault) => fault in constants.errno).map((fault) => ({
        child: 'own' as const,
        number,
        call,
        fault,
        name: `${name} number ${call} of the launcher: ${fault}`,
      })),
    ).flat();
  });
}

/** So many of them, at even distances. `from`, from 0 to 1: which of those that are as good as each other. */
export function spread<Item>(items: readonly Item[], count: number, from: number): readonly Item[] {
  if (items.length <= count) return items;
  return items.filter(
    (_, at) =>
      Math.floor((at * count) / items.length + from) > Math.floor(((at - 1) * count) / items.length + from),
  );
}

/** The same of each process in proportion to how many of them are its own, and one at least. */
export function spreadOverProcesses(rows: readonly Row[], count: number, from: number): readonly Row[] {
  return [...new Set(rows.map(({ child }) => child))].flatMap((process) => {
    const own = rows.filter(({ child }) => child === process);
    return spread(own, Math.max(1, Math.round((own.length * count) / rows.length)), from);
  });
}

/**
 * Every call with every fault. A process that has become a program (a warden that watches, Firejail) makes the same calls
 * by the thousand: of those the first of a kind.
 */
export function rowsOf({ children }: Traced): readonly Row[] {
  return children.flatMap(({ programs, calls, executed }, child) =>
    calls.flatMap((number, call) =>
      call >= executed && calls.indexOf(number, executed) !== call
        ? []
        : FAULTS.map((fault) => ({
            child,
            number,
            call,
            fault,
            name: `process ${child}${programs === '' ? '' : ` (${programs})`}, call ${call} (${NAMES.get(number) ?? number}): ${fault}`,
          })),
    ),
  );
}

/**
 * Of these the first call of a kind in each process, which is killed after it, and one other fault, in turn: mounts of a
 * view and resets of signal handlers come by the hundred.
 */
export function sampleOf({ children }: Traced, rows: readonly Row[]): readonly Row[] {
  const others = FAULTS.filter((fault) => fault !== 'after');
  return rows.filter(({ child, call, fault }) => {
    const calls = child === 'own' ? [] : (children[child]?.calls ?? []);
    if (calls.indexOf(calls[call] ?? -1) !== call) return false;
    return fault === 'after' || fault === others[call % others.length];
  });
}
