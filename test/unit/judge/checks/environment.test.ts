import { describe, expect, it } from 'vitest';
import { environmentCheck } from '../../../../src/judge/checks/environment.ts';
import { VARIABLES } from '../../../../src/judge/programs/variables.ts';
import { parseShell } from '../../../../src/judge/shell/parse.ts';
import type { Autonomy, Reason } from '../../../../src/model/index.ts';
import { contextOf as contextOfRequest } from '../../../support/check-context.ts';
import { judgeText } from '../../../support/policy-world.ts';

const asks = (command: string, autonomy: Autonomy) =>
  judgeText(command, { autonomy }).reasons.some(
    ({ check, verdict }) => check === 'environment' && verdict === 'ask',
  );

describe('environment', () => {
  it.each([
    'PATH=. ls',
    'PATH+=:. ls',
    'PATH=.',
    'LD_PRELOAD=./x ls',
    'A=b LD_PRELOAD=./x ls',
    'export LD_PRELOAD=./x',
    'export A=b PATH=x',
    'env LD_PRELOAD=./x ls',
    'env -u A -i PATH=. ls',
    // Options as env reads them: several letters in one word, shortened names, values of their own.
    'env -iu A PATH=. ls',
    'env -vC /tmp LD_PRELOAD=./x ls',
    'env --chdi /tmp LD_PRELOAD=./x ls',
    'env -- LD_PRELOAD=./x ls',
    'env - LD_PRELOAD=./x ls',
    'BASH_ENV=x ls',
    'GIT_SSH=./x git fetch',
    'PAGER=./x git log',
    'PAGER=$x git log',
    'IFS=x ls',
    'echo $(LD_PRELOAD=./x ls)',
  ])('%s is asked about in every mode', (command) => {
    expect(asks(command, 'supervised')).toBe(true);
    expect(asks(command, 'autonomous')).toBe(true);
  });

  it.each([
    'PYTHONPATH=src pytest',
    'CC=./x make',
    'NODE_PATH=x node y',
    'RUSTFLAGS="-D warnings" cargo build',
  ])('%s is asked about under supervision only', (command) => {
    expect(asks(command, 'supervised')).toBe(true);
    expect(asks(command, 'autonomous')).toBe(false);
  });

  it.each([
    'LC_ALL=C sort a',
    'CI=1 npm test',
    'NO_COLOR=1 ls',
    'FOO=bar ls',
    'NODE_ENV=test npm test',
    'GIT_PAGER=cat git log',
    'while IFS= read -r x; do echo "$x"; done < a.txt',
    'env FOO=bar ls',
    'env FOO=bar grep LD_PRELOAD=x a.txt',
    'env -u LD_PRELOAD=x ls',
    'export FOO=bar',
    'echo PATH=x',
    'grep LD_PRELOAD=x a.txt',
  ])('%s is not', (command) => {
    expect(asks(command, 'supervised')).toBe(false);
  });
});

describe('environment, under an allow-list', () => {
  const allow = [
    ...[
      'ls',
      'cat',
      'cp',
      'head',
      'printenv',
      'pwd',
      'rg',
      'sed',
      'which',
      'git',
      'grep',
      'find',
      'less',
      'env',
    ],
    ...[
      'export',
      'declare',
      'typeset',
      'readonly',
      'read',
      'printf',
      'unset',
      'node',
      'npm',
      'make',
      'python3',
    ],
  ];
  const denies = (command: string, autonomy: Autonomy = 'contained') =>
    judgeText(command, { autonomy, rules: { allow, held: { files: true, network: true, signals: true } } })
      .reasons.filter(({ check }) => check === 'environment')
      .some(({ verdict }) => verdict === 'deny');
  const ofRequest = (command: string, variables: Readonly<Record<string, string>>) =>
    (
      environmentCheck.judge(contextOfRequest(command, { variables, rules: { allow } })) as readonly Reason[]
    ).some(({ verdict }) => verdict === 'deny');
  const members = VARIABLES.flatMap(({ names }) => names.split(' ')).map((name) => name.replace('*', 'X'));
  const COMMANDS: readonly string[] = [
    ...[
      'ls',
      'cat a.txt',
      'cp a.txt b.txt',
      'head -n 1 a.txt',
      'printenv HOME',
      'pwd',
      'rg x',
      'sed -n 1p a.txt',
    ],
    ...['which ls', 'git diff', 'grep x a.txt', 'find .', 'less a.txt'],
  ];

  it.each(COMMANDS)('no variable that changes what runs is set for %s, in whatever way', (command) => {
    const ways: readonly ((name: string) => string)[] = [
      (name) => `${name}=./evil ${command}`,
      (name) => `${name}+=./evil ${command}`,
      (name) => `LC_ALL=C ${name}=./evil ${command}`,
      (name) => `env ${name}=./evil ${command}`,
      (name) => `env -u A -i ${name}=./evil ${command}`,
      (name) => `env A=1 env ${name}=./evil ${command}`,
      (name) => `env -S '${name}=./evil ${command}'`,
      (name) => `export ${name}=./evil; ${command}`,
      (name) => `${name}=./evil; export ${name}; ${command}`,
      (name) => `declare -x ${name}=./evil; ${command}`,
      (name) => `typeset -x ${name}=./evil; ${command}`,
      (name) => `readonly ${name}=./evil; ${command}`,
      (name) => `read ${name} < a.txt; ${command}`,
      (name) => `printf -v ${name} ./evil; ${command}`,
      (name) => `for ${name} in ./evil; do ${command}; done`,
      (name) => `echo "\${${name}:=./evil}"; ${command}`,
      (name) => `(${name}=./evil ${command})`,
      (name) => `cat "$(${name}=./evil ${command})"`,
    ];
    const isLetThrough = (line: string) =>
      // The list itself refuses what is not understood.
      parseShell(line).understood && judgeText(line, { rules: { allow } }).verdict !== 'deny';
    expect(ways.flatMap((way) => members.map(way)).filter(isLetThrough)).toEqual([]);
    expect(judgeText(command, { autonomy: 'contained', rules: { allow } }).verdict).not.toBe('deny');
    expect(members.filter((name) => !ofRequest(command, { [name]: './evil' }))).toEqual([]);
  });

  it.each([
    'FOO=1 ls',
    'MAGIC=./m ls',
    'env MYTOOL_CONFIG=./x ls',
    'export FOO=1; ls',
    'LANG=../x ls',
    'LANG=/w ls',
    'TZ=:/etc/passwd ls',
    'TZ=../x ls',
    'LANGUAGE=../x ls',
    'TERM=../x ls',
    'LS_COLORS=x MANPATH=./x ls',
  ])('%s is refused: what no table knows may be configuration', (command) => {
    for (const autonomy of ['contained', 'autonomous', 'supervised'] as const)
      expect(denies(command, autonomy)).toBe(true);
  });

  it.each([
    'LC_ALL=C ls',
    'LANG=C.UTF-8 ls',
    'TZ=Europe/Rome ls',
    'NO_COLOR=1 ls',
    'CI=1 npm test',
    'NODE_ENV=test npm test',
    'DEBUG=* npm test',
    'GIT_PAGER=cat git log',
    'GIT_AUTHOR_NAME=me git log',
    'env LC_ALL=C grep x a.txt',
    'x=1; cat "$x"',
    'for f in a.txt README.md; do cat "$f"; done',
    'while read -r line; do printf "%s" "$line"; done < a.txt',
    'ls',
    'MAKEFLAGS=-j4 make',
  ])('%s is not', (command) => {
    expect(denies(command)).toBe(false);
  });

  it('looks at what comes with a request, and lets through what changes nothing', () => {
    for (const name of ['FOO', 'LD_PRELOAD', 'RIPGREP_CONFIG_PATH', 'LESSOPEN'])
      expect(ofRequest('ls', { [name]: './x' })).toBe(true);
    expect(ofRequest('ls', { LC_ALL: 'C', CI: '1' })).toBe(false);
  });
});
