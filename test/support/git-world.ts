import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A repository with a remote beside it, and a home with settings of its own. */
export interface GitWorld {
  readonly root: string;
  readonly home: string;
  readonly repository: string;
  /** Bare. */
  readonly remote: string;
  git(...args: readonly string[]): string;
  /** Runs a line in the repository as bash would; says what git printed. */
  run(line: string): string;
  /** What the remote has, and where the branch is. */
  state(): { readonly remote: string; readonly head: string };
  remove(): void;
}

/** `like`: a copy of another one as it is, which takes git itself no time. */
export function createGitWorld(like?: GitWorld): GitWorld {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'git-world-')));
  const [home, repository, remote] = ['home', 'repository', 'remote.git'].map((name) => join(root, name)) as [
    string,
    string,
    string,
  ];
  if (like === undefined) for (const directory of [home, repository]) mkdirSync(directory);
  else cpSync(like.root, root, { recursive: true, preserveTimestamps: true });
  const env = {
    PATH: process.env.PATH,
    HOME: home,
    GIT_AUTHOR_NAME: 'a',
    GIT_AUTHOR_EMAIL: 'a@localhost',
    GIT_COMMITTER_NAME: 'a',
    GIT_COMMITTER_EMAIL: 'a@localhost',
  };
  const execute = (program: string, args: readonly string[]) =>
    execFileSync(program, args, {
      cwd: repository,
      env,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    });
  const git = (...args: readonly string[]) => execute('git', args).trim();
  if (like === undefined) {
    git('init', '-q', '--template=', '-b', 'main');
    git('init', '-q', '--template=', '-b', 'main', '--bare', remote);
    writeFileSync(join(repository, 'file'), 'one\n');
    git('add', 'file');
    git('commit', '-qm', 'one');
    git('remote', 'add', 'origin', '../remote.git');
    git('push', '-q', '-u', 'origin', 'main');
  }
  return {
    root,
    home,
    repository,
    remote,
    git,
    run(line) {
      try {
        return execute('bash', ['-c', line]);
      } catch (error) {
        return String(error);
      }
    },
    state: () => ({
      remote: git('--git-dir', remote, 'for-each-ref'),
      head: git('rev-parse', 'HEAD'),
    }),
    remove: () => rmSync(root, { recursive: true, force: true }),
  };
}
