import { spawnSync } from 'node:child_process';

/** Runs a program to its end; its output is an error's text if it fails. */
export function mustRun(command, args, options = {}) {
  const done = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 28, ...options });
  if (done.status === 0) return done.stdout;
  const said = `${done.error?.message ?? ''}${done.stdout ?? ''}${done.stderr ?? ''}`;
  throw new Error(`${command} ${args.join(' ')} failed:\n${said.trim().split('\n').slice(-25).join('\n')}`);
}
