import { readdirSync, rmSync, statSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { connectTo } from '../integration/serve-client.ts';
import { eventually } from '../support/eventually.ts';
import { expectNothingLeft, processesWith } from '../support/leftovers.ts';
import { CLI, cli, makePlace, PTY_DRIVER, startCli } from './support.ts';

const bare = makePlace();
const state = join(bare.root, 'state');
const place = { ...bare, env: { ...bare.env, XDG_STATE_HOME: state } };
const supervised = { ...place, env: { ...place.env, XDG_CONFIG_HOME: join(bare.root, 'no-config') } };
const sockets = () => readdirSync(join(state, 'sandbox-run/shells'));

const request = (method: string, params: object) =>
  JSON.stringify({ jsonrpc: '2.0', id: 'one', method, params });
const UNKNOWN = { data: { code: 'protocol.unknown_id' } };
const LARGE = `: ${'x'.repeat(70_000)}`;

const started: string[] = [];
async function start(...args: string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await cli(place, [
    'session',
    'start',
    '--workspace',
    place.workspace,
    ...args,
  ]);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  started.push(stdout.trim());
  return stdout.trim();
}
const inShell = (name: string, ...args: string[]) => cli(place, ['session', 'run', name, ...args]);

/** Of the processes that bear the workspace in their command line, its children are some. */
async function serverOf(name: string): Promise<number> {
  const { stdout } = await cli(place, ['session', 'list', '--json']);
  const lines = stdout.trim().split('\n');
  return lines.map((line) => JSON.parse(line)).find(({ id }) => id === name).pid;
}

/** What goes on after the test that runs. */
const shared: string[] = [];
async function endStarted(): Promise<void> {
  for (const name of started.splice(0)) await cli(place, ['session', 'stop', name]);
  await eventually(() => expect(processesWith(place.workspace)).toEqual([]));
  await expectNothingLeft(place);
  expect(sockets()).toEqual([]);
}
afterEach(async () => {
  if (shared.length === 0) await endStarted();
});
afterAll(() => place.dispose());

describe('sandbox-run session start, run, stop', () => {
  it('what one command leaves, the next one finds', async () => {
    const name = await start();
    expect(name).toMatch(/^[0-9a-f]{8}$/);
    await inShell(name, 'mkdir -p src && cd src; export A=1; f() { echo "f $1"; }');
    expect(await inShell(name, '--', 'pwd; echo $A; f x; echo err >&2; (exit 7)')).toEqual({
      exitCode: 7,
      signal: undefined,
      stdout: `${place.workspace}/src\n1\nf x\n`,
      stderr: 'err\n',
    });
  });

  it('words are words, one word or -c is a shell string, options stand before or behind the name', async () => {
    const name = await start('--name', 'build.1');
    expect(name).toBe('build.1');
    expect((await inShell(name, 'printf', '<%s>', 'a b', "it's", '$x', '-q')).stdout).toBe(
      "<a b><it's><$x><-q>",
    );
    expect((await inShell(name, '-c', 'echo "$((1 + 1))"')).stdout).toBe('2\n');
    expect(await cli(place, ['session', 'run', '-q', name, '--', 'exit 3'])).toMatchObject({
      exitCode: 3,
      stderr: '',
    });
    const { stdout } = await inShell(name, '--json=full', 'echo out; echo err >&2; cd /usr');
    expect(JSON.parse(stdout)).toMatchObject({
      status: 'exited',
      stdout: 'out\n',
      stderr: 'err\n',
      cwdAfter: '/usr',
      restarted: false,
    });
    expect((await inShell(name, '--timeout', '0.2', `sleep 61.${process.pid}; echo no`)).exitCode).toBe(124);
    expect((await inShell(name, 'head -c 5000000 /dev/zero')).stdout).toHaveLength(5_000_000);
  });

  it('an interrupt ends the command, not the session; so does the end of the client', async () => {
    const name = await start();
    await inShell(name, 'x=kept');
    const mark = `${200_000 + process.pid}`;
    const running = startCli(place, ['session', 'run', name, `echo begun; sleep ${mark}`]);
    await eventually(() => expect(processesWith(`sleep\0${mark}`)).toHaveLength(1));
    running.kill('SIGINT');
    expect((await running).exitCode).toBe(130);
    const lost = startCli(place, ['session', 'run', name, `sleep ${mark}`]);
    await eventually(() => expect(processesWith(`sleep\0${mark}`)).toHaveLength(1));
    lost.kill('SIGKILL');
    await lost;
    await eventually(() => expect(processesWith(`sleep\0${mark}`)).toEqual([]));
    expect((await inShell(name, 'echo $x')).stdout).toBe('kept\n');
  });

  it('list shows shells, and none that was killed', async () => {
    const name = await start('--name', 'one');
    const other = await start('--name', 'two');
    const { stdout } = await cli(place, ['session', 'list', '--json']);
    const shells = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(shells).toMatchObject([
      { kind: 'shell', id: name, workspace: place.workspace, running: false },
      { kind: 'shell', id: other },
    ]);
    process.kill(shells[1].pid, 'SIGKILL');
    await eventually(async () => {
      const { stdout: listed } = await cli(place, ['session', 'list']);
      expect(listed).toMatch(/^shell one: idle in [^\n]*\n$/);
      // One that hangs up is not listed. Its socket goes once it refuses, which is a moment later.
      expect(sockets()).toEqual(['one.sock']);
    });
    expect(await inShell(other, 'echo no')).toMatchObject({ exitCode: 125, stdout: '' });
    // Who is killed cannot tidy up.
    await cli(place, ['session', 'stop', name]);
    await eventually(() => expect(processesWith(place.workspace)).toEqual([]));
    for (const left of readdirSync(place.tmp)) rmSync(join(place.tmp, left), { recursive: true });
  });

  it('stop ends a command that runs, and everything that was started', async () => {
    const name = await start();
    const mark = `${300_000 + process.pid}`;
    await inShell(name, `setsid sleep ${mark} & sleep ${mark} &`);
    const running = startCli(place, ['session', 'run', name, `trap "" INT; sleep ${mark}`]);
    await eventually(() => expect(processesWith(`sleep\0${mark}`)).toHaveLength(3));
    expect((await cli(place, ['session', 'stop', name])).stdout).toBe(`${name}: stopped\n`);
    expect((await running).exitCode).toBeGreaterThan(0);
    await eventually(() => expect(processesWith(mark)).toEqual([]));
    expect(await cli(place, ['session', 'stop', name])).toMatchObject({ exitCode: 125 });
  });

  it('a session that nobody uses ends by itself', async () => {
    const name = await start('--unused-timeout', '0.5');
    await eventually(() => expect(sockets()).toEqual([]));
    expect((await inShell(name, 'echo')).exitCode).toBe(125);
  });

  it('a signal to its server ends it', async () => {
    const name = await start();
    const pid = await serverOf(name);
    expect((await inShell(name, `sleep 62.${process.pid} & echo`)).exitCode).toBe(0);
    process.kill(pid, 'SIGTERM');
    await eventually(() =>
      expect([...processesWith(`sleep\0${62}.${process.pid}`), ...sockets()]).toEqual([]),
    );
  });

  it('says in one line what is wrong, and leaves no server', async () => {
    const name = await start('--name', 'taken');
    const wrong: readonly (readonly [readonly string[], RegExp])[] = [
      [['start', '--workspace', place.workspace, '--name', name], /another server listens there/],
      [['start', '--name', '../x'], /cannot be the name of a session/],
      [['start', '--policy', '/nowhere'], /cannot read the policy/],
      [['start', '--unused-timeout', 'x'], /must be a number of seconds/],
      [['start', 'word'], /too many arguments/],
      [['run'], /no session is named/],
      [['run', name], /no command given/],
      [['run', name, '-c', 'a', 'b'], /-c takes one string/],
      [['run', 'none', 'ls'], /there is no shell session none/],
      [['run', name, '--unknown', 'ls'], /unknown option/],
      [['stop', 'none'], /there is no shell session none/],
    ];
    for (const [args, message] of wrong) {
      const { exitCode, stdout, stderr } = await cli(place, ['session', ...args]);
      expect({ exitCode, stdout }, args.join(' ')).toEqual({ exitCode: 125, stdout: '' });
      expect(stderr).toMatch(message);
      expect(stderr.match(/\n/g)).toHaveLength(1);
    }
    expect(processesWith(place.workspace)).toHaveLength(1);
  });

  it('shows help for each of them', async () => {
    for (const args of [['--help'], ['start', '--help'], ['run', '--help'], ['stop', '--help']]) {
      const { exitCode, stdout, stderr } = await cli(place, ['session', ...args]);
      expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
      expect(stdout).toContain('Usage: sandbox-run session');
    }
  });
});

describe('the socket of a session', () => {
  it('is for this user alone, and no command of the session can use it', async () => {
    const name = await start('--name', 'mine');
    const path = join(state, 'sandbox-run/shells/mine.sock');
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(path, '..')).mode & 0o777).toBe(0o700);
    const attack = `python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("${path}")' 2>&1 | tail -1`;
    expect((await inShell(name, attack)).stdout).toMatch(/No such file|not permitted|denied/);
  });

  const to = async (name: string) => connectTo(join(state, `sandbox-run/shells/${name}.sock`));

  it('closes after a message that is too long, and after one before initialize runs nothing', async () => {
    const name = await start('--name', 'strict');
    const early = await to(name);
    const { error } = await early.ask('session.run', { session: name, command: 'touch too-early' });
    expect(error.data.code).toBe('protocol.uninitialized');
    const client = await to(name);
    await client.initialize();
    for (let count = 0; count < 18; count += 1) client.output.write('x'.repeat(1024 * 1024));
    await client.ends();
    expect(client.said.at(-1)).toMatchObject({ id: null, error: { data: { code: 'protocol.too_long' } } });
    early.output.destroy();
    expect((await inShell(name, 'ls')).stdout).not.toContain('too-early');
  });

  it('answers a question of another connection to nobody', async () => {
    const name = await start('--name', 'asked');
    const [mine, other] = [await to(name), await to(name)];
    for (const client of [mine, other]) await client.initialize({ approvals: true });
    const ran = mine.ask('session.run', { session: name, command: 'echo ran' });
    expect((await other.call('approvals.list')).questions).toEqual([]);
    const forged = await other.ask('approvals.answer', { question: 'x', approved: true });
    expect(forged.error.data.code).toBe('approval.unknown');
    expect((await ran).result.stdout).toBe('ran\n');
    for (const client of [mine, other]) client.output.destroy();
  });
});

describe('a session that is sent what it does not serve', () => {
  const name = 'strict';
  beforeAll(async () => {
    await start('--name', name);
    // For all of these tests.
    shared.push(...started.splice(0));
  });
  afterAll(async () => {
    started.push(...shared.splice(0));
    await endStarted();
  });

  it.each<[string, string, object]>([
    ['garbage', 'garbage', { code: -32700, data: { code: 'protocol.invalid' } }],
    ['no request', '{"type":"run"}', { code: -32600 }],
    ['a key twice', '{"jsonrpc":"2.0","id":1,"id":2,"method":"session.info"}', { code: -32600 }],
    ['no text', request('session.run', { session: name, command: 1 }), { code: -32602 }],
    ['a key too many', request('session.info', { session: name, more: 1 }), { code: -32602 }],
    ['no session', request('session.run', { session: 'other', command: 'id' }), UNKNOWN],
    ['what no session has', request('run', { command: 'touch forged' }), { code: -32601 }],
    ['another shell', request('session.open', {}), { code: -32601 }],
    ['a large command', request('session.run', { session: name, command: LARGE }), { code: -32602 }],
  ])('runs nothing for %s', async (_, line, error) => {
    const client = await connectTo(join(state, `sandbox-run/shells/${name}.sock`));
    await client.initialize();
    client.line(line);
    await eventually(() => expect(client.said.at(-1)).toMatchObject({ error }), 60_000);
    expect(JSON.stringify(client.said.at(-1)).length).toBeLessThan(300);
    client.output.destroy();
    expect(readdirSync(place.workspace)).not.toContain('forged');
    expect((await inShell(name, 'echo alive')).stdout).toBe('alive\n');
  });
});

describe('connections that want nothing', () => {
  it('lock nobody out', async () => {
    const name = await start('--name', 'crowded');
    const path = join(state, 'sandbox-run/shells/crowded.sock');
    const sockets = Array.from({ length: 150 }, () => connect(path).on('error', () => {}));
    try {
      await Promise.all(sockets.map((socket) => new Promise((done) => socket.once('connect', done))));
      expect((await inShell(name, 'echo in')).stdout).toBe('in\n');
      expect((await cli(place, ['session', 'list'])).stdout).toContain('shell crowded: idle');
      expect((await cli(place, ['session', 'stop', name])).stdout).toBe('crowded: stopped\n');
    } finally {
      for (const socket of sockets) socket.destroy();
    }
  });

  it('a command that is too large is refused in one line', async () => {
    const name = await start('--name', 'small');
    const { exitCode, stderr } = await inShell(name, `: ${'x'.repeat(70_000)}`);
    expect(exitCode).toBe(125);
    expect(stderr).toMatch(/^sandbox-run: the command has 70002 bytes.*\n$/);
  });
});

describe('under supervision', () => {
  beforeAll(() => {
    started.length = 0;
  });
  const question = 'touch made';
  const QUESTION = { expect: '\\[y\\]es once.*\\[n\\]o: ' };

  it('what is asked is refused without anybody to ask, and run with --approved', async () => {
    const { stdout } = await cli(supervised, [
      'session',
      'start',
      '--workspace',
      place.workspace,
      '--autonomy',
      'supervised',
    ]);
    started.push(stdout.trim());
    const name = stdout.trim();
    expect((await inShell(name, 'echo allowed')).stdout).toBe('allowed\n');
    const asked = await inShell(name, question);
    expect(asked.exitCode).toBe(126);
    expect(asked.stderr).toContain('this command needs approval');
    expect((await inShell(name, '--approved', question)).exitCode).toBe(0);
    expect(readdirSync(place.workspace)).toContain('made');
  });

  it('a question is asked on the terminal of the client', async () => {
    const { stdout } = await cli(supervised, [
      'session',
      'start',
      '--workspace',
      place.workspace,
      '--autonomy',
      'supervised',
    ]);
    started.push(stdout.trim());
    const argv = [process.execPath, CLI, 'session', 'run', stdout.trim(), 'touch asked && echo it is done'];
    const talk = async (steps: readonly object[]) => {
      const input = JSON.stringify({
        argv,
        cwd: place.workspace,
        env: supervised.env,
        size: [40, 120],
        steps,
      });
      return JSON.parse((await execa('python3', [PTY_DRIVER], { input })).stdout);
    };
    expect(
      await talk([
        { expect: 'touch asked' },
        QUESTION,
        { insist: '\r', until: 'refused by the person who was asked' },
      ]),
    ).toMatchObject({
      failed: null,
      status: 126,
    });
    expect(readdirSync(place.workspace)).not.toContain('asked');
    const yes = await talk([
      { expect: 'touch asked' },
      QUESTION,
      { insist: '\x15y', until: '\\x08?y' },
      { insist: '\r', until: 'it is done' },
    ]);
    expect(yes).toMatchObject({ failed: null, status: 0 });
  });
});
