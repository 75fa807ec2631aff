// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import { type Case, describeCases, hangsAt } from './support/cases.ts';

/** A command sets a key that runs a program of its own; the user does what runs it. */
const sets = (
  key: string,
  later: string,
  { value = '"$PWD/evil"', and = '', make = '' }: { value?: string; and?: string; make?: string } = {},
): Case => ({
  name: key,
  tool: 'git',
  make: `${make}\ngit config remote.origin.url ../elsewhere`,
  attack: `plant evil; ${and}\ngit config ${key} ${value}`,
  later,
  expected: 'shut',
  path: '.git/config',
  // The user's own settings and comments are there, and so is what the command may set.
  still: 'grep -qx "# mine" .git/config && test "$(git config core.abbrev)" = 9 && git status',
});

const attributes = (text: string) => `echo '${text}' > .gitattributes`;

const KEYS: readonly Case[] = [
  sets('core.fsmonitor', 'git status'),
  sets('core.hooksPath', 'git checkout -b other', {
    value: 'steps',
    and: 'plant steps/post-checkout',
  }),
  sets('core.sshCommand', 'git ls-remote ssh://localhost/x'),
  sets('core.pager', 'script -qec "git log" /dev/null'),
  sets('pager.log', 'script -qec "git log" /dev/null'),
  sets('core.editor', 'git commit --allow-empty'),
  sets('sequence.editor', 'git commit --allow-empty -m more; git rebase -i HEAD~1'),
  sets('diff.external', 'echo two > file; git diff'),
  sets('diff.x.textconv', 'echo two > file; git diff', { and: attributes('* diff=x') }),
  sets('diff.x.command', 'echo two > file; git diff', { and: attributes('* diff=x') }),
  sets('filter.x.clean', 'echo two > file; git add file', { and: attributes('* filter=x') }),
  sets('filter.x.smudge', 'rm file; git checkout file', { and: attributes('* filter=x') }),
  sets('filter.x.process', 'echo two > file; git status; git add file', { and: attributes('* filter=x') }),
  sets('merge.x.driver', 'git merge topic', {
    make: 'git checkout -q -b topic; echo two > file; git commit -qam two; git checkout -q main; echo three > file; git commit -qam three',
    and: attributes('* merge=x'),
  }),
  sets('alias.st', 'git st', { value: '"!$PWD/evil"' }),
  sets('credential.helper', "printf 'protocol=https\\nhost=localhost\\n\\n' | git credential fill"),
  sets('core.askPass', "printf 'protocol=https\\nhost=localhost\\n\\n' | git credential fill"),
  sets('gpg.program', 'git commit -S --allow-empty -m x'),
  sets('submodule.lib.update', 'git submodule update', {
    value: '"!$PWD/evil"',
    make: 'git init -q lib; git -C lib commit -q --allow-empty -m x; printf "[submodule \\"lib\\"]\\n\\tpath = lib\\n\\turl = ../lib\\n" > .gitmodules; git add .; git commit -qm lib; git submodule init; git submodule absorbgitdirs; git -C lib commit -q --allow-empty -m y',
  }),
  sets('remote.origin.uploadpack', 'git fetch origin', { make: 'git init -q --bare ../elsewhere' }),
  sets('remote.origin.receivepack', 'git push origin main', { make: 'git init -q --bare ../elsewhere' }),
  sets(
    'interactive.diffFilter',
    'echo two > file; echo n | TERM=xterm timeout 60 script -qec "git add -p" /dev/null',
  ),
  sets('trailer.x.command', 'echo x | git interpret-trailers --trailer x=1'),
  sets('core.worktree', 'git checkout -f main; test -e "$MARK.d/file" && touch "$MARK"', {
    value: '"$MARK.d"',
    make: 'mkdir -p "$MARK.d"',
  }),
];

/** Files that the user's configuration names and that are not there yet. */
const named = (name: string, setting: string, path: string): Case => ({
  name,
  tool: 'git',
  make: setting,
  attack: `plant evil; mkdir -p "$(dirname ${path})"; printf '[core]\\n\\tfsmonitor = "%s"\\n' "$PWD/evil" > ${path}`,
  later: 'git status',
  expected: 'shut',
  path,
  still: 'git status',
});

const INCLUDES: readonly Case[] = [
  named('include.path of a file that is not there', 'git config include.path ../extra.inc', 'extra.inc'),
  named(
    'includeIf of a file that is not there',
    'git config includeIf.onbranch:main.path ../conf/branch.inc',
    'conf/branch.inc',
  ),
  named(
    'an include of an include',
    'git config include.path ../one.inc; printf "[include]\\n\\tpath = two.inc\\n" > one.inc',
    'two.inc',
  ),
  {
    ...named('include.path of the command', 'true', 'evil.inc'),
    attack:
      'plant evil; printf \'[core]\\n\\tfsmonitor = "%s"\\n\' "$PWD/evil" > evil.inc; git config include.path ../evil.inc',
    path: '.git/config',
  },
  {
    name: 'config.worktree',
    tool: 'git',
    attack:
      'plant evil; git config extensions.worktreeConfig true; git config --worktree core.fsmonitor "$PWD/evil" || git config -f .git/config.worktree core.fsmonitor "$PWD/evil"',
    later: 'git status',
    expected: 'shut',
    path: '.git/config.worktree',
    still: 'git status',
  },
  {
    name: 'commondir',
    tool: 'git',
    attack:
      'plant evil; mkdir common; cp -r .git/refs .git/objects .git/HEAD .git/config common; git config -f common/config core.fsmonitor "$PWD/evil"; echo ../common > .git/commondir',
    later: 'git status',
    expected: 'shut',
    path: '.git/commondir',
    still: 'git status',
  },
];

/** Files that git and somebody else may read in another way. `at`: where the text stands. */
const written = (name: string, text: string): Case => ({
  name: `a configuration with ${name}`,
  tool: 'git',
  attack: `plant evil; ${text}`,
  later: 'git status; git diff',
  expected: 'shut',
  path: '.git/config',
  still: 'git status && test "$(git config core.abbrev)" = 9',
});
const FSMONITOR = '\\tfsmonitor = %s\\n';

const ODD_FILES: readonly Case[] = [
  written('CRLF', `printf '[core]\\r\\n\\tfsmonitor = %s\\r\\n' "$PWD/evil" >> .git/config`),
  written(
    'a byte order mark',
    `{ printf '\\xef\\xbb\\xbf[core]\\n${FSMONITOR}' "$PWD/evil"; cat .git/config; } > all; cat all > .git/config`,
  ),
  written('a NUL', `printf '# \\0\\n[core]\\n${FSMONITOR}' "$PWD/evil" >> .git/config`),
  written(
    '2 MiB',
    `{ for ((i = 0; i < 2100; i++)); do printf '# %01022d\\n' 0; done; printf '[core]\\n${FSMONITOR}' "$PWD/evil"; } >> .git/config`,
  ),
  written(
    'a comment that ends in a backslash',
    `printf '[core]\\n\\t# \\\\\\n${FSMONITOR}' "$PWD/evil" >> .git/config`,
  ),
  written(
    'a value that goes on in the next line',
    `printf '[core]\\n\\tfsmonitor = %s\\\\\\n%s\\n' "\${PWD:0:9}" "\${PWD:9}/evil" >> .git/config`,
  ),
  written('a header and a key in one line', `printf '[core] fsmonitor = %s\\n' "$PWD/evil" >> .git/config`),
  written('upper case', `printf '[CORE]\\n\\tFSMonitor = "%s"\\n' "$PWD/evil" >> .git/config`),
  written(
    'the old form of a subsection',
    `printf '[diff.x]\\n\\ttextconv = %s\\n' "$PWD/evil" >> .git/config; echo '* diff=x' > .gitattributes; echo two > file`,
  ),
  {
    ...written('a lock that stays', 'git config core.fsmonitor "$PWD/evil"; touch .git/config.lock'),
    still: 'rm -f .git/config.lock; git status && test "$(git config core.abbrev)" = 9',
  },
  {
    name: 'a FIFO as configuration',
    tool: 'git',
    attack: 'rm -f .git/config; mkfifo .git/config',
    later: hangsAt('.git/config', 'git status'),
    expected: 'shut',
    path: '.git/config',
    still: 'test "$(git config core.abbrev)" = 9',
  },
  {
    name: 'a link as configuration',
    tool: 'git',
    attack:
      'plant evil; cp .git/config mine; git config -f mine core.fsmonitor "$PWD/evil"; rm -f .git/config; ln -s ../mine .git/config',
    later: 'git status',
    expected: 'shut',
    path: '.git/config',
    still: 'test "$(git config core.abbrev)" = 9',
  },
];

describeCases('keys of git', KEYS);
describeCases('files that git includes', INCLUDES);
describeCases('how a configuration is written', ODD_FILES);
