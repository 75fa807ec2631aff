import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ASKS_ABOUT_LOSSES } from '../support/unjudged-policy.ts';
import { cli, expectOneLine, makePlace, startCli } from './support.ts';

const place = makePlace();
// Nothing brings it back.
writeFileSync(join(place.workspace, '.notes-of-the-user'), 'draft');
afterAll(() => place.dispose());

// Of the policy as it is built in, not of the one that lets the other tests run everything.
const env = { XDG_CONFIG_HOME: join(place.root, 'no-config') };
const ASKING = join(place.root, 'asking.toml');
writeFileSync(ASKING, ASKS_ABOUT_LOSSES);
const SUPERVISED = ['--autonomy', 'supervised'];
const check = (args: readonly string[], input?: string) =>
  cli(place, ['check', ...args], input === undefined ? { env } : { env, input });
const lines = (stdout: string) =>
  stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));

describe('sandbox-run check', () => {
  it.each([
    ['allows what is harmless', ['-c', 'ls -la | head'], 0, /^allow {2}\(risk low, reach local\)\n/],
    ['takes an argument vector', ['--', 'ls', '-la'], 0, /^allow /],
    ['takes options before the command without --', ['--autonomy', 'autonomous', 'ls'], 0, /^allow /],
    [
      'asks about risk where it is told to',
      [...SUPERVISED, '-c', 'git push'],
      10,
      /^ask .*\n(.*\n)* +ask +autonomy +needs_approval /,
    ],
    [
      'asks about a loss',
      ['--policy', ASKING, '-c', 'rm .notes-of-the-user'],
      10,
      /^ask .*\n(.*\n)* +ask +losses +\w+ /,
    ],
    [
      'does not ask about what the sandbox holds',
      ['-v', '-c', 'touch x'],
      0,
      /^allow .*\n(.*\n)* +allow +autonomy +contained /,
    ],
    [
      'refuses what cannot work',
      ['-c', 'curl https://host.example'],
      126,
      /^deny .*\n(.*\n)* +deny +leaves +unreachable /,
    ],
    ['takes approval for an answer', [...SUPERVISED, '--approved', '-c', 'touch x'], 0, /^allow /],
    ['takes the level by its name', ['--autonomy', 'contained', '-c', 'touch x'], 0, /^allow /],
    ['leaves it to the autonomous', ['--autonomy', 'autonomous', '-c', 'touch x'], 0, /^allow /],
    [
      'lets reading run where nothing else may',
      ['-v', '--autonomy', 'readonly', 'ls'],
      0,
      /^allow .*\n(.*\n)* +allow +autonomy +reads /,
    ],
    ['refuses everything else there', ['--autonomy', 'readonly', '-c', 'touch x'], 126, /^deny /],
    ['refuses what is dangerous', ['--autonomy', 'autonomous', '-c', 'sudo ls'], 126, /^deny /],
    ['refuses what is written outside', ['-c', 'cp a ../../../etc/x'], 126, /lies outside of the workspace/],
    ['lets looking there run, as the kernel answers', ['-c', 'cat ../../../etc/shadow'], 0, /^allow /],
    ['takes ~ for the home of the user', ['-c', 'cat ~/.ssh/id_rsa'], 126, /deny +paths /],
    ['knows a grant', ['--net', 'example.org', '-c', 'curl https://example.org'], 0, /allow/],
    [
      'knows that there is none',
      ['-c', 'curl https://example.org'],
      126,
      /cannot reach https:\/\/example\.org: the network is off/,
    ],
    ['knows the allow-list', ['--profile', 'strict-nine', '-c', 'git status'], 126, /not in commands\.allow/],
  ])('%s', async (_, args, exitCode, text) => {
    const result = await check(args);
    expect(result).toMatchObject({ exitCode, stderr: '' });
    expect(result.stdout).toMatch(text);
  });

  it('prints one object with --json, every check in it', async () => {
    const { stdout, exitCode } = await check(['--json', ...SUPERVISED, '-c', 'git push']);
    expect(exitCode).toBe(10);
    const decision = JSON.parse(stdout);
    expect(Object.keys(decision)).toEqual(['verdict', 'risk', 'reach', 'reasons', 'messageForModel']);
    expect(decision).toMatchObject({ verdict: 'ask', risk: 'medium' });
    for (const reason of decision.reasons)
      expect(Object.keys(reason)).toEqual(['check', 'verdict', 'code', 'message']);
    expect(decision.reasons[0]).toMatchObject({ check: 'budget', verdict: null, code: 'no_limit' });
  });

  it('prints what objects, and the rest with -v', async () => {
    expect((await check(['-c', 'touch x'])).stdout).toMatch(/^allow {2}\(risk medium, reach local\)\n$/);
    const script = 'touch ../beside-the-workspace';
    const { stdout } = await check(['-c', script]);
    const objections = stdout.split('\n').slice(1, -1);
    expect(objections.length).toBeGreaterThan(0);
    for (const line of objections) expect(line).toMatch(/^ {2}(?:ask|deny) /);
    const all = (await check(['-v', '-c', script])).stdout.split('\n');
    for (const line of objections) expect(all).toContain(line);
    const reasons = JSON.parse((await check(['--json', '-c', script])).stdout).reasons;
    expect(all.length - 2).toBe(reasons.length);
    expect(reasons.length).toBeGreaterThan(objections.length);
  });

  it('runs nothing', async () => {
    await check(['--approved', '-c', 'touch should-not-be']);
    expect((await cli(place, ['--', 'ls'])).stdout).toBe('');
  });

  it('judges from --cwd, relative to the workspace', async () => {
    mkdirSync(join(place.workspace, 'a/b'), { recursive: true });
    expect((await check(['-c', 'cp a ../x'])).exitCode).toBe(126);
    expect((await check(['--cwd', 'a/b', '-c', 'cp a ../x'])).exitCode).toBe(0);
    expect((await check(['--cwd', 'a/b', '-c', 'cp a ../../../x'])).exitCode).toBe(126);
    rmSync(join(place.workspace, 'a'), { recursive: true });
  });

  it.each([
    ['nothing to check', [], /no command/],
    ['an unknown autonomy', ['--autonomy', 'full', 'ls'], /full/],
    ['an unknown taint', ['--taint', 'corruption,greed', 'ls'], /corruption and secret/],
    ['words left over', ['-c', 'ls', 'x'], /x/],
    ['a command besides a batch', ['--batch', 'ls'], /standard input/],
    ['an unknown profile', ['--profile', 'nope', 'ls'], /nope/],
  ])('ends with 125 for %s', async (_, args, message) => {
    const result = await check(args);
    expect(result).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(result.stderr);
    expect(result.stderr).toMatch(message);
  });

  it('leaves programs of that name to --', async () => {
    expect((await cli(place, ['--', 'check'])).exitCode).toBe(127);
    expect((await cli(place, ['--', 'policy'])).exitCode).toBe(127);
  });
});

describe('check with guards of the policy', () => {
  const configured = join(place.root, 'guarded');
  const state = join(place.root, 'state');
  const guarded = { XDG_CONFIG_HOME: configured, XDG_STATE_HOME: state };
  function set(policy: string): void {
    mkdirSync(join(configured, 'sandbox-run'), { recursive: true });
    writeFileSync(join(configured, 'sandbox-run/policy.toml'), policy, { mode: 0o600 });
  }
  const both = async (...command: readonly string[]) => {
    const checked = await cli(place, ['check', ...command], { env: guarded });
    const ran = await cli(place, ['--dry-run', ...command], { env: guarded });
    expect(ran.exitCode).toBe(0);
    return { checked, run: await cli(place, command, { env: guarded }) };
  };
  const FREE = '[security]\nautonomy = "autonomous"\n';

  it('refuses what the git guard refuses in a run', async () => {
    set(`${FREE}[hooks]\ngit_guard = true\n`);
    const push = await both('-c', 'git push');
    expect(push.checked.stdout).toMatch(/^deny .*\n(.*\n)* +deny +git-guard /);
    expect([push.checked.exitCode, push.run.exitCode]).toEqual([126, 126]);
    const log = await both('-c', 'git --version; echo git push');
    expect([log.checked.exitCode, log.run.exitCode]).toEqual([0, 0]);
    const rows = await cli(place, ['check', '--batch'], {
      env: guarded,
      input: '{"command":"git push"}\n{"command":"ls"}\n',
    });
    expect(lines(rows.stdout).map(({ verdict }) => verdict)).toEqual(['deny', 'allow']);
  });

  it('refuses what a plug-in refuses in a run', async () => {
    const plugin = join(place.root, 'no-ls.mjs');
    writeFileSync(plugin, 'export const before_tool_use = () => ({ allowed: false, reason: "no ls" });\n');
    set(`${FREE}[[hooks.plugins]]\npath = "${plugin}"\n`);
    const ls = await both('-c', 'ls');
    expect(ls.checked.stdout).toContain('no ls');
    expect([ls.checked.exitCode, ls.run.exitCode]).toEqual([126, 126]);
  });

  it('records nothing and opens no state', async () => {
    rmSync(state, { recursive: true, force: true });
    set(`${FREE}[hooks]\ngit_guard = true\n[audit]\nenabled = true\n`);
    expect((await cli(place, ['check', '-c', 'git push'], { env: guarded })).exitCode).toBe(126);
    expect(existsSync(state)).toBe(false);
  });
});

describe('check --batch', () => {
  it('answers line by line, in order, with the ids', async () => {
    const rows = [
      { id: 'a', command: 'ls' },
      { id: 7, command: 'touch x', autonomy: 'supervised' },
      { command: 'touch x', autonomy: 'supervised', approved: true },
      { id: 'd', command: 'touch x', autonomy: 'autonomous', taint: [], suite: 'mine' },
      { id: 'e', command: ['cat', '../x'], cwd: 'sub' },
      { id: 'f', command: 'cp a ../../x', cwd: 'sub' },
      { id: 'g', command: 'ls', cwd: '../../../../..' },
      { id: 'h', command: 'touch x' },
      { id: 'i', command: 'rm .notes-of-the-user' },
    ];
    const input = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    const { exitCode, stdout, stderr } = await check(['--policy', ASKING, '--batch'], input);
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
    expect(lines(stdout).map(({ id, verdict }) => [id, verdict])).toEqual([
      ['a', 'allow'],
      [7, 'ask'],
      [3, 'allow'],
      ['d', 'allow'],
      ['e', 'allow'],
      ['f', 'deny'],
      ['g', 'deny'],
      ['h', 'allow'],
      ['i', 'ask'],
    ]);
    expect(Object.keys(lines(stdout)[0])).toEqual(['id', 'verdict', 'risk', 'reach', 'reasons']);
    // What does not run comes with what a model may be told, as it does without --batch.
    const single = await check(['--json', '--cwd', 'sub', '-c', 'cp a ../../x']);
    expect(lines(stdout)[5].messageForModel).toBe(JSON.parse(single.stdout).messageForModel);
    expect(lines(stdout)[5].messageForModel).toContain('../../x');
  });

  it('answers a bad line with an error in its place, and ends with 125', async () => {
    const bad = [
      '{',
      '[]',
      '7',
      '{}',
      '{"id":"x","command":7}',
      '{"id":"y","command":"ls","autonomy":"full"}',
    ];
    const more = ['{"command":"ls","taint":["greed"]}', '{"command":"ls","approved":1}', '{"command":[]}'];
    const input = [...bad, '', '{"id":"good","command":"ls"}', ...more].join('\n');
    const { exitCode, stdout } = await check(['--batch'], input);
    expect(exitCode).toBe(125);
    const answers = lines(stdout);
    expect(answers.map(({ id, error }) => [id, error === undefined])).toEqual([
      [1, false],
      [2, false],
      [3, false],
      [4, false],
      ['x', false],
      ['y', false],
      ['good', true],
      [9, false],
      [10, false],
      [11, false],
    ]);
    expect(answers[0]?.error).toBe('line 1: not JSON');
    for (const { error, verdict } of answers) expect(verdict).toBe(error === undefined ? 'allow' : 'deny');
  });

  it('takes a key that is nearly one of ours, and an id that was there, for mistakes', async () => {
    const input = [
      '{"id":"a","command":"ls","suite":"mine","commands":[["ls"]]}',
      '{"id":"a","command":"ls"}',
      '{"id":"b","command":"touch x","autonomy":"supervised","aproved":true}',
      '{"id":"c","command":"ls","taints":["secret"]}',
      '{"id":"d","command":"ls","Cwd":"sub"}',
      '{"id":8,"command":"ls","approver":"of the corpus"}',
      '{"id":null,"command":"ls"}',
      '{"command":"ls"}',
      '{',
      '{"id":9,"command":"ls"}',
    ];
    const { exitCode, stdout } = await check(['--batch'], input.join('\n'));
    expect(exitCode).toBe(125);
    expect(lines(stdout).map(({ error, verdict }) => error ?? verdict)).toEqual([
      'allow',
      'line 2: the id "a" is that of line 1',
      'line 3: the key "aproved" means nothing: did you mean "approved"?',
      'line 4: the key "taints" means nothing: did you mean "taint"?',
      'line 5: the key "Cwd" means nothing: did you mean "cwd"?',
      'allow',
      'allow',
      // A line without an id answers under its number, which was taken.
      'line 8: the id 8 is that of line 6',
      'line 9: not JSON',
      'line 10: the id 9 is that of line 9',
    ]);
  });

  it('survives a line that is too long', async () => {
    const input = `{"id":1,"command":"${'x'.repeat(2 ** 21)}"}\n{"id":2,"command":"ls"}\n`;
    const { exitCode, stdout } = await check(['--batch'], input);
    expect(exitCode).toBe(125);
    expect(lines(stdout).map(({ id, error, verdict }) => [id, error ?? verdict])).toEqual([
      [1, 'line 1: the line is longer than 1 MiB, or not UTF-8'],
      [2, 'allow'],
    ]);
  });

  it('ends quietly with nothing to judge', async () => {
    expect(await check(['--batch'], '')).toMatchObject({ exitCode: 0, stdout: '', stderr: '' });
  });

  it('answers what has arrived before it waits for more', async () => {
    const running = startCli(place, ['check', '--batch'], { stdin: 'pipe' });
    running.stdin?.write('{"id":1,"command":"ls"}\n');
    const first = await new Promise<string>((done) =>
      running.stdout?.once('data', (data) => done(String(data))),
    );
    expect(JSON.parse(first).id).toBe(1);
    running.stdin?.end();
    expect((await running).exitCode).toBe(0);
  });

  it('ends when nobody reads any more', async () => {
    const running = startCli(place, ['check', '--batch'], { stdin: 'pipe' });
    running.stdin?.on('error', () => {});
    const write = () =>
      running.stdin?.write('{"id":1,"command":"ls -la | head -5 && cat README.md"}\n'.repeat(2_000));
    running.stdout?.once('data', () => running.stdout?.destroy());
    write();
    const timer = setInterval(write, 20);
    const result = await running;
    clearInterval(timer);
    expect(result.stderr).toBe('');
  });

  it('waits for a slow reader, and says nothing about it', async () => {
    const running = startCli(place, ['check', '--batch'], { stdin: 'pipe' });
    running.stdout?.pause();
    const input = '{"command":"ls -la | head -5 && cat README.md"}\n'.repeat(3_000);
    running.stdin?.end(input);
    // Nobody has read while another one did the same from its beginning to its end.
    expect((await startCli(place, ['check', '--batch'], { input })).exitCode).toBe(0);
    running.stdout?.resume();
    const result = await running;
    expect(result).toMatchObject({ exitCode: 0, stderr: '' });
    expect(lines(result.stdout)).toHaveLength(3_000);
  });

  it('takes defaults from options', async () => {
    const input = '{"command":"touch x"}\n{"command":"touch x","autonomy":"supervised"}\n';
    const { stdout } = await check(['--batch', '--autonomy', 'autonomous'], input);
    expect(lines(stdout).map(({ verdict }) => verdict)).toEqual(['allow', 'ask']);
  });

  it('does not let a line undo what the workspace says', async () => {
    const file = join(place.workspace, '.sandbox-run.toml');
    writeFileSync(file, '[security]\nautonomy = "readonly"\n', { mode: 0o644 });
    const { stdout } = await check(['--batch'], '{"command":"touch x","autonomy":"autonomous"}\n');
    rmSync(file);
    expect(lines(stdout)[0]).toMatchObject({ verdict: 'deny' });
  });
});

describe('a run', () => {
  const run = (args: readonly string[]) => cli(place, args, { env });

  it('that is allowed runs', async () => {
    expect(await run(['-c', 'ls | wc -l'])).toMatchObject({ exitCode: 0, stdout: '0\n', stderr: '' });
    expect((await run(['--', 'git', '--version'])).exitCode).toBe(0);
  });

  it('that is refused ends with 126 and the sentence', async () => {
    const result = await run(['--approved', '--autonomy', 'autonomous', '-c', 'cp a /etc/x']);
    expect(result).toMatchObject({ exitCode: 126, stdout: '' });
    expect(result.stderr).toBe(
      'sandbox-run: refused by the policy: /etc/x lies outside of the workspace\n' +
        'sandbox-run: no option is proposed: the whole system runs or obeys what lies there\n',
    );
  });

  it('that is asked about ends with 126 and names what would allow it, which does', async () => {
    const result = await run([...SUPERVISED, '--', 'touch', 'made']);
    expect(result).toMatchObject({ exitCode: 126, stdout: '' });
    expectOneLine(result.stderr);
    expect(result.stderr).toMatch(/--approved.*--autonomy autonomous/);
    expect((await run([...SUPERVISED, '--approved', '--', 'touch', 'made'])).exitCode).toBe(0);
    expect((await run(['--autonomy', 'autonomous', '--', 'rm', 'made'])).exitCode).toBe(0);
    expect((await run(['ls'])).stdout).toBe('');
  });

  it('that would lose what nothing brings back is asked about with the default level', async () => {
    writeFileSync(join(place.workspace, 'made'), 'draft\n');
    const result = await run(['--policy', ASKING, 'rm', 'made']);
    expect(result).toMatchObject({ exitCode: 126, stdout: '' });
    expectOneLine(result.stderr);
    expect(result.stderr).toMatch(/rm would delete made.*--approved/);
    expect((await run(['ls'])).stdout).toBe('made\n');
    expect((await run(['--approved', 'rm', 'made'])).exitCode).toBe(0);
    expect((await run(['ls'])).stdout).toBe('');
  });

  it('shows the decision with --json', async () => {
    const result = await run(['--json', ...SUPERVISED, '--', 'touch', 'made']);
    expect(result.exitCode).toBe(126);
    expect(JSON.parse(result.stdout)).toMatchObject({
      status: 'denied',
      error: { code: 'command.needs_approval' },
      decision: { verdict: 'ask', risk: 'medium' },
    });
  });
});
