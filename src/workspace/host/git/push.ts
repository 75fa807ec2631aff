import { execFileSync } from 'node:child_process';
import { orElse } from '../../../base/or-else.ts';
import { redact } from '../../../base/redact.ts';
import { readableWord } from '../../../base/shell-quote.ts';
import type { Environment } from '../surroundings.ts';
import { SEARCH_PATH } from './aliases.ts';

/** A person waits for the question. */
const TIMEOUT_MS = 1000;
/** Commits that are named, before those that are only counted. */
const MOST_COMMITS = 20;
/** A name of a remote or of a branch that no option and no refspec is. */
const NAME = /^[\w][\w./-]*$/;

/**
 * What a push would send: the remote with its address, then the commits that it does not have, newest first. Empty: not known.
 * `words`: the remote and refspecs, as they were given. `env`: of the caller, for where the user's settings are.
 */
export function describePush(
  { directory, words }: { readonly directory: string; readonly words: readonly string[] },
  env: Environment,
): readonly string[] {
  const [named, ...refspecs] = words;
  const git = gitIn(directory, env);
  const remote = named ?? remoteOfBranch(git) ?? 'origin';
  // An address in place of a name: what is there already is not known.
  if (!NAME.test(remote)) return [readableWord(redact(remote))];
  const address = git('remote', 'get-url', '--push', '--', remote);
  const where = address === undefined ? remote : `${remote} (${readableWord(redact(address))})`;
  const sources = (refspecs.length === 0 ? ['HEAD'] : refspecs)
    .map((refspec) => refspec.replace(/^\+/, '').replace(/:.*$/, ''))
    // `:branch` deletes, and sends nothing.
    .filter((source) => source !== '');
  if (sources.length === 0 || !sources.every((source) => NAME.test(source))) return [where];
  const format = ['--no-commit-header', '--format=%h %s', `--max-count=${MOST_COMMITS}`];
  const missing = [...sources, '--not', `--remotes=${remote}`, '--'];
  const commits = git('rev-list', ...format, ...missing);
  const lines = commits?.split('\n').filter((line) => line !== '') ?? [];
  return [
    where,
    ...lines.map((line) => line.replace(/ (.*)$/s, (_, subject) => ` ${readableWord(subject)}`)),
  ];
}

/** The remote of `git push` without arguments, from the settings of the current branch. */
function remoteOfBranch(git: ReturnType<typeof gitIn>): string | undefined {
  const branch = git('symbolic-ref', '--short', 'HEAD');
  const setting = (key: string) => git('config', '--get', key);
  const own = (key: string) => (branch === undefined ? undefined : setting(`branch.${branch}.${key}`));
  return own('pushRemote') ?? setting('remote.pushDefault') ?? own('remote');
}

/**
 * Git in a directory, by commands that only read and run nothing: no hook, filter, pager or transport, whatever the settings of
 * the repository say. `undefined`: it fails.
 */
function gitIn(directory: string, { HOME, XDG_CONFIG_HOME }: Environment) {
  const env = {
    ...{ PATH: SEARCH_PATH, HOME, XDG_CONFIG_HOME, LC_ALL: 'C' },
    ...{
      GIT_OPTIONAL_LOCKS: '0',
      GIT_NO_LAZY_FETCH: '1',
      GIT_ALLOW_PROTOCOL: 'none',
      GIT_TERMINAL_PROMPT: '0',
    },
  };
  return (...args: readonly string[]): string | undefined =>
    orElse(
      () =>
        execFileSync('git', ['--no-pager', ...args], {
          ...{ cwd: directory, env, timeout: TIMEOUT_MS, killSignal: 'SIGKILL', encoding: 'utf8' },
          stdio: ['ignore', 'pipe', 'ignore'],
        }).trimEnd() || undefined,
      undefined,
    );
}
