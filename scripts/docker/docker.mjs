// The docker command line, one daemon, and what has to be removed in the end.
import { spawn } from 'node:child_process';

/** A step that did not succeed, with what is to be shown of it: for whoever runs the script, not for its author. */
export class StepError extends Error {}

/**
 * Runs a program; settles when it ended. `output`: 'show' passes it on, 'capture' keeps it, and both keep it.
 * `fails: true` makes another exit status than 0 an answer and not an error.
 */
export function run(
  program,
  args,
  { env = {}, show = false, input, signal, fails = false, timeoutMs, cwd } = {},
) {
  return new Promise((done, failed) => {
    const child = spawn(program, args, {
      env: { ...process.env, ...env },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      cwd,
      signal,
      timeout: timeoutMs,
    });
    const said = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr']) {
      child[name].setEncoding('utf8').on('data', (text) => {
        said[name] += text;
        if (show) process[name].write(text);
      });
    }
    if (input !== undefined) {
      input.pipe(child.stdin);
      // The reader may be gone before everything is written; its exit status says so.
      child.stdin.on('error', () => {});
    }
    child.once('error', (error) =>
      failed(error.name === 'AbortError' ? error : new StepError(`${program}: ${error.message}`)),
    );
    child.once('close', (status, endedBy) => {
      if (status === 0 || fails) return done({ ...said, status, endedBy });
      const tail = `${said.stdout}${said.stderr}`.trim().split('\n').slice(-25).join('\n');
      failed(
        new StepError(`${program} ${args.join(' ')} failed (${endedBy ?? `exit status ${status}`})\n${tail}`),
      );
    });
  });
}

/** Docker commands for one daemon. `host`: its socket, or undefined for the one that the environment names. */
export function dockerAt(host, signal) {
  const env = host === undefined ? {} : { DOCKER_HOST: host, DOCKER_CONTEXT: '' };
  return (args, options = {}) => run('docker', args, { env, signal, ...options });
}
