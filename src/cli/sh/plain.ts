import { spawn } from 'node:child_process';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { endedBy } from '../../run/launch/exit-status.ts';

/** Runs the shell itself, with these arguments and our streams, and returns its exit status. */
export function plainShell(program: string, argv: readonly string[]): Promise<number> {
  const child = spawn(program, [...argv], { stdio: 'inherit' });
  const handed = (['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2', 'SIGWINCH'] as const).map(
    (signal) => {
      const handler = () => void child.kill(signal);
      process.on(signal, handler);
      return { signal, handler };
    },
  );
  return new Promise<number>((done, fail) => {
    child.once('exit', (status, signal) => done(signal === null ? (status ?? 1) : endedBy(signal)));
    child.once('error', (cause) =>
      fail(new SandboxError('launch.failed', `${program} cannot be started`, { cause })),
    );
  }).finally(() => {
    for (const { signal, handler } of handed) process.off(signal, handler);
  });
}
