import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { SUBCOMMANDS } from '../../src/cli/index.ts';
import { expectNothingLeft } from '../support/leftovers.ts';
import { CLI, cli, expectOneLine, makePlace } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());
afterEach(() => expectNothingLeft(place));

const PRINT_ARGUMENTS = ['python3', '-c', 'import sys, json; print(json.dumps(sys.argv[1:]))'];

describe('arguments of the command', () => {
  it.each([
    ['spaces and quotes', ['a b', ' ', '"', "'", '$HOME', '`id`', '*', '\\']],
    ['newlines, tabs and empty arguments', ['', 'a\nb', '\t', '']],
    [
      'what looks like options of the launcher',
      ['--json', '-c', 'x', '--timeout', '0.001', '--help', '--version'],
    ],
    ['unicode', ['é', '日本', '🧪']],
    ['a second --', ['--', 'x', '--']],
  ])('arrive as given: %s', async (_, args) => {
    const afterDashes = await cli(place, ['--', ...PRINT_ARGUMENTS, ...args]);
    expect(afterDashes).toMatchObject({ exitCode: 0, stderr: '' });
    expect(JSON.parse(afterDashes.stdout)).toEqual(args);
    const without = await cli(place, [...PRINT_ARGUMENTS, ...args]);
    expect(JSON.parse(without.stdout)).toEqual(args);
  });

  it('takes a command that is named like a subcommand after --', async () => {
    const result = await cli(place, ['--', 'doctor']);
    expect(result.exitCode).toBe(127);
  });

  it('keeps option values apart from the command', async () => {
    const result = await cli(place, [
      '--env',
      'A=1',
      '--timeout=5',
      '--env',
      'B=x y=z',
      '--',
      'sh',
      '-c',
      'echo "$A|$B"',
    ]);
    expect(result.stdout).toBe('1|x y=z\n');
  });

  it('runs in the current directory if it lies in the workspace, else in the workspace', async () => {
    expect((await cli(place, ['pwd'])).stdout).toBe(`${place.workspace}\n`);
    const elsewhere = await cli(place, ['--workspace', place.workspace, 'pwd'], { cwd: '/' });
    expect(elsewhere.stdout).toBe(`${place.workspace}\n`);
  });
});

describe('a shell string', () => {
  it('runs under bash with all its syntax', async () => {
    const script = `set -o pipefail
      words=(one "two  words" 'three "quoted"')
      printf '%s\\n' "\${words[@]}" | cat
      cat <<'END'
here $NOT expanded
END
      [[ abc =~ b ]] && echo matched`;
    const result = await cli(place, ['-c', script]);
    expect(result).toMatchObject({
      exitCode: 0,
      stdout: 'one\ntwo  words\nthree "quoted"\nhere $NOT expanded\nmatched\n',
      stderr: '',
    });
  });

  it('may begin with a dash and be empty', async () => {
    expect((await cli(place, ['--shell=-x', '-q'])).exitCode).toBe(127);
    expect(await cli(place, ['-c', ''])).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
  });

  it('reads no start-up files and no BASH_ENV', async () => {
    const env = { BASH_ENV: '/dev/stdin', ENV: '/dev/stdin', 'BASH_FUNC_echo%%': '() { printf hijacked; }' };
    expect((await cli(place, ['-c', 'printenv BASH_ENV || echo unset'], { env })).stdout).toBe('unset\n');
  });

  it('refuses words left over', async () => {
    const result = await cli(place, ['-c', 'echo', 'hello']);
    expect(result.exitCode).toBe(125);
    expectOneLine(result.stderr);
    expect(result.stderr).toContain('hello');
  });
});

describe('wrong usage ends with 125 and one line', () => {
  it.each([
    ['nothing to run', [], /no command/],
    ['only dashes', ['--'], /no command/],
    ['an unknown option', ['--nope', 'true'], /--nope/],
    ['an unknown option that resembles one', ['--workspce', '.', 'true'], /--workspace/],
    ['a missing value', ['--timeout'], /--timeout/],
    ['a time-out that is no number', ['--timeout', 'soon', 'true'], /soon/],
    ['a negative time-out', ['--timeout=-1', 'true'], /-1/],
    ['an output limit that is no number', ['--json', '--max-output', '1x', 'true'], /1x/],
    ['an unknown profile', ['--profile', 'nope', 'true'], /nope.*workspace-write/],
    ['a workspace that is missing', ['--workspace', '/nonexistent', 'true'], /\/nonexistent/],
    ['a workspace that is a file', ['--workspace', '/etc/passwd', 'true'], /\/etc\/passwd/],
    ['a workspace that holds the system', ['--workspace', '/', 'true'], /\//],
    ['a readable path that is missing', ['--ro', '/nonexistent', 'true'], /\/nonexistent/],
    ['a writable path that is missing', ['--rw', '/nonexistent', 'true'], /\/nonexistent/],
    [
      'a policy file that is missing',
      ['--policy', '/nonexistent.toml', 'true'],
      /\/nonexistent\.toml.*ENOENT/,
    ],
    ['a policy that is a directory', ['--policy', '/', 'true'], /EISDIR/],
    ['a variable without a name', ['--env', '=x', 'true'], /=x/],
    ['doctor with an unknown option', ['doctor', '--nope'], /--nope/],
    ['doctor with an operand', ['doctor', 'x'], /argument/],
  ])('%s', async (_, args, message) => {
    const result = await cli(place, args);
    expect(result).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(result.stderr);
    expect(result.stderr).toMatch(message);
  });
});

describe('what a terminal would obey', () => {
  const evil = 'x\x1b]0;owned\x07\x1b[2J\r\u009b1m\u202e';
  it.each([
    ['the name of a program', [evil]],
    ['an unknown option', [`--${evil}`]],
    ['an unknown subcommand', ['approvals', evil]],
    ['an unknown profile', ['--profile', evil, 'true']],
    ['an unknown taint', ['--taint', evil, 'true']],
    ['a taint of a session', ['session', 'taint', 's', evil]],
    ['the id of a grant', ['approvals', 'revoke', evil]],
    ['the path of a socket', ['approvals', 'serve', '--socket', `/nonexistent/${evil}`]],
    ['a directory', ['--workspace', `/nonexistent/${evil}`, 'true']],
  ])('is shown in messages as escapes: %s', async (_, args) => {
    const { stdout, stderr } = await cli(place, args);
    expect(stdout).toBe('');
    expectOneLine(stderr);
    expect(stderr).toContain('x\\u{1b}]0;owned\\u{7}');
    expect(stderr).not.toContain('\\u{5c}');
    expect(stderr).not.toMatch(/[^\n -~]/);
  });
});

describe('help and --version', () => {
  it('shows options, examples, profiles and exit statuses', async () => {
    const result = await cli(place, ['help', 'all']);
    expect(result).toMatchObject({ exitCode: 0, stderr: '' });
    for (const part of [
      'Examples:',
      'Profiles:',
      'Exit status',
      '124',
      '125',
      '126',
      '127',
      '--dry-run',
      'doctor',
    ]) {
      expect(result.stdout).toContain(part);
    }
    for (const line of result.stdout.split('\n')) expect(line.length).toBeLessThanOrEqual(100);
  });

  it('lists every subcommand, in alphabetical order', async () => {
    const { stdout } = await cli(place, ['help', 'all']);
    const [, list = ''] = /\nCommands:\n((?: {2}\S.*\n)+)/.exec(stdout) ?? [];
    const names = list
      .trimEnd()
      .split('\n')
      .map((line) => line.trim().split(' ')[0]);
    expect(names).toEqual(Object.keys(SUBCOMMANDS).sort());
  });

  it('gives the help of a subcommand for help and its name, too', async () => {
    const [behind, before] = [await cli(place, ['up', '--help']), await cli(place, ['help', 'up'])];
    expect(before).toMatchObject({ exitCode: 0, stdout: behind.stdout });
    expect((await cli(place, ['help', 'nothing'])).exitCode).toBe(125);
  });

  it.each([['--help'], ['-h'], ['help']])(
    '%s fits on one screen, and says where the rest is',
    async (word) => {
      const { exitCode, stdout, stderr } = await cli(place, [word]);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
      const lines = stdout.trimEnd().split('\n');
      expect(lines.length).toBeLessThanOrEqual(24);
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(100);
      expect(stdout).toContain('sandbox-run help all');
      // What it names is there.
      const { stdout: all } = await cli(place, ['help', 'all']);
      for (const [option] of stdout.matchAll(/(?<=^ {2}.*)--[a-z-]+/gm)) expect(all).toContain(`${option} `);
      for (const [, name] of stdout.matchAll(/^ {2}([a-z]+)/gm))
        expect(Object.keys(SUBCOMMANDS)).toContain(name);
    },
  );

  it.each(['approvals', 'audit', 'changes', 'gate', 'kept', 'policy', 'session'])(
    '%s alone shows what there is behind it',
    async (group) => {
      const { exitCode, stdout, stderr } = await cli(place, [group]);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
      expect(stdout).toContain('\nCommands:\n');
    },
  );

  it('shows the version of the package', async () => {
    const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
    expect(await cli(place, ['--version'])).toMatchObject({
      exitCode: 0,
      stdout: `${manifest.version}\n`,
      stderr: '',
    });
  });
});

describe('--rw of a path that is not there', () => {
  it('names the line that makes it, and then works', async () => {
    const target = join(place.root, 'not there/new');
    const once = () => cli(place, ['--rw', target, '--', 'sh', '-c', 'echo x > "$0/file"', target]);
    const refused = await once();
    expect(refused.exitCode).toBe(125);
    expectOneLine(refused.stderr);
    const [, line = ''] = /make it first: (mkdir .*?) \(a file: /.exec(refused.stderr) ?? [];
    execFileSync('bash', ['-c', line], { cwd: place.workspace });
    expect(await once()).toMatchObject({ exitCode: 0, stderr: '' });
    expect(readFileSync(join(target, 'file'), 'utf8')).toBe('x\n');
  });
});

describe('a current directory whose name is not UTF-8, or that is gone', () => {
  const COMMANDS =
    'undo;redo;history;changes list;changes apply;changes diff;cache clear;policy show;policy init;policy import --from claude-code /dev/null;check -- ls;install claude-code;trust;untrust;learn -- ls;ls';
  it.each(
    COMMANDS.split(';').flatMap((line) => [
      [line, 'not UTF-8'],
      [line, 'gone'],
    ]),
  )('is told in one line: sandbox-run %s, %s', (line, kind) => {
    const enter = kind === 'gone' ? 'mkdir gone && cd gone && rmdir ../gone' : 'cd "$(printf \'odd\\377\')"';
    const { stderr, status } = spawnSync(
      'bash',
      [
        '-c',
        `mkdir -p "$(printf 'odd\\377')" && ${enter} && exec "$0" "$@"`,
        process.execPath,
        CLI,
        ...line.split(' '),
      ],
      { cwd: place.workspace, env: place.env, encoding: 'utf8', input: '' },
    );
    expectOneLine(stderr);
    expect([status, stderr]).toEqual([
      125,
      expect.stringMatching(/the current directory .*(?:is not valid UTF-8|no longer exists)/),
    ]);
  });
});
