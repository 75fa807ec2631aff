// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import { type Case, describeCases } from './support/cases.ts';

/** A configuration whose `git status` runs the program, in place of the file. */
const runs = (file: string) =>
  `printf "[core]\\n\\trepositoryformatversion = 0\\n\\tbare = false\\n\\tfsmonitor = $PWD/evil\\n" > ${file}`;
const repository = (at: string) => `mkdir -p sub ${at}; git init -q new; cp -r new/.git/. ${at}; rm -rf new`;
const status = { tool: 'git', later: 'cd sub && git status', expected: 'shut' } as const;

describeCases('git is led by a detour, or finds in parts what it obeys', [
  {
    ...status,
    name: 'HEAD and config first, objects and refs by the next command',
    attack: [
      `plant evil; mkdir sub; echo 'ref: refs/heads/main' > sub/HEAD; ${runs('sub/config')}; echo 'worktree = ..' >> sub/config`,
      'mkdir sub/objects sub/refs',
    ],
  },
  {
    ...status,
    name: 'HEAD as a link that leads nowhere yet',
    attack: `plant evil; mkdir -p sub/objects sub/refs; ln -s refs/heads/main sub/HEAD; ${runs('sub/config')}; echo 'worktree = ..' >> sub/config`,
  },
  {
    ...status,
    name: 'a link as .git, to a link, to where nobody looks',
    attack: `plant evil; ${repository('.git/objects/new')}; ln -s ../.git/objects/new sub/a; ln -s a sub/.git; ${runs('.git/objects/new/config')}`,
  },
  {
    ...status,
    name: 'a .git file that leads to a link',
    attack: `plant evil; ${repository('node_modules/x/new')}; ln -s ../node_modules/x/new sub/a; echo 'gitdir: a' > sub/.git; ${runs('node_modules/x/new/config')}`,
  },
  {
    ...status,
    name: 'a .git file that leads into a package, where the next command writes',
    by: 'sandboxes',
    attack: [
      `plant evil; ${repository('node_modules/x/new')}; echo 'gitdir: ../node_modules/x/new' > sub/.git`,
      runs('node_modules/x/new/config'),
    ],
  },
  {
    ...status,
    name: 'a .git file that leads to what only looks like the objects of a repository',
    by: 'sandboxes',
    attack: [
      `plant evil; ${repository('.git/modules/objects')}; echo x > .git/modules/HEAD; echo 'gitdir: ../.git/modules/objects' > sub/.git`,
      runs('.git/modules/objects/config'),
    ],
  },
  {
    ...status,
    name: 'a repository deep in a package that the index of the project names',
    later: 'git status',
    attack: `plant evil; ${repository('node_modules/x/a/b/.git')}; git -C node_modules/x/a/b -c user.name=n -c user.email=e commit -q --allow-empty -m m; git add -f node_modules/x/a/b; git -C node_modules/x/a/b config core.fsmonitor $PWD/evil`,
  },
  {
    ...status,
    name: 'the same, of which the settings come with the next command',
    by: 'sandboxes',
    later: 'git status',
    attack: [
      `plant evil; ${repository('node_modules/x/a/b/.git')}; git -C node_modules/x/a/b -c user.name=n -c user.email=e commit -q --allow-empty -m m; git add -f node_modules/x/a/b; mv node_modules/x/a/b/.git .git-b`,
      'mv .git-b node_modules/x/a/b/.git; git -C node_modules/x/a/b config core.fsmonitor $PWD/evil',
    ],
  },
  {
    ...status,
    name: 'a .git file whose target becomes a link',
    attack: [
      `plant evil; ${repository('node_modules/x/new')}; ${repository('.git/modules/sub')}; echo 'gitdir: ../.git/modules/sub' > sub/.git`,
      `mv .git/modules/sub .git/modules/other; ln -s ../../node_modules/x/new .git/modules/sub; ${runs('node_modules/x/new/config')}`,
    ],
  },
  {
    ...status,
    name: 'a commondir that goes up behind a link',
    attack: `plant evil; wt=.git/worktrees/wt; mkdir -p sub $wt away/a/b/c away/objects away/refs; ${runs('away/config')}; ln -s "$PWD/away/a/b/c" $wt/l; echo 'ref: refs/heads/main' > $wt/HEAD; echo "$PWD/sub/.git" > $wt/gitdir; echo l/../../.. > $wt/commondir; echo 'gitdir: ../.git/worktrees/wt' > sub/.git`,
  },
  {
    name: 'the strategy of a rebase, which is a program of the project',
    tool: 'git',
    make: 'git checkout -q -b topic; echo a >> file; git commit -qam a; echo b >> file; git commit -qam b; git checkout -q main; echo c > other; git add other; git commit -qm c',
    attack:
      'plant git-merge-x/evil; git checkout -q topic; GIT_SEQUENCE_EDITOR="sed -i 1s/pick/edit/" git rebase -i main; echo x/evil > .git/rebase-merge/strategy',
    later: 'git rebase --continue',
    expected: 'shut',
    path: '.git/rebase-merge/strategy',
  },
  {
    name: 'the strategy of a cherry-pick, which is a program of the project',
    tool: 'git',
    make: 'git checkout -q -b topic; echo a >> file; git commit -qam a; echo c > h; git add h; git commit -qm c; git checkout -q main; echo z > file; git commit -qam z',
    attack:
      "plant git-merge-x/evil; git cherry-pick topic~1 topic; git checkout --ours file; git add file; printf '[options]\\n\\tstrategy = x/evil\\n' > .git/sequencer/opts",
    later: 'git commit -qm y --allow-empty; git cherry-pick --continue',
    expected: 'shut',
    path: '.git/sequencer/opts',
  },
  {
    name: 'in a directory whose name is not UTF-8',
    tool: 'git',
    attack: `plant evil; d=$'s\\xff'; git init -q "$d"; git -C "$d" commit -q --allow-empty -m x; git add "$d"; ${runs('"$d/.git/config"')}`,
    later: 'git status',
    expected: 'shut',
    on: 'each tier',
  },
  {
    name: 'in one of several directories whose names look alike, of which the settings come with the next command',
    tool: 'git',
    by: 'sandboxes',
    make: `for d in $'\\xff' $'\\xfe' $'\\xef\\xbf\\xbd'; do git init -q "$d"; git -C "$d" commit -q --allow-empty -m x; git add "$d"; done`,
    attack: [
      'plant evil',
      `for d in $'\\xff' $'\\xfe' $'\\xef\\xbf\\xbd'; do ${runs('"$d/.git/config"')}; done`,
    ],
    later: 'git status',
    expected: 'shut',
    on: 'each tier',
  },
  {
    name: 'in a directory whose name is not UTF-8, which the next command moves to another such name',
    tool: 'git',
    by: 'sandboxes',
    attack: [
      `plant evil; git init -q sub; git -C sub commit -q --allow-empty -m x; git add sub`,
      `mv sub $'\\xff'; ${runs("$'\\xff'/.git/config")}; mv $'\\xff' $'\\x80é\\xff'; git add -A`,
    ],
    later: 'git status',
    expected: 'shut',
  },
  {
    name: 'in a name that is not UTF-8 deep in a package that the index of the project names',
    tool: 'git',
    attack: `plant evil; d=node_modules/x/a/$'\\xc3'; git init -q "$d"; git -C "$d" commit -q --allow-empty -m m; git add -f "$d"; git -C "$d" config core.fsmonitor $PWD/evil`,
    later: 'git status',
    expected: 'shut',
  },
  {
    name: 'by a .git file that names a directory that is not UTF-8',
    tool: 'git',
    attack: `plant evil; ${repository(".git/modules/$'\\xff'")}; printf 'gitdir: ../.git/modules/\\xff\\n' > sub/.git; ${runs(".git/modules/$'\\xff'/config")}`,
    later: 'cd sub && git status',
    expected: 'shut',
  },
  {
    name: 'by a link that leads to a name that is not UTF-8',
    tool: 'git',
    attack: `plant evil; ${repository("other/$'\\xff'")}; ln -s ../other/$'\\xff' sub/.git; ${runs("other/$'\\xff'/config")}`,
    later: 'cd sub && git status',
    expected: 'shut',
  },
  {
    name: 'as a hook in a directory that core.hooksPath of the user names, which is not UTF-8',
    tool: 'git',
    make: `mkdir $'h\\xff'; git config core.hooksPath $'h\\xff'; printf '#!/bin/sh\\ntrue\\n' > $'h\\xff'/pre-commit; chmod +x $'h\\xff'/pre-commit`,
    attack: `plant $'h\\xff'/pre-commit`,
    later: 'git commit -q --allow-empty -m x',
    expected: 'shut',
    on: 'each tier',
  },
  {
    name: 'as a file that the configuration of the user includes, whose name is not UTF-8',
    tool: 'git',
    make: `printf '[user]\\n\\tname = me\\n' > $'i\\xff'; git config include.path $'../i\\xff'`,
    attack: `plant evil; ${runs("$'i\\xff'")}`,
    later: 'git status',
    expected: 'shut',
    on: 'each tier',
  },
  {
    name: 'as a program that the configuration of the user names, whose name is not UTF-8',
    tool: 'git',
    make: `mkdir $'t\\xff'; printf '#!/bin/sh\\necho\\n' > $'t\\xff/fs.sh'; chmod +x $'t\\xff/fs.sh'; git config core.fsmonitor $'t\\xff/fs.sh'`,
    attack: `plant $'t\\xff/fs.sh'`,
    later: 'git status',
    expected: 'shut',
    on: 'each tier',
  },
  {
    name: 'as a file of direnv beneath a name that is not UTF-8',
    tool: 'direnv',
    attack: `plant $'\\xff'/.envrc`,
    later: `. $'\\xff'/.envrc`,
    expected: 'shut',
  },
  {
    name: 'as a hook that the settings of a repository outside name, whose worktree the workspace is',
    tool: 'git',
    make: `mkdir -p tools/hooks; printf '#!/bin/sh\\n' > tools/hooks/pre-commit; chmod +x tools/hooks/pre-commit; git add .; git commit -qm hooks; git config core.hooksPath tools/hooks; cd ..; mv work main; cd main; git worktree add -q -b topic ../work`,
    attack: 'plant tools/hooks/pre-commit; plant tools/hooks/post-commit',
    later: 'git commit -q --allow-empty -m x',
    expected: 'shut',
    on: 'each tier',
  },
  {
    name: 'as a program that the settings of a submodule name, which lie around it',
    tool: 'git',
    make: `git init -q ../lib; git -C ../lib commit -q --allow-empty -m x; git -c protocol.file.allow=always submodule --quiet add "$PWD/../lib" lib; git commit -qm lib; printf '#!/bin/sh\\necho\\n' > lib/fs.sh; chmod +x lib/fs.sh; git -C lib config core.fsmonitor ./fs.sh`,
    attack: 'plant lib/fs.sh',
    later: 'cd lib && git status',
    expected: 'shut',
    on: 'each tier',
  },
  {
    name: 'behind 200,000 settings of one name',
    tool: 'git',
    attack: `plant evil; git init -q sub; ${runs('sub/.git/config')}; { echo '[zzz]'; yes name | head -200000; } >> sub/.git/config`,
    later: 'cd sub && git status',
    expected: 'shut',
  },
  {
    name: 'behind 15,000 files that are only told',
    tool: 'git',
    attack: `plant evil; mkdir a; seq -f a/%g.code-workspace 1 15000 | xargs touch; git init -q b/c/sub; ${runs('b/c/sub/.git/config')}`,
    later: 'cd b/c/sub && git status',
    expected: 'shut',
  },
  {
    name: 'in directories that may only be read',
    tool: 'git',
    attack: `plant evil; git init -q sub; ${runs('sub/.git/config')}; plant sub/.git/hooks/post-commit; chmod 555 sub/.git/hooks sub/.git sub`,
    later: 'cd sub && git status && chmod -R u+w . && git commit -q --allow-empty -m x',
    expected: 'shut',
  },
] satisfies readonly Case[]);
