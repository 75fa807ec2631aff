import { constants } from 'node:os';

/** Second names for the same numbers; the kernel's own documentation uses the others. */
const ALIASES = new Set(['ENOTSUP', 'EWOULDBLOCK', 'EDEADLOCK', 'SIGIOT', 'SIGPOLL', 'SIGCLD', 'SIGUNUSED']);

function namesOf(values: Readonly<Record<string, number>>): ReadonlyMap<number, string> {
  return new Map(
    Object.entries(values)
      .filter(([name]) => !ALIASES.has(name))
      .map(([name, value]) => [value, name]),
  );
}

const NAMES = namesOf({ ...constants.errno });

/** The symbolic name of an errno, for example `ENOENT`; an unknown number as text. */
export function errnoName(errno: number): string {
  return NAMES.get(errno) ?? `errno ${errno}`;
}

const SIGNAL_NAMES = namesOf({ ...constants.signals });

/** The name of a signal, for example `SIGTERM`; real-time signals as `SIGRTMIN+n`. */
export function signalName(signal: number): string {
  return SIGNAL_NAMES.get(signal) ?? `SIGRTMIN+${signal - 34}`;
}
