import { once } from 'node:events';
import { readFileSync, statfsSync } from 'node:fs';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { endedBy } from '../../run/index.ts';
import { onSignals } from '../shared/signals.ts';

/** Of `/proc`, in linux/magic.h: no other file system has it, so what is read there comes from the kernel. */
export const PROC_MAGIC = 0x9fa0;

/**
 * Whether this process is in the view of a sandbox of ours. Nothing that a model or a file can say counts, only what the
 * kernel says of this very process: that its root is the read-only file system that the addon makes (to mount it there takes
 * privileges over the process that commands are never given), and that a seccomp filter and no_new_privs hold it.
 * A sandbox without a view is not recognized; in one another is made.
 */
export function isInsideOwnView(): boolean {
  try {
    const status = readFileSync('/proc/self/status', 'latin1');
    if (!/^NoNewPrivs:\t1$/m.test(status) || !/^Seccomp:\t2$/m.test(status)) return false;
    if (statfsSync('/proc').type !== PROC_MAGIC) return false;
    return hasOwnRoot(readFileSync('/proc/self/mountinfo', 'latin1'));
  } catch {
    return false;
  }
}

/** Whether the root, the last that was mounted there, is a view's (native/core/). */
export function hasOwnRoot(mountinfo: string): boolean {
  const root = mountinfo
    .split('\n')
    .filter((line) => line.split(' ')[4] === '/')
    .at(-1);
  return root !== undefined && /^\d+ \d+ \d+:\d+ \/ \/ ro,\S* (?:\S+:\S+ )*- tmpfs sandbox-run /.test(root);
}

/** Runs the shell itself, with these arguments and our streams, and returns its exit status. */
export async function plainShell(program: string, argv: readonly string[]): Promise<number> {
  // Outside of a sandbox it is not needed.
  const { spawn } = await import('node:child_process');
  const child = spawn(program, [...argv], { stdio: 'inherit' });
  using _ = onSignals(
    ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'],
    (signal) => void child.kill(signal),
  );
  const ended = once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>;
  const [status, signal] = await ended.catch((cause: unknown) => {
    throw new SandboxError('launch.failed', `${program} cannot be started`, { cause });
  });
  return signal === null ? (status ?? 1) : endedBy(signal);
}
