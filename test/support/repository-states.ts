import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

// Repositories that stand in the middle of something, for tests of what lines of git lose there.

const ENV = {
  PATH: '/usr/local/bin:/usr/bin:/bin',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_EDITOR: 'true',
  ...{ GIT_AUTHOR_NAME: 'a', GIT_AUTHOR_EMAIL: 'a@b', GIT_COMMITTER_NAME: 'a', GIT_COMMITTER_EMAIL: 'a@b' },
};

/** Where a repository stands before its work is made. */
const STATES = {
  clean: '',
  merge: 'git merge -q other',
  'merge-waits': 'git merge --no-commit --no-ff -X ours other',
  'cherry-pick': 'git cherry-pick other',
  revert: 'git revert --no-edit HEAD~1',
  rebase: 'git rebase other',
  am: 'git format-patch -q -1 other --stdout > ../p; git am -q ../p',
  'am-3': 'git format-patch -q -1 other --stdout > ../p; git am -q -3 ../p',
} as const;
export type State = keyof typeof STATES;

/** Repositories for the tests of one file, which cleans them up. */
export function makeRepositories() {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'repositories-'));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  const made = new Map<State, string>();

  /** Runs a line outside of any sandbox, whatever comes of it. */
  function bash(text: string, cwd: string): void {
    try {
      // Programs make what they keep in it: npm its logs.
      const env = { ...ENV, HOME: join(root, 'home') };
      execFileSync('bash', ['-c', text], { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
    } catch {
      // A line that fails has lost what it has lost until then.
    }
  }

  /** A copy of a repository in a state, as it is after git has come to a stop there. */
  function repositoryIn(state: State, name: string): string {
    let template = made.get(state);
    if (template === undefined) {
      template = join(root, `template-${state}`);
      mkdirSync(template);
      bash(
        `git init -q -b main; for f in c m s k Makefile; do echo base > $f; done; git add .; git commit -qm base
      git checkout -qb other; echo other > c; echo o > only-other; git add .; git commit -qm other
      git checkout -q main; echo main > c; git commit -qam main; echo again > c; git commit -qam again; ${STATES[state]}`,
        template,
      );
      // It came to a stop a while ago.
      bash("find . -exec touch -h -d '10 seconds ago' {} +; git update-index -q --refresh", template);
      made.set(state, template);
    }
    const at = join(root, name);
    execFileSync('cp', ['-a', template, at]);
    // Git knows files by their inodes, too.
    bash('git update-index -q --refresh', at);
    return at;
  }
  return { root, bash, repositoryIn };
}

/** Work that is not committed, by its kind. */
export const WORK: Readonly<Record<string, string>> = {
  unstaged: 'echo mine > m; echo mine > Makefile',
  staged: 'echo mine > s; git add s',
  'staged-new': 'echo mine > n; git add n',
  untracked: 'echo mine > u',
};
