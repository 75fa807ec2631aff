// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import { HOST } from '../support/tiers.ts';
import { describeWork, type Work } from './support/cases.ts';

/** The user's own settings and comments stay what they are. */
const MINE = 'grep -qx "# mine" .git/config; test "$(git config core.abbrev)" = 9; git fsck --no-progress';
const is = (key: string, value: string) => `test "$(git config ${key})" = '${value}'`;
const REMOTE = 'git init -q --bare remote.git; echo remote.git > .gitignore';
const LIBRARY = 'git init -q lib.git; git -C lib.git commit -q --allow-empty -m x; echo lib.git > .gitignore';

const SETTINGS: readonly Work[] = [
  {
    name: 'git remote add, rename and remove',
    work: [
      'git remote add origin https://localhost/x.git; git remote add other ../other; git remote rename other third',
      'git remote add fourth ../fourth; git remote remove fourth; git remote set-url third ../elsewhere',
    ],
    proof: `${is('remote.origin.url', 'https://localhost/x.git')}; ${is('remote.third.url', '../elsewhere')}; ! git config remote.fourth.url; ! git config remote.other.url; ${MINE}`,
  },
  {
    name: 'git branch -m and --set-upstream-to',
    make: `${REMOTE}; git remote add origin ./remote.git; git push -q origin main; git fetch -q origin`,
    work: [
      'git checkout -q -b one origin/main',
      'git branch -m two; git branch --set-upstream-to origin/main main',
    ],
    proof: `git rev-parse two; ! git rev-parse -q --verify one; ${is('branch.two.merge', 'refs/heads/main')}; ! git config branch.one.merge; ${is('branch.main.remote', 'origin')}; ${MINE}`,
  },
  {
    name: 'git push -u to a repository of the workspace, and pull',
    make: REMOTE,
    work: [
      'git remote add origin ./remote.git; git push -q -u origin main',
      'echo two > file; git commit -qam two; git push -q; git pull -q --ff-only',
    ],
    proof: `${is('branch.main.remote', 'origin')}; test "$(git -C remote.git rev-parse main)" = "$(git rev-parse main)"; ${MINE}`,
  },
  {
    name: 'git config',
    work: [
      'git config user.name you; git config --add remote.origin.fetch +a:b; git config --unset user.email; git config pull.rebase true',
    ],
    proof: `${is('user.name', 'you')}; ${is('remote.origin.fetch', '+a:b')}; ${is('pull.rebase', 'true')}; ! git config --local user.email; ${MINE}`,
  },
  {
    name: 'git config reads in the command what it wrote there, also what is not left in place',
    work: [
      'git config user.name you; test "$(git config user.name)" = you; git -c core.pager=cat log > /dev/null',
    ],
    proof: `${is('user.name', 'you')}; ${MINE}`,
  },
  {
    name: 'two commands at once that change different keys',
    work: [
      [
        'git config user.name you; touch first; until [ -e second ]; do sleep 0.02; done',
        'until [ -e first ]; do sleep 0.02; done; git config pull.rebase true; touch second; until [ -e .ended-0 ]; do sleep 0.02; done; git config tag.sort -version:refname',
      ],
    ],
    proof: `${is('user.name', 'you')}; ${is('pull.rebase', 'true')}; ${is('tag.sort', '-version:refname')}; ${MINE}`,
  },
  {
    name: 'git sparse-checkout',
    make: 'mkdir a b; echo > a/f; echo > b/f; git add .; git commit -qm dirs',
    work: ['git sparse-checkout init --cone; git sparse-checkout set a', 'git status --short'],
    proof: `test -e a/f; ! test -e b/f; git sparse-checkout list | grep -qx a; ${MINE}`,
  },
  {
    name: 'git submodule add, update and deinit',
    told: ['.gitmodules'],
    make: LIBRARY,
    work: [
      'git -c protocol.file.allow=always submodule --quiet add "$PWD/lib.git" lib; git commit -qm lib',
      'git -C lib config user.name you; git submodule status',
      'git submodule deinit -q -f lib; git -c protocol.file.allow=always submodule --quiet update --init',
    ],
    proof: `${is('submodule.lib.url', '$PWD/lib.git').replaceAll("'", '"')}; git submodule status | grep lib; git -C lib rev-parse HEAD; test "$(git -C lib config user.name)" = you; ${MINE}`,
  },
  {
    name: 'git config in a submodule that was there',
    make: `${LIBRARY}; git -c protocol.file.allow=always submodule --quiet add "$PWD/lib.git" lib; git commit -qm lib`,
    work: [
      'cd lib; git config user.name you; git checkout -q -b topic; git commit -q --allow-empty -m y',
      'git add lib; git commit -qm bump',
    ],
    proof: `test "$(git -C lib config user.name)" = you; test -z "$(git status --short -uno --ignore-submodules=none)"; ${MINE}`,
  },
];

const HISTORY: readonly Work[] = [
  {
    name: 'git worktree add and remove',
    work: [
      'git worktree add -q tree -b tree; cd tree; echo two > file; git commit -qam two',
      'cd tree; git config user.name you; git log --oneline > /dev/null',
      'git worktree add -q second -b second; git worktree remove second; git worktree prune',
    ],
    proof: `git -C tree status; test "$(git log --oneline tree -- | wc -l)" = 2; ${is('user.name', 'you')}; ! test -e second; ${MINE}`,
  },
  {
    name: 'git stash, rebase, cherry-pick, bisect and gc',
    work: [
      'echo two > file; git stash -q; git stash pop -q; git commit -qam two; git checkout -q -b topic HEAD~1; echo a > a; git add a; git commit -qm a',
      'git rebase -q main; git cherry-pick main~1 2> /dev/null || git cherry-pick --skip; git checkout -q main; git merge -q topic; git gc -q',
      "GIT_SEQUENCE_EDITOR='sed -i s/^pick/edit/' git rebase -q -i HEAD~1",
      'echo b > b; git add b; git commit -q --amend --no-edit; git rebase --continue',
    ],
    proof: `test -z "$(git status --short)"; test -e b; ${MINE}`,
  },
  {
    name: 'git clone and git init, with commits',
    make: LIBRARY,
    work: [
      'git clone -q lib.git copy; cd copy; git config user.name you; git checkout -q -b topic; echo x > x; git add x; git commit -qm x; git push -q origin topic',
      'git init -q -b main new; cd new; git config user.email you@localhost; echo x > x; git add x; git commit -qm x',
      'cd new; git remote add origin ../lib.git; git fetch -q; git branch -m trunk',
    ],
    proof:
      'git -C lib.git rev-parse topic; git -C copy status; test "$(git -C copy config user.name)" = you; test "$(git -C new config user.email)" = you@localhost; git -C new rev-parse trunk origin/topic',
  },
  {
    name: 'removing what was cloned',
    make: `${LIBRARY}; git clone -q lib.git copy`,
    work: ['cd copy; git config user.name you', 'git clone -q lib.git two; rm -rf two'],
    proof: `test "$(git -C copy config user.name)" = you; ! test -e two; ${MINE}`,
  },
];

const PACKAGES: readonly Work[] = [
  {
    name: 'npm install of packages with settings of their own',
    make: `mkdir -p dep/.vscode; echo '{"name": "dep", "version": "1.0.0", "bin": "cli"}' > dep/package.json; printf '#!/bin/sh\\n' > dep/cli; chmod +x dep/cli; echo '{}' > dep/.vscode/tasks.json; echo 'A=1' > dep/.npmrc; tar cf dep.tgz --transform s/^dep/package/ dep; rm -r dep; echo '{"name": "x", "version": "1.0.0", "dependencies": {"dep": "file:dep.tgz"}, "scripts": {"a": "dep"}}' > package.json; echo node_modules > .gitignore`,
    work: [
      'npm install --offline --no-audit --no-fund --cache "$PWD/.cache" > log 2>&1 || { cat log; false; }',
      'npm run a --offline > /dev/null',
    ],
    proof: 'test -x node_modules/.bin/dep; test -e node_modules/dep/.vscode/tasks.json; rm -rf node_modules',
  },
  {
    name: 'a virtual environment',
    work: [
      '/usr/bin/python3 -m venv --without-pip .venv',
      '.venv/bin/python -c 1; . .venv/bin/activate; python -c 1',
    ],
    proof: '.venv/bin/python -c 1',
  },
  {
    name: 'packages that bring files of their own into a virtual environment',
    work: [
      '/usr/bin/python3 -m venv --without-pip .venv; d=$(echo .venv/lib/python3*/site-packages); mkdir -p $d/lib/deep; echo all: > $d/lib/Makefile; echo \'{"scripts": {"a": "b"}}\' > $d/lib/package.json; echo > $d/lib/conftest.py; ln -s /usr/bin/env .venv/bin/env',
    ],
    proof: 'test -e .venv/lib/python3*/site-packages/lib/Makefile',
  },
  {
    name: 'a package.json without scripts, and one whose scripts stay',
    make: `echo '{"name": "y", "scripts": {"a": "true", "b": "true"}, "jest": {"verbose": true}}' > package.json; mkdir -p old; echo '{"name": "old", "husky": {}}' > old/package.json`,
    work: [
      `mkdir -p new; echo '{"name": "x", "version": "1.0.0", "type": "module", "dependencies": {"a": "1"}}' > new/package.json; cd new; sed -i s/1.0.0/1.1.0/ package.json`,
      `echo '{"jest": {"verbose": true}, "name": "y", "version": "2.0.0", "scripts": {"b": "true", "a": "true"}, "dependencies": {"a": "1"}}' > package.json; sed -i s/old/older/ old/package.json`,
      `mkdir init; cd init; cat > package.json <<'END'
{"name": "init", "scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}
END`,
    ],
    proof: 'grep -q 2.0.0 package.json',
  },
  {
    name: 'a worktree with copies of tracked files',
    make: `echo '{"scripts": {"a": "b"}}' > package.json; printf 'all:\n' > Makefile; mkdir -p .github/workflows sub; echo x > .github/workflows/ci.yml; echo y > AGENTS.md; cp Makefile sub; ln -s AGENTS.md CLAUDE.md; git add .; git commit -qm files`,
    work: ['git worktree add -q tree -b tree', 'cd tree; echo x > x; git add x; git commit -qm x'],
    proof: 'git -C tree status; test -e tree/.github/workflows/ci.yml',
  },
  {
    name: 'links within the project and into the system',
    make: 'mkdir -p docs lib',
    work: [
      'ln -s ../lib docs/lib; ln -s /usr/share/doc doc; ln -s /dev/null null; ln -s missing nowhere; ln -s "$HOME/x" private; ln -s "$TMPDIR/x" temporary; ln -s ../file docs/file; ln -s /etc/passwd-that-is-not-there gone 2> /dev/null; rm gone',
    ],
    proof: 'test -L docs/lib',
    // The home is the command's own, at the place of the user's: there the link leads to that.
    // Without namespaces so is $TMPDIR, a directory of the command's own with a long name, which goes with it.
    told: HOST.namespaces ? ['private'] : ['private', 'temporary'],
  },
  {
    name: 'checking out another branch with other settings of packages in it',
    make: "mkdir -p packages/one/.vscode; echo '{}' > packages/one/.vscode/settings.json; git add .; git commit -qm one; git checkout -q -b topic; git rm -rq packages; git commit -qm gone; git checkout -q main",
    work: [
      'git checkout -q topic; ! test -e packages',
      'git checkout -q main; test -e packages/one/.vscode/settings.json',
    ],
    proof: `test -z "$(git status --short)"; ${MINE}`,
    told: ['packages/one/.vscode', 'packages/one/.vscode/settings.json'],
  },
];

describeWork('settings that only name things', SETTINGS);
describeWork('work with history', HISTORY);
describeWork('packages', PACKAGES);
