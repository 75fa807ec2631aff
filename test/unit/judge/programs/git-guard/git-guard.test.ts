import { describe, expect, it } from 'vitest';
import { createGitGuard } from '../../../../../src/judge/programs/git/guard.ts';
import { parseArgv, parseShell } from '../../../../../src/judge/shell/parse.ts';

const ALIASES = new Map([
  ['p', 'push'],
  ['pf', 'push --force-with-lease'],
  ['up', '!git fetch && git merge origin/main'],
  ['f', '!f() { git push "$@"; }; f'],
  ['st', 'status -sb'],
  ['lg', "log --pretty=format:'%h %s' --grep push"],
  ['co', '!f() { git checkout "$1"; }; f'],
  ['twice', 'p'],
  ['loop', 'pool'],
  ['pool', 'loop'],
  ['opts', '-c color.ui=never push'],
  ['dir', '-C elsewhere status'],
  ['quoted', '"pu"sh'],
  ['escaped', 'pu\\sh'],
  ['open', "log 'x"],
  ['empty', ''],
  ['sync', 'fetch'],
  ['svn', 'push'],
  ['whatchanged', 'push'],
  ['hidden', '!"$(echo git)" push'],
  ['harmless', '!echo git push'],
]);

const guard = createGitGuard({
  parse: parseShell,
  aliasesAt: async (directory) => (directory.startsWith('/broken') ? Promise.reject() : ALIASES),
});
const judge = async (line: string, cwd = '/repository') => guard.judge(parseShell(line), cwd, line);

const REFUSED = `
git push
git push origin main
git  "pu"sh
git pu\\sh
g'i't push
/usr/bin/git push
\\git push
command git push
env git push
env -i PATH=/bin git push
nice -n 5 git push
timeout 5 git push
sudo git push
xargs git push
echo push | xargs git
echo origin | xargs -n1 git push
bash -c 'git push'
sh -c "git push"
eval 'git push'
(git push)
{ git push; }
true && git push
false || git push
git status; git push &
echo $(git push)
echo "$(git push)"
cat <(git push)
if true; then git push; fi
for i in 1 2; do git push; done
f() { git push; }; f
git() { command git push; }; git status
find . -name x -exec git push \\;
git -C /elsewhere push
git -C /elsewhere -C further push
git --git-dir=/elsewhere/.git push
git --git-dir /elsewhere/.git push
git --work-tree=. push
git --no-pager push
git -p push
git --namespace x push
git -c user.name=x push
git -c alias.x=push x
git -c alias.x='!git push' x
git -c alias.st=push st
git -c ALIAS.X=push x
git --config-env=alias.x=VALUE x
git --config-env alias.x=VALUE x
git --exec-path=/elsewhere push
git --exec-path=/elsewhere x
git --bare push
git $X
git "$X" main
git $(echo push)
git \${X:-push}
git {push,--force}
$X push; git status
git pull
git pull --rebase
git pull --ff-only
git rebase main
git rebase -i HEAD~3
git rebase --onto main a b
git rebase --continue
git rebase --skip
git rebase --edit-todo
git rebase --abort main
git rebase --abort --continue
git rebase $X
git rebase
git send-pack /elsewhere main
git http-push https://localhost/x main
git remote-https origin https://localhost/x
git remote-ext origin x
git receive-pack .
git shell -c "git-receive-pack '.'"
git-push
git-pull origin
/usr/lib/git-core/git-push origin main
/usr/lib/git-core/git-rebase main
/usr/lib/git-core/git push
git-remote-https origin https://localhost/x
git-unknown
git subtree push --prefix=lib origin main
git subtree --prefix=lib push origin main
git subtree -P lib pull origin main
git subtree $X
git lfs push origin main
git lfs $X
git svn dcommit
git svn rebase
git svn -q dcommit
git svn set-tree HEAD
git p4 submit
git p4 rebase
git cvsexportcommit -c HEAD
git replay --onto main a..b
git submodule update --remote --merge
git submodule update --rebase
git submodule foreach git push
git submodule foreach 'git push'
git submodule foreach --recursive 'git pull'
git submodule--helper update
git for-each-repo --config=maintenance.repo push
git filter-branch --tree-filter 'git push' HEAD
git bisect run git push
git rebase --exec 'git push' main
git difftool --extcmd='git push' HEAD
GIT_EDITOR='git push' git commit
GIT_SEQUENCE_EDITOR="git push #" git commit
export GIT_EDITOR='git push'; git commit
env GIT_SSH_COMMAND='git push' git fetch
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.editor GIT_CONFIG_VALUE_0='git push' git commit
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=alias.st GIT_CONFIG_VALUE_0=push git st
export GIT_CONFIG_PARAMETERS="'alias.st'='push'"; git st
HOME=/elsewhere git st
XDG_CONFIG_HOME=/elsewhere git st
GIT_DIR=/elsewhere git st
read GIT_DIR; git st
git config alias.st push; git st
printf '[alias]st=push' >> .git/config; git st
git --git-dir=/elsewhere/.git st
git p
git P
git pf
git -C /elsewhere p
git f origin
git twice
git opts
git quoted
git escaped
git loop
git open
git empty
git up
git hidden
git svn
git whatchanged
git nonsense
cd sub && git p
cd "$X" && git st
cd /broken && git st
git -C "$X" st
git dir; git sync && git merge origin/main
git fetch && git merge origin/main
git fetch && git merge
git fetch; git merge --ff-only @{u}
git merge origin/main; git fetch
git fetch && git reset --hard origin/main
git fetch && git reset --hard FETCH_HEAD
git fetch && git reset @{u}
git fetch && git reset --har origin/main
git fetch && git reset origin/main
git fetch && git reset --hard "$x"
git fetch --stdin origin
git -c alias.a.command=push -c alias.A.command=status a
git fetch && git checkout -B main origin/main
git fetch && git switch -C main origin/main
git fetch && git branch -f main origin/main
git fetch && git update-ref refs/heads/main refs/remotes/origin/main
git fetch && git cherry-pick FETCH_HEAD
git fetch && bash -c 'git merge origin/main'
git remote update && git merge
git fetch; git diff HEAD origin/main | git apply
git fetch; git diff HEAD...origin/main | git apply -3
git fetch; git diff ..FETCH_HEAD > p; git apply p
git fetch; git format-patch --stdout HEAD..origin/main | git am
git fetch; git symbolic-ref HEAD refs/remotes/origin/main
git fetch; git checkout origin/main -- .
git fetch; git checkout origin/main .
git fetch; git checkout FETCH_HEAD -- src
git fetch; git restore --source=origin/main .
git fetch; git restore -s origin/main -- .
ssh-agent git push
ssh-agent -a /tmp/s git push
ssh-agent bash -c 'git push'
gpg-agent --daemon git push
gpg-agent --daemon --enable-ssh-support -- git push
devbox run git push
devbox run -- git push
devbox run 'git status && git push'
nix develop -c git push
nix develop .#ci --command git push
nix shell nixpkgs#git -c git push
nix run nixpkgs#git -- push
nix-shell -p git --run 'git push'
gh pr merge 7 --squash
gh pr update-branch
glab mr merge 7
ed <<< '!git push'
ed -s notes <<< '!git push'
vim -c '!git push'
vim '+!git push' notes
nvim --headless -c ':call system("git push")' -c q
ex -c 'w !git push'
emacs --batch --eval '(shell-command "git push")'
git merge FETCH_HEAD
git fetch origin main:main
git fetch origin +refs/heads/main:refs/heads/main
git fetch --depth 1 origin main:main
git fetch -u origin main
git fetch --update-head-ok origin main
hub push
hub pull
gh pr create --fill
jj git push
dulwich push
python3 -c 'import os; os.system("git push")'
python -c 'import subprocess; subprocess.run(["git", "push"])'
node -e 'require("child_process").execSync("git pull")'
perl -e 'system "git rebase main"'
perl -e 'print \`git push\`'
ruby -e 'system("git push")'
awk 'BEGIN { system("git push") }'
tclsh <<< 'exec git push'
git $'pu\x73h'
git pus?
git pu$()sh
git status; trap 'git push' EXIT
alias g='git push'; g
declare x=push; git "$x"
set -- push; git "$@"
bash <<< 'git push'
echo 'git push' | bash
git status 'unterminated
coproc git push
git status; ((
`;

const ALLOWED = `
git
git status
git fetch
git fetch origin
git fetch origin main
git fetch --all --prune
git fetch git@localhost:x/y.git
git fetch https://localhost:8443/x main
git fetch origin refs/heads/main:refs/remotes/origin/main
git merge feature
git merge --abort
git fetch && git merge --abort
git fetch && git reset --hard HEAD
git fetch && git reset src/file
git fetch && git checkout -b feature origin/feature
git fetch && git log origin/main
git fetch && git diff origin/main
git fetch && git diff src/a.ts | git apply -R
git fetch && git apply fix.patch
git diff | git apply
git diff origin/main | git apply
git am fix.patch
git fetch && git checkout origin/main
git fetch && git checkout -- src/a.ts
git fetch && git checkout main -- src/a.ts
git fetch && git checkout -b feature -- origin/feature
git checkout origin/main -- .
git fetch && git restore src/a.ts
git fetch && git restore --staged origin/a.ts
git restore --source=origin/main .
git symbolic-ref HEAD
git fetch; git symbolic-ref refs/remotes/origin/HEAD
git fetch; git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/main
git fetch; git symbolic-ref HEAD refs/heads/main
ssh-agent -k
ssh-agent git status
eval "$(ssh-agent -s)"
gpg-agent --daemon
nix develop
nix build .#push
nix develop -c git status
devbox run test
devbox list
gh pr view 7
gh pr list --search merge
vim push
vim 'git push.md'
vim -c 'set tw=72' COMMIT_EDITMSG
ed <<< 's/git push/git fetch/'
git rebase --abort
git rebase --quit
git rebase --show-current-patch
git rebase --help
git push --help
git push -h
git help push
git --help push
git --version
git -v push
git commit -m "git push"
git commit -m 'pull and rebase'
git commit -m push
git log --grep=push
git log --grep 'git push'
git log push
git branch push
git checkout rebase
git checkout -b pull
git stash push
git stash push -m pull
git stash $X
git add push
git mv push pull
git -C push status
git -C dir status
git --git-dir=push status
git diff -- push
git config alias.p push
git config --get alias.p
git config push.default simple
git -c push.default=simple status
git remote add push /elsewhere
git remote -v
git remote set-url --push origin /elsewhere
git grep push
git tag push
git notes add -m push
git worktree add push
git st
git ST
git lg
git lg push
git co push
git sync
git harmless
git dir
cd sub && git st
git -C sub st
git lfs pull
git lfs fetch origin push
git lfs install
git subtree
git subtree split --prefix=lib
git subtree add --prefix=lib /elsewhere main
git submodule update --init --recursive
git submodule foreach git status
git clone /elsewhere push
git ls-remote origin
git cherry-pick a
git format-patch main
git update-ref refs/heads/x HEAD
echo git push
echo "git push" > notes
grep -r 'git push' .
rg "git rebase" push
cat git-push.md
man git-push
ls .git
./push
push
npm run push
pull
make push
docker push x
GIT_EDITOR=true git commit
GIT_EDITOR='vim -f' git commit
gh pr view
curl https://github.com/x/y.git
[[ $x =~ github ]]
ls 'unterminated
echo git ; ls
awk '/git push/ { print }' notes
python3 -c 'print("git push")'
perl -ne 'print if /git push/' notes
sed -n '/git push/p' notes
`;

const lines = (text: string) => text.trim().split('\n');

describe('the git guard', () => {
  it.each(lines(REFUSED))('refuses: %s', async (line) => {
    const { allowed, reason } = await judge(line);
    expect({ allowed, reason: typeof reason }).toEqual({ allowed: false, reason: 'string' });
  });

  it.each(lines(ALLOWED))('has nothing against: %s', async (line) => {
    expect(await judge(line)).toEqual({ allowed: true });
  });

  it('judges argument vectors', () => {
    const refused = parseArgv(['git', '-C', '/elsewhere', 'push', '--', 'x y']);
    expect(guard.judge(refused, '/repository', '')).toMatchObject({ allowed: false });
    const quoting = parseArgv(['git', 'commit', '-m', '"; git push']);
    expect(guard.judge(quoting, '/repository', '')).toEqual({ allowed: true });
  });

  it('reads here-documents and texts over several lines', async () => {
    for (const line of ['bash <<EOF\ngit push\nEOF', 'git status\ngit push', 'git \\\n push', '((\ngit\n'])
      expect(await judge(line)).toMatchObject({ allowed: false });
    expect(await judge('cat > notes <<EOF\ngit push\nEOF')).toEqual({ allowed: true });
  });

  it('answers at once as long as no alias has to be read', () => {
    expect(guard.judge(parseShell('git status'), '/broken', '')).toEqual({ allowed: true });
    expect(guard.judge(parseShell('git push'), '/broken', '')).toMatchObject({ allowed: false });
  });

  it('refuses what may be an alias where aliases cannot be read', async () => {
    expect(await judge('git st', '/broken')).toMatchObject({ allowed: false });
    expect(await judge('git status', '/broken')).toEqual({ allowed: true });
  });

  it('looks aliases up where the command runs, and once for a line', async () => {
    const asked: string[] = [];
    const counting = createGitGuard({
      parse: parseShell,
      aliasesAt: (directory) => {
        asked.push(directory);
        return directory === '/repository/sub' ? new Map([['x', 'push']]) : new Map([['x', 'status']]);
      },
    });
    const verdict = async (line: string) =>
      (await counting.judge(parseShell(line), '/repository', line)).allowed;
    expect(await verdict('git x; git x; git x')).toBe(true);
    expect(asked).toEqual(['/repository']);
    expect(await verdict('git -C sub x')).toBe(false);
    expect(await verdict('cd sub; git x')).toBe(false);
    expect(await verdict('cd sub; cd ..; git -C sub/../sub x')).toBe(false);
  });

  it('ends with a line that asks in very many directories', async () => {
    const line = Array.from({ length: 100 }, (_, index) => `git -C d${index} st`).join(';');
    expect(await judge(line)).toMatchObject({ allowed: false });
  });

  it('follows no alias for ever', async () => {
    const growing = createGitGuard({
      parse: parseShell,
      aliasesAt: () => new Map([['x', `!${'git x;'.repeat(50)}`]]),
    });
    expect(await growing.judge(parseShell('git x'), '/repository', '')).toMatchObject({ allowed: false });
  });
});
