// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import { HOST } from '../support/tiers.ts';
import { type Case, describeCases, hangsAt } from './support/cases.ts';

const git = (one: Omit<Case, 'tool'>): Case => ({ ...one, tool: 'git' });
/** A program for a repository in `DIRECTORY`, set by the command. */
const monitor = (directory: string) => `git config -f ${directory}/config core.fsmonitor "$PWD/evil"`;
const NESTED = `plant evil; git init -q sub; ${monitor('sub/.git')}`;
/** What git takes for a repository, whatever it is called. */
const bareAt = (directory: string) =>
  `mkdir -p ${directory}; cp -r .git/refs .git/objects .git/HEAD ${directory}; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = "%s"\\n' "$PWD" > ${directory}/config; ${monitor(directory)}`;

const HOOKS: readonly Case[] = [
  git({
    name: 'a hook',
    attack: 'plant .git/hooks/pre-commit',
    later: 'git commit --allow-empty -m x',
    expected: 'shut',
    path: '.git/hooks',
    still: 'git commit --allow-empty -m x',
  }),
  git({
    name: 'a hook in place of the user’s own',
    make: 'printf "#!/bin/sh\\ntouch mine\\n" > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit',
    attack: 'rm -f .git/hooks/pre-commit; plant .git/hooks/pre-commit',
    later: 'git commit --allow-empty -m x',
    expected: 'shut',
    path: '.git/hooks',
    still: 'rm -f mine; git commit --allow-empty -m x && test -e mine',
  }),
  git({
    name: 'the hooks directory, moved away and made anew',
    attack: 'mv .git/hooks .git/old; plant .git/hooks/post-checkout',
    later: 'git checkout -b other',
    expected: 'shut',
    path: '.git',
    still: 'git status',
  }),
  git({
    name: 'the repository, moved away and made anew',
    attack: 'mv .git old; cp -r old .git; plant .git/hooks/post-checkout',
    later: 'git checkout -b other',
    expected: 'shut',
    path: '.git',
    still: 'git status',
  }),
  git({
    name: 'a dangling link as hooks directory, filled by the next command',
    make: 'rm -rf .git/hooks',
    attack: ['rm -rf .git/hooks; ln -s ../steps .git/hooks', 'plant steps/post-checkout'],
    later: 'git checkout -b other',
    expected: 'shut',
    path: '.git/hooks',
    still: 'git status',
  }),
  git({
    name: 'the user’s own core.hooksPath, which is not there yet',
    make: 'git config core.hooksPath steps',
    attack: 'plant steps/post-checkout',
    later: 'git checkout -b other',
    expected: 'shut',
    path: 'steps',
    still: 'git status',
  }),
  git({
    name: 'a program that the user’s own hook runs',
    make: 'mkdir tools; printf "#!/bin/sh\\ntrue\\n" > tools/watch; chmod +x tools/watch; git config core.fsmonitor tools/watch',
    attack: 'rm -f tools/watch; plant tools/watch',
    later: 'git status',
    expected: 'shut',
    path: 'tools/watch',
    still: 'git status',
  }),
  git({
    name: 'hooks at the last moment, by a process in the background',
    attack:
      // Whoever waits for the lock waits for its end.
      'plant staged; exec 9> lock; flock 9; (sleep 0.3; mv staged .git/hooks/post-checkout) > /dev/null 2>&1 & plant .git/hooks/post-merge',
    later: 'flock lock git checkout -b other',
    expected: 'shut',
    path: '.git/hooks',
    still: 'git status',
  }),
];

const MADE: readonly Case[] = [
  git({
    name: 'a repository of its own, with a program',
    attack: NESTED,
    later: 'cd sub && git status',
    expected: 'shut',
    path: 'sub',
    still: 'cd sub && git status',
  }),
  git({
    name: 'a repository of its own, with a hook',
    attack: 'git init -q sub; plant sub/.git/hooks/pre-commit',
    later: 'cd sub && git commit --allow-empty -m x',
    expected: 'shut',
    path: 'sub/.git/hooks/pre-commit',
    still: 'cd sub && git -c user.name=a -c user.email=a commit --allow-empty -m x',
  }),
  git({
    name: 'a repository that is moved in',
    attack: `plant evil; mkdir -p sub/x; cp -r .git/. sub/x; ${monitor('sub/x')}; plant sub/x/hooks/post-checkout; mv sub/x sub/.git`,
    later: 'cd sub; git status; git checkout -b other',
    expected: 'shut',
    path: 'sub',
    still: 'cd sub && git status',
  }),
  git({
    name: 'a directory with a repository in it that is moved in',
    attack: [`plant evil; mkdir -p a/b; cp -r .git a/b/.git; ${monitor('a/b/.git')}; mv a c`, 'mv c d'],
    later: 'cd d/b; git status',
    expected: 'shut',
    still: 'cd d/b && git status',
  }),
  git({
    name: 'what the top’s index names as a repository, so that git status at the top runs it',
    make: 'git init -q sub; git -C sub commit -q --allow-empty -m x; git add sub; git commit -qm sub; rm -rf sub/.git',
    attack: `${NESTED}; git -C sub commit -q --allow-empty -m y`,
    later: 'git status',
    expected: 'shut',
    path: 'sub/.git/config',
    still: 'git status',
  }),
  git({
    name: 'a directory that is a repository by its content (HEAD, objects, refs)',
    attack: `plant evil; ${bareAt('docs/data')}`,
    later: 'cd docs/data; git status',
    expected: 'shut',
    path: 'docs/data/config',
    still: 'cd docs/data; git log',
  }),
  git({
    name: 'the project itself as one (HEAD, objects, refs at its top)',
    make: 'rm -rf .git',
    attack: `plant evil; mkdir objects refs; echo ref: refs/heads/main > HEAD; printf '[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tworktree = .\\n\\tfsmonitor = "%s"\\n' "$PWD/evil" > config`,
    later: 'git status',
    expected: 'shut',
    path: 'config',
    still: 'git rev-parse --git-dir',
  }),
  git({
    name: 'a repository around the project’s files, where there was none',
    make: 'rm -rf .git',
    attack: `plant evil; git init -q .; ${monitor('.git')}`,
    later: 'git status',
    expected: 'shut',
    path: '.git/config',
    still: 'git status',
  }),
  git({
    name: 'a .git file that leads to a directory of any name',
    attack: `plant evil; mkdir sub; cp -r .git hidden; ${monitor('hidden')}; echo "gitdir: ../hidden" > sub/.git`,
    later: 'cd sub; git status',
    expected: 'shut',
    still: 'cd sub; git status',
  }),
  git({
    name: 'a .git file, and a rebase with exec where it leads',
    attack: `plant evil; mkdir sub; cp -r .git hidden; echo "gitdir: ../hidden" > sub/.git; cd sub; git checkout -q -f; git commit -q --allow-empty -m x; GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -q -i --keep-empty HEAD~1; echo "exec ../evil" >> ../hidden/rebase-merge/git-rebase-todo`,
    later: 'cd sub; GIT_EDITOR=true git rebase --continue',
    expected: 'shut',
    path: 'hidden/rebase-merge/git-rebase-todo',
  }),
  git({
    name: 'a link as .git',
    attack: `plant evil; mkdir sub; cp -r .git hidden; ${monitor('hidden')}; ln -s ../hidden sub/.git`,
    later: 'cd sub; git status',
    expected: 'shut',
    still: 'git status',
  }),
  git({
    name: 'what a .git file of the project leads to, which is not there yet',
    make: 'rm -rf .git; echo "gitdir: real.git" > .git',
    attack: `plant evil; git init -q --bare real.git; git config -f real.git/config core.bare false; ${monitor('real.git')}`,
    later: 'git status',
    expected: 'shut',
    path: 'real.git/config',
  }),
];

const WITH_SUBMODULE =
  'git init -q ../lib; git -C ../lib commit -q --allow-empty -m x; git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm lib';
const WITH_WORKTREE = 'git worktree add -q tree -b tree';
const IN_REBASE =
  "git commit -q --allow-empty -m two; GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -q -i --keep-empty HEAD~1";

const PARTS: readonly Case[] = [
  git({
    name: 'a submodule’s settings',
    make: WITH_SUBMODULE,
    attack: 'plant evil; git -C lib config core.fsmonitor "$PWD/evil"',
    later: 'git status',
    expected: 'shut',
    path: '.git/modules/lib/config',
    still: 'git status && git -C lib status',
  }),
  git({
    name: 'a submodule’s hooks',
    make: WITH_SUBMODULE,
    attack: 'plant .git/modules/lib/hooks/post-checkout',
    later: 'git -C lib checkout -b other',
    expected: 'shut',
    path: '.git/modules/lib/hooks',
    still: 'git status && git -C lib status',
  }),
  git({
    name: 'a submodule’s worktree, which leads to the hooks',
    make: WITH_SUBMODULE,
    attack:
      'cd lib; plant post-checkout; git add .; git commit -qm x; git rm -q post-checkout; git commit -qm y; git config core.worktree ../../hooks',
    later: 'git -C lib checkout -q -f HEAD~1; git checkout -b other',
    expected: 'shut',
    path: '.git/modules/lib/config',
    still: 'git -C lib status',
  }),
  git({
    name: 'a submodule’s .git file',
    make: WITH_SUBMODULE,
    attack: `plant evil; cp -r .git/modules/lib elsewhere; git config -f elsewhere/config --unset core.worktree; ${monitor('elsewhere')}; rm -f lib/.git; echo "gitdir: ../elsewhere" > lib/.git`,
    later: 'git status; git -C lib status',
    expected: 'shut',
    still: 'git -C lib status',
  }),
  git({
    name: 'a submodule that the command adds, with a hook',
    make: 'git init -q ../lib; git -C ../lib commit -q --allow-empty -m x',
    attack:
      'cp -r .git copy; git init -q copy2; git -C copy2 commit -q --allow-empty -m x; git -c protocol.file.allow=always submodule --quiet add ./copy2 lib; plant .git/modules/lib/hooks/post-checkout; test -d .git/modules/lib || plant lib/.git/hooks/post-checkout',
    later: 'git -C lib checkout -b other',
    expected: 'shut',
  }),
  git({
    name: 'a linked worktree’s settings',
    make: `${WITH_WORKTREE}; git config extensions.worktreeConfig true`,
    attack: 'plant evil; git config -f .git/worktrees/tree/config.worktree core.fsmonitor "$PWD/evil"',
    later: 'cd tree; git status',
    expected: 'shut',
    path: '.git/worktrees/tree/config.worktree',
    still: 'cd tree; git status',
  }),
  git({
    name: 'a linked worktree’s commondir',
    make: WITH_WORKTREE,
    attack: `plant evil; cp -r .git common; ${monitor('common')}; echo "$PWD/common" > x; cat x > .git/worktrees/tree/commondir`,
    later: 'cd tree; git status',
    expected: 'shut',
    path: '.git/worktrees/tree/commondir',
    still: 'cd tree; git status',
  }),
  git({
    name: 'the .git file of a worktree of a repository elsewhere',
    make: 'mv .git ../main.git; git --git-dir=../main.git config core.bare true; git --git-dir=../main.git worktree add -q ../tree -b tree; cp -a ../tree/. .; git --git-dir=../main.git worktree repair . ; git status',
    attack: `plant evil; git init -q x; mv x/.git common; ${monitor('common')}; rm -f .git; echo "gitdir: common" > .git`,
    later: 'git status',
    expected: 'shut',
    still: 'git status && git log',
  }),
  git({
    name: 'the to-do list of a rebase that is under way',
    make: IN_REBASE,
    attack: 'plant evil; printf "\\tx \\"%s\\"\\n" "$PWD/evil" >> .git/rebase-merge/git-rebase-todo',
    later: 'GIT_EDITOR=true git rebase --continue',
    expected: 'shut',
    path: '.git/rebase-merge/git-rebase-todo',
    still: '! test -e .git/rebase-merge && git status',
  }),
  git({
    name: 'a rebase that the command begins',
    attack: `plant evil; ${IN_REBASE}; echo "exec ./evil" >> .git/rebase-merge/git-rebase-todo`,
    later: 'GIT_EDITOR=true git rebase --continue',
    expected: 'shut',
    path: '.git/rebase-merge/git-rebase-todo',
    still: 'git status',
  }),
  git({
    name: 'the to-do list of a linked worktree',
    make: `${WITH_WORKTREE}; cd tree; ${IN_REBASE}`,
    attack: 'plant evil; echo "exec ../evil" >> .git/worktrees/tree/rebase-merge/git-rebase-todo',
    later: 'cd tree; GIT_EDITOR=true git rebase --continue',
    expected: 'shut',
    path: '.git/worktrees/tree/rebase-merge/git-rebase-todo',
  }),
];

const many = (top: string, times: number) =>
  `for ((i = 0; i < ${times}; i++)); do for ((j = 0; j < 100; j++)); do echo ${top}/$i/$j; done; done | xargs mkdir -p`;

const EVASIONS: readonly Case[] = [
  git({
    name: 'in .git/worktrees, behind 2,500 directories there',
    attack: [many('.git/worktrees', 25), 'plant .git/hooks/post-checkout'],
    by: 'sandboxes',
    later: 'git checkout -b other',
    expected: 'shut',
    path: '.git/hooks',
  }),
  git({
    name: 'in a directory that nobody may enter',
    attack: `${NESTED}; chmod 0 sub`,
    later: 'chmod 700 sub; cd sub; git status',
    // Root sees it all the same.
    expected: HOST.root ? 'shut' : 'told',
    path: 'sub',
  }),
  git({
    name: 'behind 20,000 new directories',
    attack: `${many('many', 200)}; plant evil; git init -q many/199/99/deep; ${monitor('many/199/99/deep/.git')}`,
    later: 'cd many/199/99/deep; git status',
    expected: 'shut',
    path: 'many/199/99/deep/.git/config',
  }),
  git({
    name: 'in a directory that nobody may enter until the next command',
    attack: [`${NESTED}; chmod 0 sub`, 'chmod 700 sub'],
    later: 'cd sub; git status',
    expected: 'shut',
    path: 'sub/.git/config',
  }),
  git({
    name: 'without HEAD, which the next command brings back',
    attack: [`plant evil; ${bareAt('data')}; mv data/HEAD data/H`, 'mv data/H data/HEAD'],
    later: 'cd data; git status',
    expected: 'shut',
    path: 'data/config',
  }),
  git({
    name: 'without objects, which the next command makes',
    attack: [`plant evil; ${bareAt('data')}; mv data/objects x`, 'mv x data/objects'],
    later: 'cd data; git status',
    expected: 'shut',
    path: 'data/config',
  }),
  git({
    name: 'without refs, which a command of another sandbox makes',
    attack: [`plant evil; ${bareAt('data')}; mv data/refs x`, 'mkdir data/refs'],
    by: 'sandboxes',
    later: 'cd data; git status',
    expected: 'shut',
    path: 'data/config',
  }),
  git({
    name: 'without HEAD, which a command of another sandbox brings back',
    attack: [`plant evil; ${bareAt('data')}; mv data/HEAD data/H`, 'mv data/H data/HEAD'],
    by: 'sandboxes',
    later: 'cd data; git status',
    expected: 'shut',
    path: 'data/config',
  }),
  git({
    name: 'a .git without HEAD, which the next command brings back',
    attack: [
      `git init -q sub; mv sub/.git/HEAD sub/.git/H`,
      `plant evil; ${monitor('sub/.git')}`,
      'mv sub/.git/H sub/.git/HEAD',
    ],
    later: 'cd sub; git status',
    expected: 'shut',
    path: 'sub/.git/config',
  }),
  git({
    name: 'of a session',
    attack: ['git init -q sub', 'cd sub; plant evil; git config core.fsmonitor "$PWD/evil"'],
    by: 'session',
    later: 'cd sub; git status',
    expected: 'shut',
    path: 'sub/.git/config',
    still: 'cd sub; git status',
  }),
  git({
    name: 'of a session, in the settings that were there',
    attack: ['plant evil; git config user.name you', 'git config core.fsmonitor "$PWD/evil"', 'git status'],
    by: 'session',
    later: 'git status',
    expected: 'shut',
    path: '.git/config',
    still: 'test "$(git config user.name)" = you && git status',
  }),
  git({
    name: 'of a session, in the settings that its user changed meanwhile',
    attack: ['plant evil', { outside: 'git config user.name them' }, 'git config core.fsmonitor "$PWD/evil"'],
    by: 'session',
    later: 'git status',
    expected: 'shut',
    path: '.git/config',
    still: 'test "$(git config user.name)" = them && git status',
  }),
  git({
    name: 'of a session, in hooks that its user made anew meanwhile',
    attack: [
      'plant evil',
      { outside: 'rm -rf .git/hooks; mkdir .git/hooks' },
      'plant .git/hooks/post-checkout',
    ],
    by: 'session',
    later: 'git checkout -b other',
    expected: 'shut',
    path: '.git/hooks',
    still: 'git status',
  }),
  git({
    name: 'of a process that a session left in the background',
    attack: [
      'plant evil; git init -q sub; (sleep 0.4; git -C sub config core.fsmonitor "$PWD/evil"; touch done) > /dev/null 2>&1 &',
      'true',
      'until [ -e done ]; do sleep 0.05; done',
    ],
    by: 'session',
    later: 'cd sub; git status',
    expected: 'shut',
    path: 'sub/.git/config',
  }),
  git({
    name: 'of a job in the background',
    attack: `${NESTED}; plant .git/hooks/post-checkout`,
    by: 'job',
    later: 'git checkout -b other; cd sub; git status',
    expected: 'shut',
  }),
  git({
    name: 'a FIFO as configuration of a repository of its own',
    attack: 'git init -q sub; rm sub/.git/config; mkfifo sub/.git/config',
    later: hangsAt('sub/.git/config', 'git -C sub status'),
    expected: 'shut',
    path: 'sub/.git/config',
  }),
];

// With a view the hooks cannot be written; without one they are taken away when the command has ended.
describeCases(
  'hooks',
  HOOKS.map((one) => ({ ...one, on: 'each tier' })),
);
describeCases('repositories that a command makes', MADE);
describeCases('parts of a repository', PARTS);
describeCases('ways past those who look', EVASIONS);
