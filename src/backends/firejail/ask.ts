import { execFile } from 'node:child_process';

/** What became of a question to Firejail. */
export interface Answer {
  /** undefined: a signal ended it, or it could not be started. */
  readonly exitCode: number | undefined;
  /** It was ended by SIGKILL: by the kernel because memory ran out, from outside, or by us because it was late. */
  readonly killed: boolean;
  readonly stdout: string;
  readonly stderr: string;
}

/** Firejail answers in a tenth of a second; one that hangs is not used. */
const PATIENCE_MS = 15_000;

/**
 * Starts Firejail to ask it something. With an environment of its own and without standard input: nothing that the user
 * has set changes the answer. Rejects if it cannot be started, or says too much.
 *
 * Not with execa: to load it opens this process's own standard streams, and Node makes pipes among them non-blocking, for
 * the command that inherits them as well, whose writes then fail where they should wait.
 */
export function askFirejail(path: string, options: readonly string[]): Promise<Answer> {
  return new Promise((answered, failed) => {
    const child = execFile(
      path,
      options,
      {
        timeout: PATIENCE_MS,
        killSignal: 'SIGKILL',
        cwd: '/',
        env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
        maxBuffer: 64 * 1024,
        encoding: 'utf8',
      },
      (error, stdout, stderr) => {
        const code = error === null ? 0 : error.code;
        if (typeof code === 'string') {
          failed(error);
          return;
        }
        answered({
          exitCode: typeof code === 'number' ? code : undefined,
          killed: error?.signal === 'SIGKILL',
          stdout,
          stderr,
        });
      },
    );
    child.stdin?.end();
  });
}
