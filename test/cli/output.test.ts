import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { expectNothingLeft } from '../support/leftovers.ts';
import { HOST } from '../support/tiers.ts';
import { cli, expectOneLine, makePlace } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());
afterEach(() => expectNothingLeft(place));

const RESULT_KEYS = [
  'argv',
  'cpu',
  'leftBehind',
  'cwd',
  'durationMs',
  'outputHeld',
  'processTree',
  'report',
  'status',
  'stderr',
  'stdout',
  'treeEnded',
  'truncated',
  'warnings',
];

describe('--json', () => {
  it('prints what people look for first, and nothing that has nothing to say', async () => {
    const { stdout } = await cli(place, ['--json', '--', 'echo', 'hello', 'world']);
    expect(stdout).toMatch(
      /^\{"status":"exited","ok":true,"exitCode":0,"stdout":"hello world\\n","stderr":"","durationMs":[\d.]+\}\n$/,
    );
    // What follows the option is the command, and no value of it.
    expect(JSON.parse((await cli(place, ['--json', 'full'])).stdout)).toMatchObject({
      status: 'setup-failed',
      error: { code: 'program.not_found' },
    });
  });

  it('prints one object on one line with everything that is known, if that is asked for', async () => {
    const command = 'echo out; echo err >&2; exit 3';
    const { exitCode, stdout, stderr } = await cli(place, ['--json=full', '-c', command]);
    expect(exitCode).toBe(3);
    expect(stderr).toBe('');
    expect(stdout.endsWith('}\n')).toBe(true);
    expect(stdout.trimEnd()).not.toContain('\n');
    const result = JSON.parse(stdout);
    expect(result).toMatchObject({
      status: 'exited',
      exitCode: 3,
      stdout: 'out\n',
      stderr: 'err\n',
      cwd: place.workspace,
      truncated: { stdout: 0, stderr: 0 },
      treeEnded: true,
      warnings: [],
      leftBehind: [],
    });
    expect(Object.keys(result)).toEqual(expect.arrayContaining(RESULT_KEYS));
    expect(result.durationMs).toBeGreaterThan(0);
    expect(result.cpu.userMs + result.cpu.systemMs).toBeGreaterThan(0);
    expect(result.report.backend).toBe('landlock');
    for (const control of result.report.controls) {
      expect(control).toEqual({
        id: expect.any(String),
        state: expect.stringMatching(/^(enforced|degraded|unsupported|off)$/),
        demand: expect.stringMatching(/^(required|best-effort)$/),
        reason: expect.any(String),
      });
    }
  });

  it.each([
    [
      ['--timeout', '0.2', '--json=full', '--', 'sleep', '9'],
      124,
      { status: 'timed-out', signal: 'SIGTERM' },
    ],
    [['--json=full', '-c', 'kill -KILL $$'], 137, { status: 'signaled', signal: 'SIGKILL' }],
    [
      ['--json=full', 'no-such-program'],
      127,
      { status: 'setup-failed', error: { code: 'program.not_found' } },
    ],
    [
      ['--json=full', '/etc/passwd'],
      126,
      { status: 'setup-failed', error: { code: 'program.not_executable' } },
    ],
  ])('says how it ended: %j', async (args, exitCode, expected) => {
    const result = await cli(place, args);
    expect(result.exitCode).toBe(exitCode);
    expect(JSON.parse(result.stdout)).toMatchObject(expected);
    expect(Object.keys(JSON.parse(result.stdout))).toEqual(expect.arrayContaining(RESULT_KEYS));
  });

  it('counts what --max-output leaves out', async () => {
    const { stdout } = await cli(place, [
      '--json',
      '--max-output',
      '10',
      '-c',
      'printf %01000d 7; printf abc >&2',
    ]);
    const result = JSON.parse(stdout);
    expect(result.stdout).toBe('00000\n[... 990 bytes left out ...]\n00007');
    expect(result.stderr).toBe('abc');
    expect(result.truncated).toEqual({ stdout: 990, stderr: 0 });
  });

  it('keeps a mebibyte of each stream by default', async () => {
    const { stdout } = await cli(place, ['--json', '-c', 'head -c 3000000 /dev/zero | tr "\\0" x']);
    const result = JSON.parse(stdout);
    expect(result.stdout.replace(/\n.*\n/, '').length).toBe(1_048_576);
    expect(result.truncated.stdout).toBe(3_000_000 - 1_048_576);
  });

  it('captures output as it is told to', async () => {
    const run = async (...options: string[]) => {
      const command = 'printf "\\033[31mred\\033[0m\\n"; echo err >&2; echo out';
      return JSON.parse((await cli(place, ['--json', ...options, '-c', command])).stdout);
    };
    expect(await run('--combined', '--neutralize')).toMatchObject({ stdout: 'red\nerr\nout\n', stderr: '' });
    expect((await run('--max-output', '2+4')).stdout).toBe('\x1b[\n[... 11 bytes left out ...]\nout\n');
    const { spilled } = await run('--spill');
    expect(readFileSync(spilled.stdout, 'utf8')).toBe('\x1b[31mred\x1b[0m\nout\n');
    expect(readFileSync(spilled.stderr, 'utf8')).toBe('err\n');
  });

  it.each(['--combined', '--neutralize', '--spill'])('is needed for %s', async (option) => {
    const { exitCode, stdout, stderr } = await cli(place, [option, 'true']);
    expect([exitCode, stdout]).toEqual([125, '']);
    expect(stderr).toMatch(/^sandbox-run: .*--json.*\n$/);
    expect(stderr).toContain(option);
  });

  it('takes sizes for --max-output', async () => {
    const result = await cli(place, ['--json', '--max-output', '1K+2k', 'seq', '10000']);
    expect(JSON.parse(result.stdout).truncated.stdout).toBe(48_894 - 3 * 1024);
  });

  it.each([[['--max-output', '5']], [['--json', '-t', '--combined']]])(
    'refuses %j, which would mean nothing',
    async (options) => {
      const result = await cli(place, [...options, 'true']);
      expect([result.exitCode, result.stdout]).toEqual([125, '']);
      expectOneLine(result.stderr);
    },
  );

  it('says in one line that output is too long for JSON', async () => {
    const result = await cli(place, [
      '--json',
      '--max-output',
      '128M',
      '--',
      'head',
      '-c',
      '128M',
      '/dev/zero',
    ]);
    expect([result.exitCode, result.stdout]).toEqual([125, '']);
    expectOneLine(result.stderr);
  });

  it.each(['', 'x', '-1', '1+', '+1', '1+2+3', '1.5', '129M', '128M+1'])(
    'refuses --max-output %s',
    async (limit) => {
      expect((await cli(place, ['--json', `--max-output=${limit}`, 'true'])).exitCode).toBe(125);
    },
  );

  it('lets the command read standard input', async () => {
    const { stdout } = await cli(place, ['--json', '--', 'cat'], { input: 'from outside' });
    expect(JSON.parse(stdout).stdout).toBe('from outside');
  });
});

describe('--dry-run', () => {
  it('shows the plan and runs nothing', async () => {
    const marker = join(place.workspace, 'marker');
    const result = await cli(place, ['--dry-run', '--', 'touch', marker]);
    expect(result).toMatchObject({ exitCode: 0, stderr: '' });
    for (const part of [
      'Workspace',
      'Writable',
      place.workspace,
      'System calls refused',
      'filesystem',
      'network',
    ]) {
      expect(result.stdout).toContain(part);
    }
    expect(existsSync(marker)).toBe(false);
  });

  it('prints the plan as JSON with --json', async () => {
    const marker = join(place.workspace, 'marker');
    const { stdout } = await cli(place, ['--dry-run', '--json', '--', 'touch', marker]);
    const plan = JSON.parse(stdout);
    expect(plan.workspace).toBe(place.workspace);
    expect(plan.landlock.rules.length).toBeGreaterThan(5);
    expect(plan.report.controls.length).toBeGreaterThan(10);
    expect(existsSync(marker)).toBe(false);
  });

  it('shows time-out, limits and level, of options and policy', async () => {
    const policy = join(place.root, 'limits.toml');
    writeFileSync(policy, '[security]\nautonomy = "supervised"\n[limits]\nmemory = 1073741824\n');
    const showing = (...options: string[]) => cli(place, ['--dry-run', ...options, 'true']);
    const shown = (await showing()).stdout;
    expect(shown).toMatch(/^Autonomy contained: asks about commands that act outside the sandbox$/m);
    expect(shown).toMatch(/^Limits\n {2}time-out +60 s$/m);
    expect(shown).toMatch(/^ {2}processes +4096$/m);
    expect(shown).toMatch(/^ {2}output kept +1024 KiB /m);
    const options = ['--policy', policy, '--timeout', '7', '--max-processes', '12', '--cpu-time', '9'];
    const limited = (await showing(...options)).stdout;
    for (const [name, value] of [
      ['Autonomy', 'supervised: asks about commands that change something'],
      ['time-out', '7 s'],
      ['memory', '1024 MiB'],
      ['processes', '12'],
      ['processor time', '9 s'],
    ])
      expect(limited).toMatch(new RegExp(`^ *${name} +${value}$`, 'm'));
    expect((await showing('--timeout', '0')).stdout).toMatch(/^ {2}time-out +none$/m);
    expect((await showing('--autonomy', 'readonly')).stdout).toMatch(/^Autonomy readonly: /m);
    const { timeout, maxOutput, autonomy, treeLimits } = JSON.parse((await showing('--json')).stdout);
    expect({ timeout, maxOutput, autonomy }).toEqual({
      timeout: 60_000,
      maxOutput: 1_048_576,
      autonomy: 'contained',
    });
    expect(treeLimits.processes).toBe(4096);
    expect(JSON.parse((await showing('--json', ...options)).stdout)).toMatchObject({
      timeout: 7_000,
      autonomy: 'supervised',
      treeLimits: { memoryBytes: 1_073_741_824, processes: 12, cpuSeconds: 9 },
    });
  });

  it('says the level that is in force: without a kernel backend nothing is contained', async () => {
    const { stdout } = await cli(place, ['--dry-run', '--json', '--backend', 'application', 'ls']);
    expect(JSON.parse(stdout)).toMatchObject({ autonomy: 'supervised' });
  });

  it('finds mistakes as a run would', async () => {
    expect((await cli(place, ['--dry-run', '--ro', '/nonexistent', 'true'])).exitCode).toBe(125);
  });
});

describe('remarks on standard error', () => {
  it('-v shows every control before the command speaks', async () => {
    const result = await cli(place, ['-v', '-c', 'echo hello']);
    expect(result.stdout).toBe('hello\n');
    expect(result.stderr).toMatch(/^sandbox-run: backend landlock, Landlock ABI \d+\n/);
    for (const id of ['filesystem', 'network', 'syscalls', 'environment']) {
      expect(result.stderr).toMatch(new RegExp(`^  ${id} +(yes|part|NO|off) `, 'm'));
    }
  });

  it('says nothing of a command that failed by itself', async () => {
    const { stderr, exitCode } = await cli(place, ['-c', 'exit 9']);
    expect([exitCode, stderr]).toEqual([9, '']);
  });

  it('-q keeps quiet, but not about errors of the launcher', async () => {
    expect((await cli(place, ['-q', '-c', 'exit 9'])).stderr).toBe('');
    expect((await cli(place, ['-q', '--timeout', '0.1', 'sleep', '5'])).stderr).toBe('');
    expect((await cli(place, ['-q', '--nope'])).stderr).toMatch(/^sandbox-run: /);
    const refused = await cli(place, ['-q', '--', 'sudo', 'ls'], {
      env: { XDG_CONFIG_HOME: join(place.root, 'none') },
    });
    expect([refused.exitCode, refused.stderr.split('\n').length]).toEqual([126, 2]);
    expect(refused.stderr).toMatch(/^sandbox-run: refused by the policy: sudo /);
  });

  it('names what a trusted program may execute later', async () => {
    const result = await cli(place, ['-c', 'mkdir .vscode && echo {} > .vscode/tasks.json']);
    expect(result.stderr).toMatch(/warning: .*\.vscode/);
    expect(existsSync(join(place.workspace, '.vscode'))).toBe(false);
  });

  it.runIf(!HOST.namespaces)(
    'says that such paths are looked at only in the end (no namespaces)',
    async () => {
      const { report } = JSON.parse((await cli(place, ['--json=full', 'true'])).stdout);
      expect(report.controls).toContainEqual(
        expect.objectContaining({
          ...{ id: 'protected-paths', state: 'degraded' },
          reason: expect.stringContaining(
            'can be written while a command runs, and are put back when it ends',
          ),
        }),
      );
    },
  );
});

describe('--env', () => {
  const show = 'printenv WANTED || echo unset';
  it('passes a variable by name, sets one by value, and passes nothing else', async () => {
    const env = { WANTED: 'outer' };
    expect((await cli(place, ['-c', show], { env })).stdout).toBe('unset\n');
    expect((await cli(place, ['--env', 'WANTED', '-c', show], { env })).stdout).toBe('outer\n');
    expect((await cli(place, ['--env', 'WANTED=inner', '-c', show], { env })).stdout).toBe('inner\n');
    expect((await cli(place, ['--env', 'WANTED=', '-c', show], { env })).stdout).toBe('\n');
    expect((await cli(place, ['--env', 'MISSING', '-c', 'printenv MISSING || echo unset'])).stdout).toBe(
      'unset\n',
    );
  });

  it('warns of a secret that is passed by its name', async () => {
    const env = { API_TOKEN: 'value-of-the-token' };
    const result = await cli(place, ['--env', 'API_TOKEN', '-c', 'echo "$API_TOKEN"'], { env });
    expect(result.stdout).toBe('value-of-the-token\n');
    expect(result.stderr).toMatch(/^sandbox-run: warning: .*API_TOKEN[^\n]*\n$/);
    expect(result.stderr).not.toContain('value-of-the-token');
    const quiet = await cli(place, ['-q', '--env', 'API_TOKEN', 'true'], { env });
    expect(quiet.stderr).toBe('');
    const json = await cli(place, ['--json', '--env', 'API_TOKEN', 'true'], { env });
    expect(JSON.parse(json.stdout).warnings).toEqual([expect.stringContaining('API_TOKEN')]);
  });
});

describe('a policy file', () => {
  const write = (name: string, text: string) => writeFileSync(join(place.workspace, name), text);

  const GOOD = '[environment]\nset = { FROM_POLICY = "yes" }\n[limits]\ntimeout_seconds = 0.2\n';
  const expectObeyed = async (policy: string) => {
    expect((await cli(place, ['--policy', policy, '-c', 'echo $FROM_POLICY'])).stdout).toBe('yes\n');
    expect((await cli(place, ['--policy', policy, 'sleep', '5'])).exitCode).toBe(124);
    expect((await cli(place, ['--policy', policy, '--timeout', '5', 'sleep', '0.4'])).exitCode).toBe(0);
  };

  it('is obeyed', async () => {
    write('../good.toml', GOOD);
    await expectObeyed('../good.toml');
  });

  it.runIf(HOST.namespaces)('is obeyed in the workspace, which a view shuts (needs namespaces)', async () => {
    write('good.toml', GOOD);
    await expectObeyed('good.toml');
  });

  it.runIf(!HOST.namespaces)('is refused in the workspace, which nothing shuts (no namespaces)', async () => {
    write('good.toml', GOOD);
    const result = await cli(place, ['--policy', 'good.toml', 'true']);
    expect(result).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(result.stderr);
    expect(result.stderr).toContain('commands could change the policy');
  });

  it.each([
    ['not TOML', 'profile = \n', /bad\.toml:1:\d+: /],
    ['an unknown table', '[network]\nmode = "off"\n[netwrok]\n', /bad\.toml:\d+: .*netwrok/],
    ['an unknown key', '[filesystem]\nreed = ["/"]\n', /bad\.toml:2: filesystem\.reed: /],
    ['a wrong type', '[limits]\nprocesses = "many"\n', /bad\.toml:\d+: limits\.processes: /],
    ['a wrong value', '[network]\nmode = "on"\n', /bad\.toml:\d+: network\.mode: /],
    ['a path that is missing', '[filesystem]\nread = ["/nonexistent"]\n', /\/nonexistent/],
    ['an unknown profile', 'profile = "nope"\n', /nope/],
  ])('with a mistake is refused and the place named: %s', async (_, text, message) => {
    write('bad.toml', text);
    const result = await cli(place, ['--policy', 'bad.toml', 'true']);
    expect(result).toMatchObject({ exitCode: 125, stdout: '' });
    expect(result.stderr).toMatch(/^sandbox-run: [^\n]+\n$/);
    expect(result.stderr).toMatch(message);
  });
});

describe('--ro, --rw, --workspace and --profile', () => {
  const outside = join(place.root, 'outside');

  it('open further paths, for reading or for writing', async () => {
    mkdirSync(outside, { recursive: true });
    writeFileSync(join(outside, 'file'), 'content');
    const read = ['-q', '--', 'cat', join(outside, 'file')];
    const touch = ['-q', '--', 'touch', join(outside, 'made')];
    expect((await cli(place, read)).exitCode).toBe(1);
    expect((await cli(place, ['--ro', outside, ...read])).stdout).toBe('content');
    expect((await cli(place, ['--ro', outside, ...touch])).exitCode).toBe(1);
    expect(existsSync(join(outside, 'made'))).toBe(false);
    expect((await cli(place, ['--rw', outside, ...touch])).exitCode).toBe(0);
    expect(existsSync(join(outside, 'made'))).toBe(true);
    expect((await cli(place, ['--ro', '../outside', ...read])).stdout).toBe('content');
  });

  it('--workspace chooses the only place to write', async () => {
    const result = await cli(place, [
      '-q',
      '--workspace',
      outside,
      '-c',
      `touch here; touch ${place.workspace}/there`,
    ]);
    expect(result.exitCode).toBe(1);
    expect(existsSync(join(outside, 'here'))).toBe(true);
    expect(existsSync(join(place.workspace, 'there'))).toBe(false);
  });

  it.each([
    ['workspace-write', 0, 'off'],
    ['read-only', 1, 'off'],
    ['offline-build', 0, 'off'],
    ['networked', 0, 'open'],
  ])('--profile %s', async (profile, writing, network) => {
    const write = await cli(place, ['-q', '--profile', profile, 'touch', `by-${profile}`]);
    expect(write.exitCode).toBe(writing);
    const { stdout } = await cli(place, ['--profile', profile, '--dry-run', '--json', 'true']);
    const state = JSON.parse(stdout).report.controls.find(
      (control: { id: string }) => control.id === 'network',
    ).state;
    expect(state).toBe(network === 'open' ? 'off' : 'enforced');
  });
});
