// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import { type Case, describeCases, describeWork, type Work } from './support/cases.ts';

const NESTED =
  'git init -q -b main pkg; git -C pkg commit -q --allow-empty -m x; printf "#!/bin/sh\\ntouch ran\\n" > pkg/.git/hooks/pre-commit; chmod +x pkg/.git/hooks/pre-commit; echo "export MINE=1" > pkg/.envrc; git -C pkg config core.pager "/usr/bin/less -R"; git -C pkg config alias.st status; printf "pkg\\n" > .git/info/exclude';
/** A program in the settings of a repository, which git status runs. */
const monitor = (directory: string) => `git config -f ${directory}/config core.fsmonitor "$PWD/evil"`;
const git = (one: Omit<Case, 'tool' | 'expected' | 'on'>): Case => ({
  ...one,
  tool: 'git',
  expected: 'shut',
  on: 'each tier',
});

describeCases('a repository that is content is settled when a command ends', [
  git({
    name: 'a program in its settings',
    make: NESTED,
    attack: `plant evil; ${monitor('pkg/.git')}`,
    later: 'cd pkg && git status',
    path: 'pkg/.git/config',
    still: 'cd pkg && git status && test "$(git config core.pager)" = "/usr/bin/less -R"',
  }),
  git({
    name: 'a hook in place of the user’s own, and a new one',
    make: NESTED,
    attack: 'plant pkg/.git/hooks/pre-commit; plant pkg/.git/hooks/post-commit',
    later: 'cd pkg && git commit -q --allow-empty -m y',
    path: 'pkg/.git/hooks',
    still: 'cd pkg && rm -f ran && git commit -q --allow-empty -m y && test -e ran',
  }),
  git({
    name: 'another one in its place, while it is removed',
    make: NESTED,
    attack: `plant evil; rm -rf pkg; git init -q pkg; ${monitor('pkg/.git')}; plant pkg/.git/hooks/pre-commit`,
    later: 'cd pkg && git status; git commit -q --allow-empty -m y',
    path: 'pkg/.git',
    still: 'cd pkg && git status',
  }),
  git({
    name: 'moved, and changed where it is then',
    make: NESTED,
    attack: `plant evil; mv pkg pkg2; ${monitor('pkg2/.git')}; plant pkg2/.git/hooks/post-commit; plant pkg2/.git/hooks/pre-commit`,
    later: 'cd pkg2 && git status; git commit -q --allow-empty -m y',
    path: 'pkg2/.git',
    still: 'cd pkg2 && git status && test "$(git config core.pager)" = "/usr/bin/less -R"',
  }),
  git({
    name: 'moved to where what its settings name is another program',
    make: `${NESTED}; mkdir tools other; printf "#!/bin/sh\\n" > tools/watch; chmod +x tools/watch; git -C pkg config core.fsmonitor ../tools/watch; git -C pkg config core.hooksPath ../tools`,
    attack:
      'mkdir -p other/tools; plant other/tools/watch; plant other/tools/post-checkout; mv pkg other/pkg',
    later: 'cd other/pkg && git status; git checkout -q -b other',
    path: 'other/pkg/.git/config',
    still: 'cd other/pkg && git status',
  }),
  git({
    name: 'only its settings taken away, and HEAD with them for a while',
    by: 'commands',
    make: NESTED,
    attack: [
      'rm pkg/.git/config; mv pkg/.git/HEAD pkg/.git/H',
      `plant evil; mv pkg/.git/H pkg/.git/HEAD; printf "[core]\\n\\trepositoryformatversion = 0\\n\\tfsmonitor = $PWD/evil\\n" > pkg/.git/config`,
    ],
    later: 'cd pkg && git status',
    path: 'pkg/.git/config',
    still: 'cd pkg && git status && test "$(git config core.pager)" = "/usr/bin/less -R"',
  }),
  git({
    name: 'swapped with another one during a removal',
    make: `${NESTED}; cp -r pkg two; printf "pkg\\ntwo\\n" > .git/info/exclude`,
    attack: `plant evil; ${monitor('two/.git')}; mv pkg gone; mv two pkg; rm -rf gone`,
    later: 'cd pkg && git status',
    path: 'pkg/.git',
    still: 'cd pkg && git status',
  }),
  git({
    name: 'what direnv obeys in it',
    make: `${NESTED}; cp -r pkg two`,
    attack: 'plant two/.envrc; mv pkg pkg2; plant pkg2/.envrc',
    later: 'for f in */.envrc; do test ! -e $f || . ./$f; done',
    path: 'pkg2/.envrc',
    still: '. two/.envrc; test "$MINE" = 1',
  }),
  git({
    name: 'a hook of it as a link',
    make: NESTED,
    attack:
      'plant evil; ln -sf ../../../evil pkg/.git/hooks/pre-commit; ln -s ../../../evil pkg/.git/hooks/post-commit',
    later: 'cd pkg && git commit -q --allow-empty -m y',
    path: 'pkg/.git/hooks',
  }),
  git({
    name: 'where git’s directory of a worktree leads, which lies in the workspace',
    make: 'git worktree add -q -b inner inner',
    attack:
      'plant evil; cp -r .git own; git config -f own/config core.fsmonitor "$PWD/evil"; echo "$PWD/own" > .git/worktrees/inner/commondir; plant own/hooks/post-checkout',
    later: 'cd inner && git status; git checkout -q -b x',
    path: '.git/worktrees/inner/commondir',
    still: 'cd inner && git status',
  }),
] satisfies readonly Case[]);

const WITH_SUBMODULE =
  'git init -q ../lib; git -C ../lib commit -q --allow-empty -m x; git -c protocol.file.allow=always submodule --quiet add ../lib lib; git commit -qm lib';

describeWork('a repository that is content may be filled, moved and removed', [
  {
    name: 'filled',
    make: `${NESTED}; mkdir x; echo a > x/a; tar cf x.tar x`,
    work: [
      'cp file pkg/; cp -r x pkg/; tar -C pkg -xf x.tar; mkdir -p pkg/build; echo 1 > pkg/build/o; mv file pkg/; git -C pkg status',
    ],
    proof: 'test -e pkg/x/a && cd pkg && git commit -q --allow-empty -m y && test -e ran',
  },
  {
    name: 'configured with what only names things',
    make: NESTED,
    work: [
      'git -C pkg config user.name n; git -C pkg config branch.main.description d; git -C pkg remote add o ../x',
    ],
    proof:
      'cd pkg; test "$(git config user.name)" = n; test "$(git config remote.o.url)" = ../x; test "$(git config alias.st)" = status',
  },
  {
    name: 'renamed, from the text and from a program',
    make: `${NESTED}; cp -r pkg two`,
    work: [
      'mv pkg pkg2; mkdir -p d; mv pkg2 d/pkg3',
      `python3 -c 'import os; os.rename("two", "three")'; test ! -e two`,
    ],
    proof:
      'for d in d/pkg3 three; do (cd $d; rm -f ran; git commit -q --allow-empty -m y; test -e ran; test "$(git config alias.st)" = status; . ./.envrc; test "$MINE" = 1); done; test ! -e pkg',
  },
  {
    name: 'removed, from the text and from a program',
    make: `${NESTED}; mkdir -p node_modules/@s build/_deps; for d in node_modules/a node_modules/@s/b build/_deps/foo-src three; do cp -r pkg $d; done`,
    work: [
      'rm -rf node_modules build',
      `python3 -c 'import shutil; shutil.rmtree("pkg")'`,
      `node -e 'require("fs").rmSync("three", { recursive: true })'; test ! -e node_modules; test ! -e build; test ! -e pkg; test ! -e three`,
    ],
    proof: 'test ! -e node_modules && test ! -e pkg && test ! -e build/_deps && test ! -e three',
  },
  {
    name: 'a linked worktree in the workspace',
    make: 'git worktree add -q -b inner inner; git worktree add -q -b two two',
    work: [
      'git worktree move inner moved; cd moved; git status; git commit -q --allow-empty -m x',
      'git worktree remove two; git worktree remove moved; git worktree add -q three inner',
    ],
    proof: 'test ! -e two; test ! -e .git/worktrees/two; git -C three log -1 --format=%s | grep -qx x',
  },
  {
    name: 'a submodule',
    make: WITH_SUBMODULE,
    work: [
      'git mv lib lib2; git -C lib2 status; git commit -qm moved',
      'git rm -q lib2; git commit -qm gone',
    ],
    told: ['.gitmodules'],
    proof: 'test ! -e lib2; git status',
  },
] satisfies readonly Work[]);
