import { execFile } from 'node:child_process';

/** What runs shell strings: its grammar is the one that is judged. */
export const SHELL = '/bin/bash';

/** A text that takes longer to read is one that is not understood. */
const TIMEOUT_MS = 2_000;
const MAX_BYTES = 16 * 1024;

/**
 * What bash says of a text that it refuses to run because of its syntax; `undefined`: it would run it, or did not say. It
 * reads the text and runs nothing of it (`-n`), with no start-up file and nothing of our environment.
 */
export function bashSyntaxError(text: string): Promise<string | undefined> {
  return new Promise((done) => {
    const options = { env: { LC_ALL: 'C' }, cwd: '/', timeout: TIMEOUT_MS, maxBuffer: MAX_BYTES } as const;
    execFile(SHELL, ['--noprofile', '--norc', '-n', '-c', '--', text], options, (error, _, said) => {
      const line = said.split('\n').find((one) => one !== '');
      // 2: bash's own status for what it cannot read. Anything else is no answer.
      done(error?.code === 2 && line !== undefined ? line.replace(/^\/bin\/bash: /, 'bash: ') : undefined);
    }).stdin?.end();
  });
}
