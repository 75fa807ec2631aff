import { SandboxError } from '../../errors/sandbox-error.ts';
import { currentDirectory } from '../../host/exact-text.ts';
import type { Sandbox } from '../../run/sandbox.ts';

/** The kernel's limit for one argument (MAX_ARG_STRLEN, 32 pages), with its NUL: what is longer cannot be given to bash as text. */
const LONGEST_TEXT = 128 * 1024 - 1;
/** In these words a script asks bash where it was read from, and only a bash that reads the file knows. */
const ASKS_FOR_ITS_FILE = /BASH_SOURCE|BASH_ARGV/;

/** A script: its text, to be judged and run from the same bytes; a file that only bash itself can run; or none. */
type Script =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'file' }
  | { readonly kind: 'none'; readonly reason: string; readonly status: 126 | 127 };

/**
 * All of standard input as a text.
 * @throws {SandboxError} `usage.invalid` if it is none, or too long for one.
 */
export async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of process.stdin) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > LONGEST_TEXT)
      throw new SandboxError(
        'usage.invalid',
        `the script on standard input is longer than ${LONGEST_TEXT} bytes; put it into a file and run that`,
      );
  }
  const text = textOf(Buffer.concat(chunks));
  if (text === undefined || text.includes('\0'))
    throw new SandboxError('usage.invalid', 'the script on standard input is not UTF-8 text');
  return text;
}

/**
 * Reads a script in the sandbox, as a command of it: this process may read more than commands may, and would show it in
 * error messages.
 */
export async function readScript(sandbox: Sandbox, path: string): Promise<Script> {
  if (/^\/(?:dev\/(?:fd|stdin)|proc\/[^/]*\/fd)(?:\/|$)/.test(path))
    return {
      kind: 'none',
      status: 126,
      reason:
        'descriptors are not passed on; put the script into a file, or on standard input without a name',
    };
  const result = await sandbox.run(['/bin/cat', '--', path], {
    cwd: currentDirectory(),
    env: { LC_ALL: 'C' },
    encoding: 'bytes',
    maxOutput: { head: LONGEST_TEXT, tail: 0 },
  });
  const { bytes, error, truncated } = result;
  if (error !== undefined) return { kind: 'none', reason: error.message, status: 126 };
  if (truncated.stdout > 0) return { kind: 'file' };
  if (result.status !== 'exited' || result.exitCode !== 0 || bytes === undefined) {
    const said = Buffer.from(bytes?.stderr ?? [])
      .toString()
      .trim();
    const reason = /[^:]+$/.exec(said)?.[0]?.trim() ?? 'it cannot be read';
    return { kind: 'none', reason, status: reason === 'No such file or directory' ? 127 : 126 };
  }
  const content = Buffer.from(bytes.stdout);
  // Where bash looks, too.
  const line = content.indexOf(0x0a);
  if (content.subarray(0, line < 0 ? undefined : line).includes(0))
    return { kind: 'none', reason: 'cannot execute binary file', status: 126 };
  const text = textOf(content);
  return text === undefined || text.includes('\0') || ASKS_FOR_ITS_FILE.test(text)
    ? { kind: 'file' }
    : { kind: 'text', text };
}

function textOf(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
