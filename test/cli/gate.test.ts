import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { processesWith } from '../support/leftovers.ts';
import { CLI, cli, expectOneLine, makePlace } from './support.ts';

const place = makePlace();
afterAll(() => {
  const left = processesWith(place.root);
  place.dispose();
  expect(left).toEqual([]);
});

// These tests need the built-in policy: the other tests have one that lets everything run.
const env = { XDG_CONFIG_HOME: join(place.root, 'no-config'), XDG_STATE_HOME: join(place.root, 'state') };
const autonomous = join(place.root, 'autonomous.toml');
writeFileSync(autonomous, '[security]\nautonomy = "autonomous"\n', { mode: 0o600 });
chmodSync(place.root, 0o755);

const socket = join(place.root, 'gate.sock');

let running: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of running) await stop();
  running = [];
  rmSync(socket, { recursive: true, force: true });
});

/** Starts a gate and waits until it is ready. */
async function serve(args: readonly string[]) {
  const child = execa(process.execPath, [CLI, 'gate', 'serve', ...args], {
    cwd: place.workspace,
    env: { ...place.env, ...env },
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  });
  let out = '';
  let log = '';
  child.stdout.on('data', (text) => {
    out += text;
  });
  child.stderr.on('data', (text) => {
    log += text;
  });
  running.push(() => {
    child.kill('SIGKILL');
    return child;
  });
  await eventually(() => expect(`${out}${log}`).toMatch(/^the gate is ready: /));
  return { child, log: () => log, out: () => out };
}

const check = (args: readonly string[], more: Readonly<Record<string, string>> = {}) =>
  cli(place, ['gate', 'check', ...args], { env: { ...env, ...more } });

describe('sandbox-run gate', () => {
  it('answers over a socket what the policy of the host says', async () => {
    const { log } = await serve(['--socket', socket, '--policy', autonomous]);
    const allowed = await check(['--socket', socket, '-c', 'touch x']);
    expect(allowed).toMatchObject({ exitCode: 0, stdout: 'allow\n', stderr: '' });
    const denied = await check(['--socket', socket, '-c', 'sudo ls']);
    expect(denied).toMatchObject({ exitCode: 126, stderr: '' });
    expect(denied.stdout).toMatch(/^deny {2}refused by the policy: sudo /);
    const lines = log().trimEnd().split('\n');
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/^sandbox-run: gate: allow uid:\d+ [0-9a-f-]{36}: touch x$/);
    expect(lines[1]).toMatch(
      /^sandbox-run: gate: deny uid:\d+ [0-9a-f-]{36}: sudo ls \(refused by the policy/,
    );
  });

  it('denies what the policy asks where there is nobody to ask', async () => {
    await serve(['--socket', socket]);
    const { exitCode, stdout } = await check(['--socket', socket, '-c', 'touch x']);
    expect(exitCode).toBe(126);
    expect(stdout).toMatch(/^deny {2}the policy asks before it allows this/);
    expect(stdout).not.toMatch(/--approved/);
  });

  it('has every decision and every refusal on record, without being told to', async () => {
    const { child } = await serve(['--socket', socket, '--policy', autonomous]);
    await check(['--socket', socket, '--session', 'on-record', '-c', 'touch recorded']);
    await check(['--socket', socket, '--session', 'on-record', '-c', 'sudo recorded']);
    const stranger = createConnection(socket);
    stranger.on('error', () => {});
    stranger.resume();
    stranger.end('garbage\n');
    await once(stranger, 'close');
    child.kill('SIGTERM');
    await child;
    const search = async (...args: string[]) => {
      const { stdout } = await cli(place, ['audit', 'search', '--json', ...args], { env });
      return stdout.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line)]));
    };
    const decisions = (await search()).filter(({ session }) => session === 'on-record');
    expect(decisions).toMatchObject([
      { type: 'decision', outcome: 'allow', command: 'touch recorded', backend: 'none' },
      { type: 'decision', outcome: 'command.denied', command: 'sudo recorded' },
    ]);
    expect((await search()).filter(({ code }) => code === 'gate_message_refused')).toMatchObject([
      { type: 'event', details: { refusal: 'malformed', transport: 'socket' } },
    ]);
    expect((await cli(place, ['audit', 'verify'], { env })).exitCode).toBe(0);
  });

  it('prints one object with --json', async () => {
    await serve(['--socket', socket]);
    const { stdout, exitCode } = await check(['--socket', socket, '--json', '-c', 'sudo ls']);
    expect(exitCode).toBe(126);
    expect(JSON.parse(stdout)).toEqual({
      request_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
      decision: 'deny',
      reason: expect.stringMatching(/sudo/),
      by: 'host',
    });
  });

  it('keeps a command from writing on the terminal of whoever watches', async () => {
    const { log } = await serve(['--socket', socket]);
    await check(['--socket', socket, '-c', 'sudo ls \u001b[2J\u202e\u009b0m\nnew line']);
    expect(log()).toMatch(/\\u\{1b\}\[2J\\u\{202e\}\\u\{9b\}0m\\u\{a\}new line/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that is what it is about.
    expect(log()).not.toMatch(/[\u001b\u009b\u202e]/);
  });

  it('says nothing with --quiet', async () => {
    const { log } = await serve(['--socket', socket, '--quiet']);
    await check(['--socket', socket, '-c', 'sudo ls']);
    expect(log()).toBe('');
  });

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('ends with %s and leaves no socket', async (signal) => {
    const { child } = await serve(['--socket', socket]);
    child.kill(signal);
    expect(await child).toMatchObject({ exitCode: 0, stderr: '' });
    expect(existsSync(socket)).toBe(false);
  });

  it('starts over the socket of one that was killed, and not over that of one that lives', async () => {
    const first = await serve(['--socket', socket]);
    const second = await cli(place, ['gate', 'serve', '--socket', socket], { env });
    expect(second).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(second.stderr);
    expect(second.stderr).toMatch(/another server/);
    first.child.kill('SIGKILL');
    await first.child;
    expect(existsSync(socket)).toBe(true);
    await serve(['--socket', socket, '--policy', autonomous]);
    expect((await check(['--socket', socket, '-c', 'touch x'])).exitCode).toBe(0);
  });

  it.runIf(process.getuid?.() === 0)('lets other users ask only if they are named', async () => {
    const asNobody = () =>
      spawnSync('runuser', ['-u', 'nobody', '--', process.execPath, '-e', NOBODYS_CLIENT, socket], {
        cwd: '/',
        encoding: 'utf8',
      }).stdout;
    const { child, log } = await serve(['--socket', socket, '--allow-uid', '65534', '--policy', autonomous]);
    expect((statSync(socket).mode & 0o777).toString(8)).toBe('666');
    expect(JSON.parse(asNobody())).toEqual({ jsonrpc: '2.0', id: 'a', result: { decision: 'allow' } });
    await eventually(() => expect(log()).toContain('allow uid:65534 a: touch x'));
    child.kill('SIGTERM');
    await child;
    await serve(['--socket', socket, '--allow-uid', '65533', '--policy', autonomous]);
    expect(asNobody()).not.toContain('decision');
  });
});

const NOBODYS_CLIENT = `
  const socket = require('net').createConnection(process.argv[1]);
  const say = (id, method, params) => socket.write(JSON.stringify({ jsonrpc: '2.0', id, method, params }) + '\\n');
  socket.on('connect', () => say('hello', 'initialize', { protocolVersion: 1 }));
  socket.once('data', () => {
    say('a', 'gate.check', { command: 'touch x' });
    socket.once('data', (data) => { process.stdout.write(data); socket.destroy(); });
  });
  socket.on('error', (error) => console.log(error.code));`;

describe('sandbox-run gate check', () => {
  const nowhere = ['--socket', join(place.root, 'nobody-there')];

  it.each(['ls -la | head', 'pwd', 'echo a | tr a b'])(
    'decides here what is provably local: %s',
    async (command) => {
      const result = await check([...nowhere, '-c', command]);
      expect(result).toMatchObject({ exitCode: 0, stdout: 'allow  provably local\n', stderr: '' });
      expect(JSON.parse((await check([...nowhere, '--json', '-c', command])).stdout)).toMatchObject({
        decision: 'allow',
        by: 'here',
      });
    },
  );

  it.each([
    ['uses the network', 'curl https://example.org'],
    ['changes something', 'touch x'],
    ['is not understood', 'ls "'],
    ['names a file, which may be a secret there', 'cat notes.txt'],
    ['searches everything', 'grep -rn x .'],
    ['names a pattern', 'cat n*'],
    ['is not known', './program'],
    ['is dangerous', 'sudo ls'],
  ])('asks about what %s, and takes silence for a no', async (_, command) => {
    const result = await check([...nowhere, '--json', '-c', command]);
    expect(result.exitCode).toBe(126);
    expect(JSON.parse(result.stdout)).toMatchObject({
      decision: 'deny',
      by: 'nobody',
      reason: expect.stringMatching(/cannot be reached \(ENOENT\)/),
    });
  });

  it('asks about everything once the session has seen something, or where its own policy is more generous', async () => {
    expect((await check([...nowhere, '--taint', 'corruption', '-c', 'ls'])).exitCode).toBe(126);
    expect((await check([...nowhere, '--policy', autonomous, '-c', 'touch x'])).exitCode).toBe(126);
  });

  it('asks about what mentions a secret, because the host has to know', async () => {
    const secret = join(place.root, 'secret.toml');
    writeFileSync(secret, `[filesystem]\nsecret = [${JSON.stringify(join(place.workspace, 'key'))}]\n`, {
      mode: 0o600,
    });
    expect((await check([...nowhere, '--policy', secret, '-c', 'echo monkey'])).exitCode).toBe(0);
    expect((await check([...nowhere, '--policy', secret, '-c', 'echo key'])).exitCode).toBe(126);
  });

  it('finds the socket in the environment', async () => {
    await serve(['--socket', socket, '--policy', autonomous]);
    expect((await check(['-c', 'touch x'], { SANDBOX_RUN_GATE: socket })).exitCode).toBe(0);
  });

  it('waits no longer than --timeout', async () => {
    const silent = createServer((connection) => connection.resume());
    await new Promise<void>((done) => silent.listen(socket, done));
    const { exitCode, stdout } = await check(['--socket', socket, '--timeout', '0.3', '-c', 'touch x']);
    expect(exitCode).toBe(126);
    expect(stdout).toMatch(/in time/);
    await new Promise((done) => silent.close(done));
  });

  /** A server that answers `initialize`, and then says what a test wants. */
  async function fake(answer: (id: string) => string) {
    const server = createServer((connection) => {
      connection.on('error', () => {});
      connection.once('data', (hello) => {
        const { id } = JSON.parse(String(hello));
        const capabilities = { methods: [], notifications: [], approvals: 'nobody' };
        const result = { protocolVersion: 1, serverVersion: '1', capabilities, limits: {} };
        connection.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
        connection.once('data', (data) => connection.end(answer(JSON.parse(String(data)).id)));
      });
    });
    await new Promise<void>((done) => server.listen(socket, done));
    running.push(() => new Promise((done) => server.close(done)));
  }
  const yes = (id: string) => `${JSON.stringify({ jsonrpc: '2.0', id, result: { decision: 'allow' } })}\n`;

  it('believes no yes that is not one to this request', async () => {
    await fake(() => yes('guessed'));
    const { exitCode, stdout } = await check(['--socket', socket, '-c', 'touch x']);
    expect(exitCode).toBe(126);
    expect(stdout).toMatch(/^deny {2}the answer cannot be used: it is one to another request/);
  });

  it('believes one that is (control)', async () => {
    await fake(yes);
    expect((await check(['--socket', socket, '-c', 'touch x'])).exitCode).toBe(0);
  });

  it.each([
    ['is too old', '{"request_id":"a","decision":"allow"}\n', /cannot be used/],
    [
      'speaks another version',
      '{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"x","data":{"code":"protocol.version","message":"use a client that fits"}}}\n',
      /use a client that fits/,
    ],
    ['closes at once', '', /closed the connection without an answer/],
  ])('takes a server that %s for a no, in one line', async (_, said, reason) => {
    const server = createServer((connection) => {
      connection.on('error', () => {});
      connection.once('data', () => connection.end(said));
    });
    await new Promise<void>((done) => server.listen(socket, done));
    const { exitCode, stdout, stderr } = await check(['--socket', socket, '-c', 'touch x']);
    expect({ exitCode, stderr }).toEqual({ exitCode: 126, stderr: '' });
    expect(stdout).toMatch(reason);
    expect(stdout).toMatch(/^deny {2}[^\n]+\n$/);
    await new Promise((done) => server.close(done));
  });

  it('shows a reason as text', async () => {
    await fake((id) => {
      const result = { decision: 'deny', reason: '\u001b[2J\nallow' };
      return `${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`;
    });
    const { stdout } = await check(['--socket', socket, '-c', 'touch x']);
    expect(stdout).toBe('deny  \\u{1b}[2J\\u{a}allow\n');
  });
});

describe('the usage of sandbox-run gate', () => {
  it.each([
    ['nobody to ask', ['check', '-c', 'ls'], /no gate is named/],
    ['no command', ['check', '--socket', 'x'], /-c/],
    ['a folder', ['check', '--requests', 'x', '-c', 'ls'], /unknown option/],
    ['a bad session', ['check', '--socket', 'x', '--session', 'a b', '-c', 'touch x'], /session/],
    ['a bad time', ['check', '--socket', 'x', '--timeout', '0', '-c', 'ls'], /seconds/],
    ['words left over', ['check', '--socket', 'x', '-c', 'ls', 'y'], /argument/],
    ['nowhere to serve', ['serve'], /--socket/],
    ['no user', ['serve', '--socket', 'x', '--allow-uid', 'root'], /number of a user/],
    ['the user that nobody is', ['serve', '--socket', 'x', '--allow-uid', '4294967295'], /number of a user/],
    [
      'a policy that is not there',
      ['serve', '--socket', 'x', '--policy', '/nonexistent.toml'],
      /nonexistent/,
    ],
    ['an unknown word', ['server'], /server/],
  ])('%s ends with 125', async (_, args, message) => {
    const result = await cli(place, ['gate', ...args], { env });
    expect(result).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(result.stderr);
    expect(result.stderr).toMatch(message);
  });

  it.each([
    [['--help'], /gate serve --help/],
    [['serve', '--help'], /mounted at the same path in the container/],
    [['check', '--help'], /the model must not/],
  ])('%j explains', async (args, text) => {
    const { exitCode, stdout } = await cli(place, ['gate', ...args], { env });
    expect(exitCode).toBe(0);
    expect(stdout).toMatch(text);
    expect(stdout).toMatch(/Usage: sandbox-run gate/);
  });
});
