import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import {
  changedVariables,
  factsOf,
  readDeclarations,
  readShellState,
  type ShellState,
} from '../../../../src/run/session/shell-state.ts';
import { restoreVariables } from '../../../../src/run/session/snapshot.ts';

describe('what export -p writes', () => {
  const values: Readonly<Record<string, string>> = {
    PLAIN: 'x',
    EMPTY: '',
    QUOTES: `"'\`$x\\ \\" $(id)`,
    LINES: 'a\nb\n\ndeclare -x FAKE="1"\n',
    CONTROL: 'a\tb\x1b[0m\r\x07\x01\x7f',
    UNICODE: 'ü€😀',
    ENDS: 'back\\',
  };
  it.each([[], ['--posix']])('is read as bash means it %s', (...options) => {
    const script = [...Object.keys(values)].map((name) => `export ${name}`).join('; ');
    const text = execFileSync(
      '/bin/bash',
      [
        ...options,
        '--noprofile',
        '--norc',
        '-c',
        `declare -ax LIST=(a 'b "c' $'d\\n)'); ${script}; export NONE; export -p`,
      ],
      { env: values as NodeJS.ProcessEnv, encoding: 'utf8' },
    );
    const read = readDeclarations(text);
    expect(read).toMatchObject(values);
    expect(Object.keys(read ?? {}).sort()).toEqual(
      [...Object.keys(values), 'PWD', 'SHLVL', ...(read?._ === undefined ? [] : ['_'])].sort(),
    );
  });

  it.each([
    'garbage',
    'declare -x A="x"',
    'declare -x A="x" B="y"\n',
    'declare -x A="x\n',
    "declare -x A=$'\\q'\n",
    'declare -x A=(x\n',
    'declare -x A=x\n',
    'declare -x 1A="x"\n',
  ])('nothing else is: %j', (text) => {
    expect(readDeclarations(text)).toBeUndefined();
  });
});

const FIELDS = [
  ...['/w\n', '/w\n', 'declare -x A="1"\ndeclare -x PWD="/w"\n', '', '', ''],
  'declare -r BASHOPTS="a"\ndeclare -ar BASH_VERSINFO=([0]="5")\ndeclare -ir EUID="0"\n',
  ...['braceexpand:monitor', 'sourcepath', '/bin', '', 'set', ' \t\n', '', '', '', '', '', '', '+ '],
];
const report = (change: Readonly<Record<number, string>> = {}) =>
  Buffer.from(FIELDS.map((field, at) => change[at] ?? field).join('\0'));
function stateOf(change: Readonly<Record<number, string>> = {}): ShellState {
  const state = readShellState(report(change));
  if (state === undefined) throw new Error('it cannot be read');
  return state;
}

describe('a report', () => {
  it('without anything unusual leaves no doubt', () => {
    expect(factsOf(stateOf(), stateOf(), false)).toEqual({
      names: [],
      doubts: [],
      places: [],
      directoryDoubt: undefined,
    });
    const own =
      "trap -- '\\builtin trap - INT; \\builtin kill -INT $$ || \\builtin kill -INT $$ || \\builtin kill -INT $$' SIGURG\n";
    expect(factsOf(stateOf({ 5: own }), stateOf(), false).doubts).toEqual([]);
    expect(factsOf(stateOf({ 11: '', 12: '' }), stateOf(), false).doubts).toEqual([]);
  });

  const doubtful: readonly (readonly [Record<number, string>, RegExp])[] = [
    [{ 5: "trap -- 'x' ERR\n" }, /trap/],
    [{ 5: "trap -- '\\builtin kill -INT $$; x' SIGURG\n" }, /trap/],
    [{ 6: 'declare -r x="a[$(id)]"\n' }, /read-only x/],
    [{ 6: 'readonly UID=0\n' }, /read-only/],
    [{ 7: 'allexport:braceexpand' }, /allexport/],
    [{ 7: 'braceexpand:posix' }, /posix/],
    [{ 7: 'braceexpand:noglob' }, /noglob/],
    [{ 7: 'monitor' }, /opposite of braceexpand/],
    [{ 8: '' }, /opposite of sourcepath/],
    [{ 8: 'expand_aliases:sourcepath' }, /expand_aliases/],
    [{ 8: 'extglob:sourcepath' }, /extglob/],
    [{ 8: 'dotglob:sourcepath' }, /dotglob/],
    [{ 12: 'x' }, /IFS/],
    [{ 12: 'unset' }, /IFS/],
    [{ 12: '' }, /IFS/],
    [{ 13: '*.ts' }, /GLOBIGNORE/],
    [{ 14: 'x' }, /PROMPT_COMMAND/],
    [{ 15: '/bin/ls' }, /EXECIGNORE/],
    [{ 16: '4.2' }, /BASH_COMPAT/],
    [{ 17: 'set' }, /MAILPATH/],
    [{ 18: '$(id)' }, /prompt/],
    [{ 19: '$(id)' }, /PS4/],
  ];
  it.each(doubtful)('%j leaves a doubt', (change, message) => {
    expect(factsOf(stateOf(change), stateOf(), false).doubts.join()).toMatch(message);
  });

  it.each([
    ['declare -x HOME="/other"\ndeclare -x PWD="/w"\n', ['HOME']],
    ['declare -x PWD="/other"\n', ['PWD']],
    ['', ['PWD']],
  ])('with %j names places that are others', (exports, places) => {
    expect(factsOf(stateOf({ 2: exports }), stateOf(), false)).toMatchObject({ doubts: [], places });
  });

  it('says which names are the own ones of the shell', () => {
    const state = stateOf({
      3: 'declare -f f\ndeclare -fx g-h\n',
      4: "alias ls='x'\nalias -- -a='b\nc=d'\n",
    });
    expect(factsOf(state, stateOf(), false).names).toEqual(expect.arrayContaining(['f', 'g-h', 'ls', '-a']));
  });

  it('through a link, or with CDPATH, leaves a doubt about directories alone', () => {
    expect(factsOf(stateOf({ 0: '/link\n', 2: 'declare -x PWD="/link"\n' }), stateOf(), false)).toMatchObject(
      {
        doubts: [],
        directoryDoubt: expect.stringContaining('through a link'),
      },
    );
    expect(factsOf(stateOf({ 10: '/etc' }), stateOf(), false).directoryDoubt).toContain('CDPATH');
  });

  it.each([
    ['is none', undefined],
    ['has too few fields', Buffer.from('a\0b')],
    ['has too many', Buffer.concat([report(), Buffer.from('\0x')])],
    ['has no directory', report({ 0: '' })],
    ['has a relative one', report({ 1: 'w\n' })],
    ['has an environment that is none', report({ 2: 'A=1\n' })],
  ])('that %s is doubted altogether', (_, bytes) => {
    const state = readShellState(bytes);
    expect(state).toBeUndefined();
    const facts = factsOf(state, stateOf(), false);
    expect(facts.doubts).toHaveLength(1);
    expect(facts.directoryDoubt).toBeDefined();
  });
});

describe('variables', () => {
  it('that changed, came or went', () => {
    const first = stateOf({ 2: 'declare -x A="1"\ndeclare -x B="2"\ndeclare -x PWD="/w"\n' });
    const now = stateOf({ 2: 'declare -x A="x"\ndeclare -x C="3"\ndeclare -x PWD="/v"\n' });
    const usual = { variables: { A: '1', B: '2', PATH: '/bin', GONE: undefined }, first };
    expect(changedVariables(now, usual)).toEqual({ A: 'x', B: undefined, C: '3' });
    expect(changedVariables(first, usual)).toBeUndefined();
    // What a shell began with is no reason to take it for usual, but for what only the launch knows.
    const evil = stateOf({ 9: './evil:/bin', 2: 'declare -x HOME="/h"\n' });
    expect(changedVariables(evil, { variables: { PATH: '/bin' }, first: evil })).toEqual({
      PATH: './evil:/bin',
    });
  });

  it('of a snapshot that would change what runs are not restored', () => {
    const kept = { PATH: '/a', VIRTUAL_ENV: '/w/env', A: '1', NODE_OPTIONS: '--x', LANG: 'C' };
    const refused = {
      LD_PRELOAD: 'x',
      BASH_ENV: 'x',
      ENV: 'x',
      GIT_DIR: 'x',
      PROMPT_COMMAND: 'x',
      IFS: 'x',
      MAIL: 'x',
      MAILPATH: 'x?$(id)',
      MAILCHECK: '1',
      EXECIGNORE: '*',
      BASH_COMPAT: '4.2',
      PS4: '$(id)',
      'a b': 'x',
      'BASH_FUNC_ls%%': '() { :; }',
      N: 'a\0b',
    };
    const anew = { HOME: '/h', TMPDIR: '/t', PWD: '/p', SHLVL: '3', _: 'x', OLDPWD: '/o' };
    const restored = restoreVariables(
      { ...kept, ...refused, ...anew, GIVEN: 'x', CURL_CA_BUNDLE: '/ca' },
      { GIVEN: 'x', CURL_CA_BUNDLE: '/ca' },
    );
    expect(restored.env).toEqual(kept);
    const why = new Map(restored.refused.map((one) => [one.name, one.why]));
    const shown = Object.keys(refused).map((name) => (/^\w+$/.test(name) ? name : JSON.stringify(name)));
    expect([...why.keys()].sort()).toEqual(shown.sort());
    expect(why.get('N')).toContain('NUL');
    expect(why.get('"a b"')).toContain('no name');
    expect(why.get('MAILPATH')).toContain('changes what programs run');
  });
});
