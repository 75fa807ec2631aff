import { describe, expect, it } from 'vitest';
import { pathUses } from '../../../../src/judge/programs/path-uses.ts';
import { describeCommand } from '../../../../src/judge/programs/program-table.ts';
import { findingsOf, reachOfLine, riskOfLine } from '../../../../src/judge/programs/risk.ts';
import { parseShell } from '../../../../src/judge/shell/parse.ts';
import { commandIn } from '../../../support/simple-command.ts';

const riskIn = (source: string) => riskOfLine(parseShell(source));
const reachIn = (source: string) => reachOfLine(parseShell(source));

/** Verbs that change state, as the rules list them. */
const CHANGING: readonly (readonly [program: string, verbs: string])[] = [
  [
    'git',
    'commit push reset clean rebase merge cherry-pick revert checkout switch stash restore fetch pull add mv init',
  ],
  ['npm', 'install i add remove rm uninstall update publish ci unlink dedupe'],
  ['pnpm', 'install add remove update publish'],
  ['yarn', 'install add remove publish'],
  ['cargo', 'add remove install clean publish'],
  ['pip', 'install uninstall download'],
  ['pip3', 'install'],
];

/** Options before the verb, which do not hide it. */
const GLOBALS: Readonly<Record<string, readonly string[]>> = {
  git: ['', '-C src', '--no-pager', '-c color.ui=never -p', '-C src --no-pager --bare'],
  npm: ['', '--prefix web', '-s', '--loglevel silent'],
  cargo: ['', '-q', '--color never', '--offline -v'],
};

describe('riskOfLine', () => {
  it.each(
    CHANGING.flatMap(([program, verbs]) =>
      verbs
        .split(' ')
        .flatMap((verb) => (GLOBALS[program] ?? ['']).map((options) => `${program} ${options} ${verb} x`)),
    ),
  )('%s is medium', (source) => {
    expect(riskIn(source)).toBe('medium');
  });

  it.each([
    'git branch -d x',
    'git branch -D x',
    'git branch --delete x',
    'git tag x',
    'git stash drop',
    'touch x',
    'mkdir x',
    'mv a b',
    'cp a b',
    'ln a b',
    'unknown-program',
    'ls > x',
    'ls 2> x',
    'ls &> x',
    'exec > x',
    '> x',
  ])('%s is medium', (source) => {
    expect(riskIn(source)).toBe('medium');
  });

  it.each(
    'rm curl wget nc ncat netcat ssh scp sftp ftp telnet chmod chown sudo su dd mkfs shutdown reboot halt poweroff useradd userdel usermod passwd mount umount iptables ufw firewall-cmd'.split(
      ' ',
    ),
  )('%s is high', (name) => {
    expect(riskIn(`${name} x`)).toBe('high');
    expect(riskIn(`/usr/bin/${name} x`)).toBe('high');
    expect(riskIn(`ls && env ${name} x | cat`)).toBe('high');
  });

  it.each([
    'ls -la',
    'git status',
    'git log -3',
    'git -C src diff',
    'git branch',
    'git branch -a',
    'git tag -l',
    'git stash list',
    'git config user.name',
    'git remote -v',
    'cat a | head',
    'cargo test',
    'npm test',
    'make',
    'tsc --noEmit',
    'ls > /dev/null 2>&1',
    'python3 --version',
    'uv version',
    'golangci-lint run ./...',
    'golangci-lint fmt --diff',
    'A=b',
  ])('%s is low', (source) => {
    expect(riskIn(source)).toBe('low');
  });

  it.each([
    'patch -e -i a',
    'patch -g 1 a',
    'rustc -C linker=./x a.rs',
    'rustc -Clinker=./x a.rs',
    'rustc --codegen linker=./x a.rs',
    'rustc -C ar=./x a.rs',
    'rustdoc -C linker=./x a.rs',
    'rsync -e ./x a h:b',
    'ncat -c ./x h 80',
    "ed '!x'",
    'pylint --init-hook x a.py',
    'yq --security-enable-system-operator . a',
    'pandoc --pdf-engine-opt=-shell-escape a',
    'cppcheck --clang=./x a.c',
    'lldb -b -O x',
    'mlr --prepipe x cat a',
    'go run -exec ./x a.go',
  ])('%s is high: it can run a program', (source) => {
    expect(riskIn(source)).toBe('high');
  });

  it.each([
    'phpunit -d auto_prepend_file=../x',
    'phpunit --prepend ../x',
    'rspec -O ./x',
    'rubocop --fix-layout',
    'rubocop --safe-auto-correct',
    'rubocop --auto-gen-config',
    'rubocop --init',
    'rubocop --plugin ./x',
    'stylelint --suppress',
    'golangci-lint fmt',
    'golangci-lint migrate',
    'clang-tidy --fix-notes a.c',
    'markdownlint -c ./x.cjs a.md',
    'pyright --createstub x',
    'uv version --bump minor',
    'oxlint --fix-dangerously',
    'oxlint --fix-suggestions',
    'oxlint --init',
    'jest --config ../x',
    'jest -c ../x',
    'jest --setupFiles ./x',
    'jest --setupFilesAfterEnv=./x',
    'jest --globalSetup ./x',
    'jest --reporters ./x',
    'jest --env ./x',
    'jest --runner ./x',
    'jest --resolver=./x',
  ])('%s is medium: it loads code, and jest alone does not', (source) => {
    expect(riskIn(source)).toBe('medium');
    expect(riskIn('jest --ci')).toBe('low');
  });

  it.each([
    ['node -r ../x a.js', '../x'],
    ['node --require=../x a.js', '../x'],
    ['node --import ../x a.js', '../x'],
    ['node --loader ../x a.js', '../x'],
    ['node --experimental-loader ../x a.js', '../x'],
    ['node --env-file=../x a.js', '../x'],
    ['node --env-file-if-exists=../x a.js', '../x'],
    ['node --snapshot-blob ../x a.js', '../x'],
  ])('what %s loads is %s', (source, file) => {
    const command = commandIn(source);
    const use = describeCommand(command);
    const found = use === undefined ? [] : findingsOf(use);
    expect(found.some(({ effect }) => effect === 'loads')).toBe(true);
    expect(pathUses(command, use).map(({ argument }) => argument.text)).toContain(file);
  });

  it('is high for what is not understood', () => {
    expect(riskIn('ls "')).toBe('high');
  });
});

describe('reachOfLine', () => {
  it.each([
    ['ls', 'local'],
    ['A=b', 'local'],
    ['awk "{print}" a | sort', 'local'],
    ['xargs cat', 'local'],
    ['awk \'BEGIN{system("x")}\'', 'unknown'],
    ['sort --compress-program=x a', 'unknown'],
    ['git status', 'unknown'],
    ['unknown-program', 'unknown'],
    ['./curl x', 'unknown'],
    ['ls "', 'unknown'],
    ['ls | curl x', 'network'],
    ['echo $(dig x)', 'network'],
    ['xargs curl', 'network'],
    ['timeout 5 wget x', 'network'],
    ['git push', 'network'],
    ['npm install', 'network'],
    ['python3 x.py', 'network'],
    ['bash x.sh', 'network'],
    ['cat < /dev/tcp/h/1', 'network'],
    ['tar xf host:a.tar', 'network'],
    ['valgrind ls', 'unknown'],
    ['valgrind --log-socket=192.0.2.1:80 ls', 'network'],
    ['valgrind --xml=yes --xml-socket=192.0.2.1 ls', 'network'],
    ['valgrind --debuginfo-server=192.0.2.1:80 ls', 'network'],
    ['patch -p1 -i a', 'local'],
    ['patch -e -i a', 'unknown'],
    ['patch --ed -i a', 'unknown'],
    ['patch -g 1 a', 'unknown'],
    ['patch --get=1 a', 'unknown'],
  ])('%s is %s', (source, expected) => {
    expect(reachIn(source)).toBe(expected);
  });
});
