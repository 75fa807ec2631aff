import { readFileSync } from 'node:fs';

/** What the kernel says about a process that it keeps from something. */
interface Confinement {
  readonly noNewPrivileges: number;
  readonly filters: number;
}

/**
 * Whether a process is confined in a way that we are not, as sandboxed commands are: such a one does not answer for the
 * user, should it ever reach us. Whoever is gone or cannot be looked at counts as confined.
 */
export function isMoreConfined(pid: number): boolean {
  const peer = pid > 0 ? confinementOf(String(pid)) : undefined;
  const own = confinementOf('self');
  if (peer === undefined || own === undefined) return true;
  return peer.noNewPrivileges > own.noNewPrivileges || peer.filters > own.filters;
}

function confinementOf(process: string): Confinement | undefined {
  try {
    const status = readFileSync(`/proc/${process}/status`, 'utf8');
    const field = (name: string) => new RegExp(`^${name}:\\s*(\\d+)$`, 'm').exec(status)?.[1];
    return {
      noNewPrivileges: Number(field('NoNewPrivs') ?? 0),
      // Counted since Linux 5.9; before that the mode says whether there is one (2). They are no common measure.
      filters: Number(field('Seccomp_filters') ?? field('Seccomp') ?? 0),
    };
  } catch {
    return undefined;
  }
}
