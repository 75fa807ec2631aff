import { type ExecFileException, execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Longer than git needs for a few files, shorter than anybody waits for a pipe in the place of one. */
const TIMEOUT_MS = 3000;
const MAX_OUTPUT_BYTES = 1024 * 1024;
/** Never a directory that commands can write. */
export const SEARCH_PATH = '/usr/local/bin:/usr/bin:/bin';
/** git exits with it if nothing matches. */
const NOTHING_FOUND = 1;

type Alias = readonly [name: string, value: string];

/**
 * The aliases that git knows in a directory: of the system, of the user and of the repository, includes followed. git
 * itself is asked, because nobody else reads its files as it does; `git config` runs no hook, no filter and no pager.
 * `env`: of the launcher, for where the user's settings are; nothing else of it is passed on.
 */
export async function readAliases(
  directory: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<readonly Alias[]> {
  const args = ['--no-pager', 'config', '--includes', '-z', '--get-regexp', '^alias\\.'];
  const { HOME, XDG_CONFIG_HOME } = env;
  const asked = promisify(execFile)('git', args, {
    cwd: directory,
    env: { PATH: SEARCH_PATH, HOME, XDG_CONFIG_HOME, GIT_OPTIONAL_LOCKS: '0', LC_ALL: 'C' },
    timeout: TIMEOUT_MS,
    killSignal: 'SIGKILL',
    maxBuffer: MAX_OUTPUT_BYTES,
  });
  asked.child.stdin?.end();
  const { stdout } = await asked.catch((error: ExecFileException & { readonly stderr?: string }) => {
    if (error.code === NOTHING_FOUND && error.stderr === '') return { stdout: '' };
    throw error;
  });
  return aliasesIn(stdout);
}

/** `alias.name` LF value NUL, for each. */
function aliasesIn(output: string): readonly Alias[] {
  const values = new Map<string, string>();
  for (const entry of output.split('\0')) {
    if (entry === '') continue;
    // Without a value there is no line break either. Of equal keys the last counts.
    const [key = '', ...value] = entry.split('\n');
    values.set(key, value.join('\n'));
  }
  return [...values].map(([key, value]) => [key.slice('alias.'.length).replace(/\.command$/, ''), value]);
}
