// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import { type Case, describeCases, describeWork, type Work } from './support/cases.ts';

/** A configuration whose `git status` runs the program, in place of the file. */
const runs = (file: string) =>
  `printf "[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tfsmonitor = $PWD/evil\\n" > ${file}`;

/** The workspace becomes a linked worktree of `../main`, beside another one. Nothing is granted. */
const LINKED =
  'cd ..; mv work main; cd main; git worktree add -q -b topic ../work; git worktree add -q -b side ../side; find .git/worktrees/side -exec touch -d 2020-01-01 {} +';
/** The workspace becomes a directory of the repository around it. */
const SUBDIRECTORY =
  'mkdir -p ../packages/b; mv .git ..; cd ..; git add -A . ":!home"; git commit -qm tree; git worktree add -q -b side ../side-$(basename $PWD); find .git/worktrees -exec touch -d 2020-01-01 {} +';
/** The workspace becomes a submodule of `../super`, as which it was cloned. */
const SUBMODULE =
  'cd ..; mv work origin; git init -q -b main super; cd super; git -c protocol.file.allow=always submodule --quiet add ../origin m; git commit -qm m; mv m ../work; cd ..; echo "gitdir: ../super/.git/modules/m" > work/.git; git config -f super/.git/modules/m/config core.worktree ../../../../work; cd work; git status';
/** The workspace becomes a worktree of a bare repository whose name says nothing. */
const BARE = 'cd ..; git clone -q --bare work .bare; rm -rf work; git -C .bare worktree add -q ../work main';

const linked = { tool: 'git', make: LINKED, expected: 'shut', on: 'each tier' } as const;
const inside = { tool: 'git', make: SUBDIRECTORY, expected: 'shut', on: 'each tier' } as const;
const module = { tool: 'git', make: SUBMODULE, expected: 'shut' } as const;
const bare = { tool: 'git', make: BARE, expected: 'shut' } as const;

describeCases('what git obeys of the repository around the workspace is as protected', [
  {
    ...linked,
    name: 'a hook of the repository of a linked worktree',
    path: '../main/.git',
    attack: 'plant ../main/.git/hooks/pre-commit',
    later: 'git commit -q --allow-empty -m x',
  },
  {
    ...linked,
    name: 'programs in its settings, by git and by hand',
    path: '../main/.git',
    attack: `plant evil; git config core.fsmonitor $PWD/evil; git config core.hooksPath $PWD; ${runs('../main/.git/config')}`,
    later: 'cd ../main && git status',
    still: 'cd ../main && git status && cd ../work && git status',
  },
  {
    ...linked,
    name: 'settings of one worktree, its own and that of the main one',
    path: '../main/.git',
    attack: `plant evil; ${runs('../main/.git/config.worktree')}; for d in ../main/.git/worktrees/*; do ${runs('$d/config.worktree')}; done; git config extensions.worktreeConfig true`,
    later:
      'git config extensions.worktreeConfig true; git status; cd ../main; git status; cd ../side; git status',
  },
  {
    ...linked,
    name: 'where its own directory leads, to settings in the workspace',
    path: '../main/.git',
    attack: `plant evil; cp -r ../main/.git own; ${runs('own/config')}; echo $PWD/own > ../main/.git/worktrees/work/commondir`,
    later: 'git status',
  },
  {
    ...linked,
    name: 'a rebase of another worktree, a new one, and one that goes on there',
    path: '../main/.git/worktrees/side',
    attack:
      'plant evil; mkdir -p ../main/.git/worktrees/side/rebase-merge; cd ../main/.git/worktrees/side; echo "exec $OLDPWD/evil" | tee rebase-merge/git-rebase-todo; cp HEAD rebase-merge/head-name; git rev-parse HEAD | tee rebase-merge/onto rebase-merge/orig-head; touch rebase-merge/done rebase-merge/interactive; echo 1 | tee rebase-merge/end rebase-merge/msgnum; rm -rf ../side/index',
    later: 'cd ../side && git rebase --continue',
  },
  {
    ...linked,
    name: 'its .git file, and a new one in a directory',
    path: '.',
    attack: `plant evil; git init -q new; ${runs('new/.git/config')}; rm .git; echo "gitdir: new/.git" > .git`,
    later: 'git status',
  },
  {
    ...linked,
    name: 'a rebase of its own that goes on with a program',
    path: '../main/.git',
    attack:
      'plant evil; git commit -q --allow-empty -m a; git commit -q --allow-empty -m b; GIT_SEQUENCE_EDITOR="sed -i 1s/pick/edit/" git rebase -q --keep-empty -i HEAD~2; echo "exec $PWD/evil" >> ../main/.git/worktrees/work/rebase-merge/git-rebase-todo',
    later: 'git rebase --continue',
  },
  {
    ...inside,
    name: 'a hook of the repository that the workspace is a directory of',
    path: '../.git',
    attack: 'plant ../.git/hooks/pre-commit; plant ../.git/hooks/post-index-change',
    later: 'cd .. && git commit -q --allow-empty -m x',
  },
  {
    ...inside,
    name: 'programs in its settings',
    path: '../.git',
    attack: `plant evil; git config core.fsmonitor $PWD/evil; ${runs('../.git/config')}`,
    later: 'cd .. && git status',
  },
  {
    ...inside,
    name: 'a program in another directory of the working tree',
    path: '..',
    make: `${SUBDIRECTORY}; echo true > packages/b/run; chmod +x packages/b/run`,
    attack: 'plant ../packages/b/run',
    later: '../packages/b/run',
  },
  {
    ...module,
    name: 'a hook of a submodule',
    path: '../super/.git/modules/m',
    attack: 'plant ../super/.git/modules/m/hooks/pre-commit',
    later: 'git commit -q --allow-empty -m x',
  },
  {
    ...module,
    name: 'programs in the settings of a submodule',
    path: '../super/.git/modules/m',
    attack: `plant evil; git config core.fsmonitor $PWD/evil; ${runs('../super/.git/modules/m/config')}; echo "worktree = $PWD" >> ../super/.git/modules/m/config`,
    later: 'git status; cd ../super && git status',
  },
  {
    ...bare,
    name: 'hooks and settings of a bare repository whose worktree it is',
    path: '../.bare',
    make: `${BARE}; rm -rf ../.bare/hooks`,
    attack: `plant evil; plant ../.bare/hooks/pre-commit; git config core.fsmonitor $PWD/evil; ${runs('../.bare/config')}`,
    later: 'git status; git commit -q --allow-empty -m x',
  },
] satisfies readonly Case[]);

const EVERYDAY =
  'echo a > a; git add a; git commit -qm a; git checkout -q -b feature; echo b > b; git add b; git commit -qm b; git rebase -q HEAD~1; git tag v1; echo c >> a; git stash -q; git stash pop -q; git checkout -q a; git fetch -q . ; git branch -q other; git branch -qD other; git reflog > /dev/null; git status; git log --oneline';
const PROOF = 'git fsck; test "$(git log --format=%s -1 feature)" = b; git rev-parse v1; git status';

describeWork('git works in a part of a repository, without anything granted', [
  {
    name: 'a linked worktree',
    make: LINKED,
    work: [
      EVERYDAY,
      'git gc -q; git worktree prune; git pack-refs --all',
      'git config user.email me@here; git worktree add -q inner; cd inner; echo c > c; git add c; git commit -qm c',
      'cd inner; git commit -q --allow-empty -m d',
    ],
    proof: `${PROOF}; test "$(git config user.email)" = me@here; git -C inner log -1 --format=%s | grep -qx d; git -C ../main status; git -C ../side status; git -C ../side fsck`,
  },
  {
    name: 'a directory of a repository',
    make: SUBDIRECTORY,
    work: [
      EVERYDAY,
      'git gc -q; git worktree prune; cat ../packages/../.git/HEAD; test -d ../packages/b',
      'git rev-parse --show-toplevel',
    ],
    proof: `${PROOF}; git -C ../../side-$(basename $(dirname $PWD)) status`,
  },
  {
    name: 'the main working tree, of which other ones lie outside',
    make: 'git worktree add -q -b side ../side; find .git/worktrees/side -exec touch -d 2020-01-01 {} +',
    work: [EVERYDAY, 'git gc -q; git worktree prune'],
    proof: `${PROOF}; git -C ../side status`,
  },
  {
    name: 'a submodule',
    make: SUBMODULE,
    work: [EVERYDAY, 'git gc -q'],
    proof: PROOF,
  },
  {
    name: 'a worktree of a bare repository',
    make: BARE,
    work: [EVERYDAY, 'git gc -q'],
    proof: PROOF,
  },
  {
    name: 'two worktrees at once',
    make: LINKED,
    work: [
      [
        'for n in 1 2 3 4 5 6 7 8; do git commit -q --allow-empty -m $n; done; git config branch.topic.description one',
        'git branch two; git update-ref refs/heads/two HEAD; git config branch.two.description two; git stash list; git pack-refs --all',
      ],
    ],
    proof:
      'git fsck; test "$(git config branch.topic.description)" = one; test "$(git config branch.two.description)" = two; git -C ../main status',
  },
] satisfies readonly Work[]);
