// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createSandbox } from '../../src/index.ts';
import { makeDirectory } from '../support/state-home.ts';
import { HOST } from '../support/tiers.ts';
import { type Case, describeCases, describeWork, type Work } from './support/cases.ts';

/** A configuration whose `git status` runs the program, in place of the file. */
const runs = (file: string) =>
  `printf "[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tfsmonitor = $PWD/evil\\n" > ${file}`;

/** The workspace becomes a linked worktree of `../main`, and the directory of git is granted, as people do who work in one. */
const WORKTREE =
  'git worktree prune; cd ..; mv work main; cd main; git worktree add -q -b topic ../work; git -C ../work config --worktree x.y z || true';
const worktree = {
  tool: 'git',
  make: WORKTREE,
  writable: ['../main/.git'],
  path: '../main/.git',
  expected: 'shut',
  on: 'each tier',
  still: 'cd ../main && git status && cd ../work && git status',
} as const;
/** Another project is granted as a whole. */
const project = {
  tool: 'git',
  make: 'cp -r . ../other; mkdir -p ../other/deep ../other/.git/hooks; git init -q ../other/vendor; git -C ../other/vendor commit -q --allow-empty -m x',
  writable: ['../other'],
  path: '../other',
  expected: 'shut',
  on: 'each tier',
} as const;

describeCases('what is granted beside the workspace is as protected', [
  {
    ...worktree,
    name: 'a hook of the repository whose worktree the workspace is',
    attack: 'plant ../main/.git/hooks/pre-commit',
    later: 'git commit -q --allow-empty -m x',
  },
  {
    ...worktree,
    name: 'a program in its settings',
    attack: `plant evil; git config core.fsmonitor $PWD/evil; git -C ../main config core.pager $PWD/evil; ${runs('../main/.git/config')}`,
    later: 'cd ../main && git status',
  },
  {
    ...worktree,
    name: 'the settings of one worktree, and of a module, which were not there',
    attack: `plant evil; ${runs('../main/.git/config.worktree')}; for d in ../main/.git/worktrees/*; do ${runs('$d/config.worktree')}; done; git config extensions.worktreeConfig true`,
    later: 'git config extensions.worktreeConfig true; git status; cd ../main; git status',
  },
  {
    ...worktree,
    name: 'another directory of hooks, and one moved away',
    by: 'sandboxes',
    attack: [
      'mv ../main/.git/hooks ../main/.git/h2; plant ../main/.git/hooks/post-commit',
      'plant ../main/.git/hooks/post-checkout; plant ../main/.git/hooks/pre-commit',
    ],
    later:
      'git commit -q --allow-empty -m x; git checkout -q -b other; cd ../main && git commit -q --allow-empty -m y',
  },
  {
    ...project,
    name: 'a hook of another project',
    attack: 'plant ../other/.git/hooks/pre-commit; plant ../other/vendor/.git/hooks/pre-commit',
    later: 'cd ../other && git commit -q --allow-empty -m x; cd vendor && git commit -q --allow-empty -m x',
  },
  {
    ...project,
    name: 'the settings of another project, and of one in it, by a session',
    by: 'session',
    attack: [
      'plant evil',
      `git -C ../other config core.fsmonitor $PWD/evil; git -C ../other/vendor config core.fsmonitor $PWD/evil`,
    ],
    later: 'cd ../other && git status; cd vendor && git status',
  },
  {
    ...project,
    name: 'a repository that is new there',
    attack: `plant evil; git init -q ../other/deep/new; ${runs('../other/deep/new/.git/config')}; plant ../other/deep/new/.git/hooks/post-commit`,
    later: 'cd ../other/deep/new && git status; git commit -q --allow-empty -m x',
  },
  {
    ...project,
    name: 'what direnv and editors obey there',
    tool: 'direnv, VS Code',
    attack: 'plant ../other/.envrc; plant ../other/deep/.envrc; plant ../other/.vscode/tasks.json',
    later: 'cd ../other; for f in .envrc deep/.envrc .vscode/tasks.json; do test ! -e $f || . ./$f; done',
  },
  {
    ...project,
    name: 'a directory of settings, by the names that lie in it',
    tool: 'desktops, fish',
    make: 'mkdir -p ../dot/.config/fish',
    writable: ['../dot/.config'],
    path: '../dot/.config',
    attack:
      'plant ../dot/.config/autostart/x.desktop; plant ../dot/.config/fish/config.fish; plant ../dot/.config/git/hooks/pre-commit',
    later:
      'cd ../dot/.config; for f in autostart/x.desktop fish/config.fish git/hooks/pre-commit; do test ! -e $f || . ./$f; done',
  },
  {
    ...project,
    name: 'a directory of settings of the shell',
    tool: 'bash',
    make: 'mkdir ../dot; echo true > ../dot/.bashrc',
    writable: ['../dot'],
    path: '../dot',
    attack: 'plant ../dot/.bashrc; plant ../dot/.ssh/rc; plant ../dot/.zshenv',
    later: 'cd ../dot; for f in .bashrc .ssh/rc .zshenv; do test ! -e $f || . ./$f; done',
  },
] satisfies readonly Case[]);

describeWork('what is granted beside the workspace is worked in', [
  {
    name: 'a linked worktree',
    make: `${WORKTREE}; git -C ../main remote add origin ../nowhere`,
    writable: ['../main/.git'],
    work: [
      'echo a > a; git add a; git commit -qm a; git checkout -q -b feature; echo b > b; git add b; git commit -qm b; git rebase -q topic; git tag v1; git stash list; git gc -q',
      'git config user.email me@here; git branch --set-upstream-to=topic; git worktree add -q inner; cd inner; echo c > c; git add c; git commit -qm c',
    ],
    proof:
      'git fsck; test "$(git config user.email)" = me@here; test "$(git log --oneline feature | wc -l)" = 3; test "$(git config branch.feature.merge)" = refs/heads/topic; git -C inner log -1 --format=%s | grep -qx c; git -C ../main status',
  },
  {
    name: 'a directory of output, and a cache',
    make: 'mkdir -p ../out ../cache/registry/src',
    writable: ['../out', '../cache'],
    work: [
      'for n in $(seq 20); do d=../cache/registry/src/c-$n; mkdir -p $d; echo "fn main() {}" > $d/build.rs; echo all: > $d/Makefile; echo "{}" > $d/package.json; done; git init -q --bare ../cache/db.git; echo x > ../out/x',
    ],
    proof: 'test -e ../cache/registry/src/c-20/build.rs && git -C ../cache/db.git rev-parse && cat ../out/x',
  },
] satisfies readonly Work[]);

describe('what is granted and not looked at', () => {
  const root = makeDirectory(join(realpathSync(tmpdir()), 'granted-beside-'));
  const work = join(root, 'work');
  const dot = join(root, 'dot');
  mkdirSync(work);
  mkdirSync(join(dot, '.ssh'), { recursive: true });
  mkdirSync(join(dot, '.config/fish/conf.d'), { recursive: true });
  mkdirSync(join(root, 'other'));
  writeFileSync(join(dot, '.bashrc'), '');
  for (const directory of [
    'bare.git',
    'of/.git/modules/sub',
    'of/.git/modules/hooks',
    'of/.git/worktrees/wt',
  ]) {
    mkdirSync(join(root, directory, 'hooks/parts'), { recursive: true });
    for (const name of ['HEAD', 'config', 'commondir']) writeFileSync(join(root, directory, name), '');
  }
  mkdirSync(join(root, 'wt'));
  writeFileSync(join(root, 'wt/.git'), 'gitdir: ../of/.git/worktrees/wt\n');

  const stateWith = async (writable: readonly string[]) => {
    await using sandbox = await createSandbox({ workspace: work, policyFiles: false, writable });
    return sandbox.plan.report.controls.find(({ id }) => id === 'protected-paths');
  };

  it.skipIf(!HOST.namespaces).each([
    ['a directory that a program obeys', join(dot, '.ssh')],
    ['one that lies in such a directory', join(dot, '.config/fish/conf.d')],
    ['a file that a program obeys', join(dot, '.bashrc')],
    ['what all programs share', '/var/tmp'],
    ['the hooks of a repository without a name that says so', join(root, 'bare.git/hooks')],
    ['its settings', join(root, 'bare.git/config')],
    ['a directory in its hooks', join(root, 'bare.git/hooks/parts')],
    ['the hooks of a submodule', join(root, 'of/.git/modules/sub/hooks')],
    ['what a linked worktree shares', join(root, 'of/.git/worktrees/wt/commondir')],
    ['a file that leads to a repository', join(root, 'wt/.git')],
  ])('%s is named in the report', async (_, path) => {
    expect(await stateWith([path])).toMatchObject({
      state: 'degraded',
      reason: expect.stringContaining(`${path} can be written by the policy`),
    });
  });

  it.skipIf(!HOST.namespaces).each(['other', 'bare.git', 'of/.git/modules/sub', 'of/.git/modules/hooks'])(
    'is nothing where an ordinary directory or a whole repository is granted: %s',
    async (name) => {
      expect(await stateWith([join(root, name)])).toMatchObject({ state: 'enforced' });
    },
  );
});
