import { describe, expect, it } from 'vitest';
import { argumentsCheck } from '../../../../src/judge/checks/arguments.ts';
import { CLASSIC_ALLOW_LIST, judgeText, type World } from '../../../support/policy-world.ts';

/** The strictest verdict of this check alone, with the codes that it gives. */
function shown(command: string, world: World): string {
  const reasons = judgeText(command, world).reasons.filter(({ check }) => check === argumentsCheck.name);
  return [...new Set(reasons.map(({ verdict, code }) => `${verdict}:${code}`))].join(' ');
}

const ALLOW_LIST: World = { rules: { allow: CLASSIC_ALLOW_LIST } };

describe('arguments, what runs a program', () => {
  it.each([
    ['awk \'BEGIN{system("id")}\'', 'awk_executes'],
    ['awk \'{print | "sh"}\' a', 'awk_executes'],
    ['awk \'{"id" | getline}\' a', 'awk_executes'],
    ["sed '1e id' a", 'sed_executes'],
    ['sed s/a/b/e a', 'sed_executes'],
    ['sort --compress-program=./x a', 'executes_by_option'],
    ['sort --compress-prog ./x a', 'executes_by_option'],
    ['rg --pre ./x y', 'executes_by_option'],
    ['rg --hostname-bin=./x y', 'executes_by_option'],
    ['rg -nz y', 'executes_by_option'],
    ['tar xf a --checkpoint-action=exec=sh', 'executes_by_option'],
    ['git grep -O./x y', 'executes_by_option'],
    ['less +!id a', 'pager_command'],
    ['vim +!id a', 'editor_command'],
    ['split --filter=./x a', 'executes_by_option'],
    ['sqlite3 a ".shell id"', 'client_command'],
  ])('%s is asked about in every mode', (command, code) => {
    expect(shown(command, { autonomy: 'autonomous' })).toContain(`ask:${code}`);
    expect(shown(command, { autonomy: 'supervised' })).toContain(`ask:${code}`);
  });
});

describe('arguments, code from files', () => {
  it.each([
    'awk -f a.awk b',
    'sed -f a.sed b',
    'make -f x.mk',
    'sh x.sh',
    'node -r ./x y.js',
    'eslint -c x.js .',
    'pytest -p x',
    'make CC=./x',
    'cmake -P x.cmake',
  ])('%s is asked about under supervision only', (command) => {
    expect(shown(command, { autonomy: 'supervised' })).toContain('ask:');
    expect(shown(command, { autonomy: 'autonomous' })).toBe('');
  });
});

describe('arguments, unknown options', () => {
  it.each([
    ['rg --nosuch x', 'ask:unknown_option'],
    ['sort --nosuch x', 'ask:unknown_option'],
    ['git log --nosuch', 'ask:unknown_option'],
    ['find . -nosuch', 'ask:unknown_option'],
    ['rg $x y', 'ask:dynamic_option'],
    ['rg -- $x y', ''],
    ['rg ./$x y', ''],
    // Nothing that wc could be told makes it run or write.
    ['wc --nosuch x', ''],
    ['grep --nosuch x y', ''],
    ['wc $x', ''],
  ])('%s gives %s under supervision', (command, expected) => {
    expect(shown(command, { autonomy: 'supervised' })).toBe(expected);
    expect(shown(command, { autonomy: 'autonomous' })).toBe('');
  });
});

describe('arguments, under an allow-list', () => {
  it.each([
    'ls -1 -a -l',
    'ls -la src',
    'cat -bnT a.txt',
    'head -n 5 a.txt',
    'head -5 a.txt',
    'head --lines=5 a.txt',
    'printenv PATH',
    'printenv',
    'pwd',
    'pwd -P',
    'ls | cat',
    'ls | cat -n',
    'ls | head -n 3 | cat',
    'cat < a.txt',
    'ls -L src',
    'ls -R src',
    'ls *',
    'cat *',
    'cat *.txt',
    'cat "$x"',
    'head -n 3 *',
    'diff --no-dereference -r src docs',
    'diff a.txt README.md',
    'grep -r x .',
    'rg -n --hidden x src',
    'rg --files',
    'sed -n 1,5p a.txt',
    'sed s/a/b/ a.txt',
    'sed -i s/a/b/ a.txt',
    'which -a git',
    'cp a.txt b.txt',
    'cp -r test_cp_dir x',
    'cp -t docs a.txt',
    'cp --target-directory=docs a.txt README.md',
  ])('%s is used as the tables say', (command) => {
    expect(shown(command, ALLOW_LIST)).toBe('');
  });

  it.each([
    ['ls --nosuch', 'deny:unknown_option'],
    ['grep x $x', 'deny:dynamic_option'],
    ['cp $x y', 'deny:dynamic_option'],
    ['cat', 'deny:arguments'],
    ['cat -q a', 'deny:unknown_option'],
    ['cp a', 'deny:arguments'],
    ['cp -f a b', 'deny:unknown_option'],
    ['cp test_cp_dir x', 'deny:arguments'],
    ['head', 'deny:arguments'],
    ['head -n 0 a', 'deny:count'],
    ['head -n 1.5 a', 'deny:count'],
    ['head -n x a', 'deny:count'],
    ['head -c -1 a', 'deny:count'],
    ['printenv A B', 'deny:arguments'],
    ['printenv A=B', 'deny:arguments'],
    ['printenv API_TOKEN', 'deny:secret'],
    ['pwd x', 'deny:arguments'],
    ['pwd -x', 'deny:unknown_option'],
    ...[
      'ls -LR',
      'ls -R src --dereference',
      'cp -rL src x',
      'cp -aL src x',
      'cp -r --deref src x',
      'rg -L x',
      'rg --follow x',
      'rg -nL x src',
      'grep -R x .',
      'grep --dereference-recursive x .',
      'find -L . -name x',
      'find . -follow -name x',
      'fd -L x',
      'du -L',
      'diff -r src docs',
      'diff src docs',
      'tree -l',
    ].map((command) => [command, 'deny:follows_links'] as [string, string]),
    ['ls; cat', 'deny:arguments'],
    ['ls || cat', 'deny:arguments'],
    ['rg --pre x y', 'deny:executes_by_option'],
    ['rg --pre-glob x y', 'deny:executes_by_option'],
    ['rg -z y', 'deny:executes_by_option'],
    ['sed s/a/b a', 'deny:sed_script'],
    ['sed -f x a', 'deny:loads_by_option'],
    ['sed --fil=x a', 'deny:loads_by_option'],
    ["sed 'w x' a", 'deny:sed_writes'],
    ["sed 'r x' a", 'deny:sed_reads'],
    ['sed s/a/b/w a', 'deny:sed_writes'],
    ['which /bin/sh', 'deny:arguments'],
    ['which', 'deny:arguments'],
  ])('%s gives %s', (command, expected) => {
    expect(shown(command, ALLOW_LIST)).toBe(expected);
  });
});

describe('arguments, other repositories', () => {
  it.each([
    ['git -C vendored log', 'ask:nested_repository'],
    ['git -C missing log', 'ask:nested_repository'],
    ['git -C $x log', 'ask:nested_repository'],
    ['cd vendored && git log', 'ask:nested_repository'],
    ['cd missing && git log', 'ask:nested_repository'],
    ['git -C src log', ''],
    ['cd src && git log', ''],
    ['git log', ''],
  ])('%s gives %s', (command, expected) => {
    expect(shown(command, { autonomy: 'supervised' })).toBe(expected);
    expect(shown(command, { autonomy: 'autonomous' })).toBe('');
  });
});
