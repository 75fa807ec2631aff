// Programs that a script runs, and what it says if one fails.
import { spawn } from 'node:child_process';

/** A step that did not succeed, with what is to be shown of it: for whoever runs the script, not for its author. */
export class StepError extends Error {}

/**
 * Runs a program; settles when it ended. `output`: 'show' passes it on, 'capture' keeps it, and both keep it.
 * `fails: true` makes another exit status than 0 an answer and not an error. `tree: true`: what it starts ends with it, and
 * `signal` waits for that: until nobody has its output any more.
 */
export function run(
  program,
  args,
  { env = {}, show = false, input, signal, fails = false, timeoutMs, cwd, tree = false } = {},
) {
  return new Promise((done, failed) => {
    const child = spawn(program, args, {
      env: { ...process.env, ...env },
      stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'],
      cwd,
      signal,
      timeout: timeoutMs,
      // unshare listens to nothing else.
      killSignal: tree ? 'SIGKILL' : 'SIGTERM',
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
    let aborted;
    child.once('error', (error) => {
      const isAbort = error.name === 'AbortError';
      if (isAbort && tree) aborted = error;
      else failed(isAbort ? error : new StepError(`${program}: ${error.message}`));
    });
    child.once('close', (status, endedBy) => {
      if (aborted !== undefined) return failed(aborted);
      if (status === 0 || fails) return done({ ...said, status, endedBy });
      const tail = `${said.stdout}${said.stderr}`.trim().split('\n').slice(-25).join('\n');
      failed(
        new StepError(`${program} ${args.join(' ')} failed (${endedBy ?? `exit status ${status}`})\n${tail}`),
      );
    });
  });
}
