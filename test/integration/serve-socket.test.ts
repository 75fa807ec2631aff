import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { cli, startCli } from '../cli/support.ts';
import { holdOpen } from '../support/half-open.ts';
import { makeHold } from '../support/hold.ts';
import { processesWith } from '../support/leftovers.ts';
import { makeAskingConfiguration } from '../support/unjudged-policy.ts';
import { WITHOUT } from '../support/without.ts';
import { connectTo, eventually, expectValid } from './serve-client.ts';
import { makeServeWorld } from './serve-world.ts';

const { place, socket, sockets, here, listening, supervised } = makeServeWorld();
const mark = join(place.root, 'mark');
const holding = ['bash', '-c', 'sleep 3600; :', mark];
/** Residents of a process, in bytes. */
const residentOf = (pid: number | undefined) =>
  1024 * Number(/^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);

describe('the clients of serve', () => {
  it('cannot see, write to, or end what belongs to another', async () => {
    const { connect } = await here();
    const [mine, other] = [await connect(), await connect()];
    const { command } = await mine.call('spawn', { command: ['cat'] });
    const { session } = await mine.call('session.open');
    const attempts = [
      ['kill', { command }],
      ['kill', { command, signal: 'SIGKILL' }],
      ['write', { command, input: { data: 'forged\n' }, close: true }],
      ['session.run', { session, command: 'touch forged' }],
      ['session.snapshot', { session }],
      ['session.interrupt', { session }],
      ['session.close', { session }],
    ] as const;
    for (const [method, params] of attempts) {
      const { error } = await other.ask(method, params);
      expect(error.data.code, method).toBe('protocol.unknown_id');
    }
    await mine.call('write', { command, input: { data: 'mine\n' }, close: true });
    await mine.told('ended');
    expect(mine.outputOf(command)).toBe('mine\n');
    expect((await mine.call('session.run', { session, command: 'echo on' })).stdout).toBe('on\n');
    expect(other.notifications).toEqual([]);
  });

  it('may use the same ids, and cancel only their own', async () => {
    const { connect } = await here();
    const [mine, other] = [await connect(), await connect()];
    const { words, letGo } = makeHold(place.workspace);
    const asked = mine.ask('run', { command: `${words}; echo mine` }, 'same');
    const theirs = other.ask('run', { command: 'sleep 60' }, 'same');
    other.cancel('same');
    expect((await theirs).result.status).toBe('canceled');
    letGo();
    expect((await asked).result.stdout).toBe('mine\n');
  });

  it('take their commands with them, and nobody else’s', async () => {
    const { connect } = await here();
    const [gone, other] = [await connect(), await connect()];
    const { words, letGo } = makeHold(place.workspace);
    const others = other.ask('run', { command: `${words}; echo still` });
    void gone.ask('run', { command: holding });
    await gone.call('spawn', { command: `setsid bash -c 'sleep 3600; :' ${mark} & wait` });
    const { session } = await gone.call('session.open');
    void gone.ask('session.run', { session, command: `bash -c 'sleep 3600; :' ${mark}` });
    await eventually(() => expect(processesWith(mark).length).toBeGreaterThanOrEqual(3));
    gone.output.destroy();
    await eventually(() => expect(processesWith(mark)).toEqual([]));
    letGo();
    expect((await others).result.stdout).toBe('still\n');
  });

  it('run a thousand small commands at once', { timeout: 180_000 }, async () => {
    const { child, connect } = await listening();
    const clients = [await connect(), await connect(), await connect()];
    const results = await Promise.all(
      clients.flatMap((client, which) =>
        Array.from({ length: 350 }, async (_, index) => {
          const text = `${which}-${index}`;
          const { stdout } = await client.call('run', { command: ['echo', text] });
          return stdout === `${text}\n`;
        }),
      ),
    );
    expect(results.filter(Boolean)).toHaveLength(1050);
    expect(child.exitCode).toBeNull();
  });

  it('that ask for too much at once are told so, and the rest is done', { timeout: 180_000 }, async () => {
    const { connect } = await here();
    const client = await connect();
    const answers = await Promise.all(
      Array.from({ length: 5000 }, () => client.ask('check', { command: ['true'] })),
    );
    const codes = new Set(answers.map(({ error }) => error?.data.code ?? 'done'));
    expect([...codes].filter((code) => code !== 'done' && code !== 'protocol.busy')).toEqual([]);
    const big = 'x'.repeat(12 * 1024 * 1024);
    const go = join(place.workspace, 'go');
    const until = `while [ ! -e ${go} ]; do sleep 0.02; done; wc -c`;
    const held = Array.from({ length: 8 }, () => client.ask('run', { command: until, input: { data: big } }));
    // 64 MiB have room for five of them, whatever their speed: none ends before.
    for (const answer of await Promise.all(held.slice(5)))
      expect(answer.error.data.code).toBe('protocol.busy');
    writeFileSync(go, '');
    for (const answer of await Promise.all(held.slice(0, 5)))
      expect(answer.result.stdout.trim()).toBe(String(big.length));
    expect((await client.call('run', { command: 'echo on' })).stdout).toBe('on\n');
  });

  it('that take nothing do not make the server grow, and are ended all the same', async () => {
    const { child, connect } = await listening();
    const slow = await connect();
    const before = residentOf(child.pid);
    slow.input.pause();
    for (let count = 0; count < 8; count += 1) void slow.ask('spawn', { command: `yes ${mark}` });
    const other = await connect();
    for (let count = 0; count < 100; count += 1) await other.call('run', { command: ['true'] });
    expect(processesWith(mark)).not.toEqual([]);
    expect(residentOf(child.pid) - before).toBeLessThan(150 * 1024 * 1024);
    slow.output.destroy();
    await eventually(() => expect(processesWith(mark)).toEqual([]));
    expect((await other.call('run', { command: 'echo on' })).stdout).toBe('on\n');
  });

  it('that take no results are run no more commands, and are ended all the same', async () => {
    const { child, connect } = await listening();
    const [slow, session, other] = [await connect(), await connect(), await connect()];
    const ran = join(place.workspace, 'ran');
    const much = { command: `echo >> ${ran}; head -c 4000000 /dev/zero | tr "\\0" x`, maxOutput: 4_000_000 };
    const before = residentOf(child.pid);
    slow.input.pause();
    for (let count = 0; count < 400; count += 1) void slow.ask('run', much);
    const { session: name } = await session.call('session.open');
    session.input.pause();
    for (let count = 0; count < 100; count += 1)
      void session.ask('session.run', { session: name, command: much.command });
    // Until all that were begun have ended, and none is begun while others run theirs.
    for (let atRest = -1; ; ) {
      await eventually(() => expect(existsSync(ran) && processesWith(ran).length === 0).toBe(true));
      if (atRest === statSync(ran).size) break;
      atRest = statSync(ran).size;
      for (let count = 0; count < 20; count += 1) await other.call('run', { command: ['true'] });
    }
    expect(statSync(ran).size).toBeLessThan(150);
    expect(residentOf(child.pid) - before).toBeLessThan(600 * 1024 * 1024);
    slow.output.destroy();
    session.output.destroy();
    expect((await other.call('run', { command: 'echo on' })).stdout).toBe('on\n');
  });

  it('that go away in the middle of a message take what they started with them, and nobody else’s', async () => {
    const { connect } = await here();
    const other = await connect();
    const { words, letGo } = makeHold(place.workspace);
    const kept = other.ask('run', { command: `${words}; echo kept` });
    for (const half of ['', '{"jsonrpc":"2.0","id":9,"method":"run","par', 'x'.repeat(3 * 1024 * 1024)]) {
      const client = await connect();
      void client.ask('run', { command: holding });
      void client.ask('run', { command: 'rm -rf nothing' });
      await eventually(() => expect(processesWith(mark)).not.toEqual([]));
      client.output.write(half);
      client.output.destroy();
      await eventually(() => expect(processesWith(mark)).toEqual([]));
    }
    letGo();
    expect((await kept).result.stdout).toBe('kept\n');
  });

  it('that send a message of 2 GB do not make the server grow', async () => {
    const { child, connect } = await listening();
    const [endless, other] = [await connect(), await connect()];
    const before = residentOf(child.pid);
    const piece = Buffer.alloc(1024 * 1024, 'x');
    for (let sent = 0; sent < 2048 && !endless.ended; sent += 1) {
      if (endless.output.destroyed) break;
      if (endless.output.write(piece)) continue;
      // It may be over by now.
      await Promise.race([once(endless.output, 'drain'), once(endless.output, 'close')]).catch(() => {});
    }
    await endless.ends();
    expect(endless.said.map(({ error }) => error?.data.code)).toContain('protocol.too_long');
    expect(residentOf(child.pid) - before).toBeLessThan(150 * 1024 * 1024);
    expect((await other.call('run', { command: 'echo on' })).stdout).toBe('on\n');
  });

  it('send a schema’s worth of messages only', () => {
    expect(() =>
      expectValid({ jsonrpc: '2.0', id: 1, method: 'run', params: {} }, 'clientMessage'),
    ).toThrow();
    expect(() => expectValid({ jsonrpc: '2.0', id: 1, result: 7 }, 'serverMessage')).toThrow();
  });
});

describe('questions over serve', () => {
  const question = { command: 'rm -rf nothing' };

  it('go to the client whose command it is, if it answers, and to nobody else', async () => {
    const { connect } = await here([], supervised);
    const [mine, other] = [await connect({ approvals: true }), await connect({ approvals: true })];
    const asked = mine.ask('run', question, 'asked');
    const told = await mine.told('approvals.requested');
    expect(told).toMatchObject({ request: 'asked', command: question.command, cwd: place.workspace });
    expect((await mine.call('approvals.list')).questions).toEqual([told]);
    // Whoever else knows its name has no say in it.
    expect((await other.call('approvals.list')).questions).toEqual([]);
    const forged = await other.ask('approvals.answer', { question: told.question, approved: true });
    expect(forged.error.data.code).toBe('approval.unknown');
    await mine.call('approvals.answer', { question: told.question, approved: true });
    expect((await asked).result).toMatchObject({
      status: 'exited',
      exitCode: 0,
      approval: { approved: true },
    });
    const again = await mine.ask('approvals.answer', { question: told.question, approved: true });
    expect(again.error.data.code).toBe('approval.unknown');
    expect(other.notifications).toEqual([]);
  });

  it('are asked for a loss with the default level, too', async () => {
    const { connect } = await here([], { XDG_CONFIG_HOME: makeAskingConfiguration(place.root) });
    const client = await connect({ approvals: true });
    // What the sandbox holds is no question (control).
    const made = await client.call('run', { command: 'mkdir draft && echo text > draft/notes' });
    expect(made).toMatchObject({ status: 'exited', exitCode: 0 });
    expect(client.notifications).toEqual([]);
    // Somebody else worked on it since: what a command alone made is no loss.
    writeFileSync(join(place.workspace, 'draft/notes'), 'of the user');
    for (const approved of [false, true]) {
      const asked = client.ask('run', { command: 'rm -r draft' }, `loss-${approved}`);
      const told = await client.told('approvals.requested', ({ request }) => request === `loss-${approved}`);
      expect(JSON.stringify(told)).toContain(
        'would delete draft/notes, which version control cannot restore',
      );
      await client.call('approvals.answer', { question: told.question, approved });
      expect((await asked).result.status).toBe(approved ? 'exited' : 'denied');
      expect(existsSync(join(place.workspace, 'draft'))).toBe(!approved);
    }
  });

  it('find the right request among many at once', async () => {
    const { connect } = await here([], supervised);
    const client = await connect({ approvals: true });
    const asked = Array.from({ length: 20 }, (_, index) =>
      client.ask('run', { command: `rm -rf file-${index}` }, `number-${index}`),
    );
    await eventually(async () => {
      expect((await client.call('approvals.list')).questions).toHaveLength(20);
    });
    for (const { question: id, request, command } of (await client.call('approvals.list')).questions) {
      expect(command).toBe(`rm -rf ${String(request).replace('number', 'file')}`);
      await client.call('approvals.answer', { question: id, approved: request === 'number-7' });
    }
    const statuses = (await Promise.all(asked)).map(({ result }) => result.status);
    expect(statuses.filter((status) => status === 'exited')).toHaveLength(1);
    expect(statuses[7]).toBe('exited');
  });

  it('that wait keep nothing else from running, and nothing is said about listeners', async () => {
    const { child, connect } = await listening([], supervised);
    const client = await connect({ approvals: true });
    for (let index = 0; index < 100; index += 1)
      void client.ask('run', { command: `rm -rf file-${index}` }, `asked-${index}`);
    const spawned = Array.from({ length: 70 }, (_, index) =>
      client.call('spawn', { command: `rm -rf spawned-${index}` }),
    );
    await Promise.all(spawned);
    await eventually(async () => {
      expect((await client.call('approvals.list')).questions).toHaveLength(170);
    });
    const others = Array.from({ length: 40 }, () => client.call('run', { command: 'echo plain' }));
    expect((await Promise.all(others)).map(({ stdout }) => stdout)).toEqual(Array(40).fill('plain\n'));
    await client.call('spawn', { command: ['echo', 'spawned'] });
    await client.told('output', ({ data }) => data === 'spawned\n');
    // An answer is followed by its command, and the places are those that there were.
    for (const { question: id } of (await client.call('approvals.list')).questions)
      await client.call('approvals.answer', { question: id, approved: true });
    await eventually(() =>
      expect(client.notifications.filter(({ method }) => method === 'ended')).toHaveLength(71),
    );
    await eventually(() =>
      expect(client.said.filter(({ id }) => String(id).startsWith('asked-'))).toHaveLength(100),
    );
    child.kill('SIGTERM');
    expect((await child).stderr).toBe('');
  });

  it('have a bound, beyond which a command is refused at once with the reason', async () => {
    const { connect } = await here([], supervised);
    const client = await connect({ approvals: true });
    for (let index = 0; index < 256; index += 1)
      void client.ask('run', { command: `rm -rf file-${index}` }, `asked-${index}`);
    await eventually(async () => {
      expect((await client.call('approvals.list')).questions).toHaveLength(256);
    });
    const refused = await client.call('run', { command: 'rm -rf one-more' });
    expect(refused).toMatchObject({ status: 'denied', approval: { approved: false, reason: 'failed' } });
    expect(JSON.stringify(refused)).toContain('256 questions of this connection wait');
    client.cancel('asked-0');
    await client.told('approvals.withdrawn');
    void client.ask('run', { command: 'rm -rf one-more' }, 'more');
    await client.told('approvals.requested', ({ request }) => request === 'more');
  });

  it('in the queue keep nothing else from running either', async () => {
    const { connect } = await here(['--ask', 'queue'], supervised);
    const client = await connect();
    for (let index = 0; index < 40; index += 1)
      void client.ask('run', { command: `rm -rf file-${index}` }, `asked-${index}`);
    await eventually(() =>
      expect(client.notifications.filter(({ method }) => method === 'approvals.queued')).toHaveLength(40),
    );
    expect((await client.call('run', { command: 'echo plain' })).stdout).toBe('plain\n');
  });

  it('are asked for spawned commands and sessions, too', async () => {
    const { connect } = await here([], supervised);
    const client = await connect({ approvals: true });
    const { command } = await client.call('spawn', question);
    const first = await client.told('approvals.requested');
    await client.call('approvals.answer', { question: first.question, approved: false });
    const { result } = await client.told('ended', (params) => params.command === command);
    expect(result).toMatchObject({ status: 'denied', approval: { approved: false, reason: 'denied' } });
    const { session } = await client.call('session.open');
    const turn = client.ask('session.run', { session, ...question }, 'turn');
    const second = await client.told('approvals.requested', ({ request }) => request === 'turn');
    await client.call('approvals.answer', { question: second.question, approved: true });
    expect((await turn).result).toMatchObject({ exitCode: 0 });
  });

  it('are a no of a client that does not answer, and withdrawn with the command', async () => {
    const { connect } = await here([], supervised);
    const [silent, answering] = [await connect(), await connect({ approvals: true })];
    expect((await silent.call('run', question)).status).toBe('denied');
    const asked = answering.ask('run', question, 'asked');
    const told = await answering.told('approvals.requested');
    answering.cancel('asked');
    await answering.told('approvals.withdrawn', ({ question: id }) => id === told.question);
    expect((await asked).result.status).not.toBe('exited');
    const late = await answering.ask('approvals.answer', { question: told.question, approved: true });
    expect(late.error.data.code).toBe('approval.unknown');
  });

  it('remember only for the same request', async () => {
    const { connect } = await here([], supervised);
    const client = await connect({ approvals: true });
    const asked = client.ask('run', { command: 'rm -rf remembered' });
    const { question: id } = await client.told('approvals.requested');
    await client.call('approvals.answer', { question: id, approved: true, scope: 'always' });
    await asked;
    expect(await client.call('run', { command: 'rm -rf remembered' })).toMatchObject({ exitCode: 0 });
    void client.ask('run', { command: 'rm -rf remembered other' }, 'other');
    await client.told('approvals.requested', ({ request }) => request === 'other');
  });

  it('go into the queue where the operator wants that', async () => {
    const { connect } = await here(['--ask', 'queue'], supervised);
    const client = await connect({ approvals: true });
    const asked = client.ask('run', question, 'queued');
    const { id, request } = await client.told('approvals.queued');
    expect(request).toBe('queued');
    expect((await client.call('approvals.list')).questions).toEqual([]);
    const env = { ...supervised, XDG_STATE_HOME: join(place.root, 'state') };
    // A process of its own: a call in this one would share its environment with the server.
    const approver = { ...place, env: { ...place.env, ...env } };
    expect(await startCli(approver, ['approvals', 'approve', id])).toMatchObject({ exitCode: 0 });
    expect((await asked).result).toMatchObject({ status: 'exited', exitCode: 0 });
  });
});

describe('the socket of serve', () => {
  const start = (path: string, args: readonly string[] = []) =>
    cli(place, ['serve', '--socket', path, ...args], { env: { XDG_STATE_HOME: join(place.root, 'state') } });

  it('is this user’s alone, and gone with the server', async () => {
    const { child, connect } = await listening();
    expect(statSync(socket).mode & 0o7777).toBe(0o600);
    const client = await connect();
    await client.call('spawn', { command: holding });
    await eventually(() => expect(processesWith(mark)).not.toEqual([]));
    child.kill('SIGTERM');
    expect(await child).toMatchObject({ exitCode: 0, stderr: '' });
    await client.ends();
    expect(existsSync(socket)).toBe(false);
    expect(processesWith(mark)).toEqual([]);
  });

  it('takes the place of one that a dead server left, not of one that lives', async () => {
    const { child } = await listening();
    const second = await start(socket);
    expect(second).toMatchObject({ exitCode: 125, stdout: '' });
    expect(second.stderr).toMatch(/^sandbox-run: serve cannot use .*in use/);
    child.kill('SIGKILL');
    await child;
    expect(lstatSync(socket).isSocket()).toBe(true);
    const { connect } = await here();
    expect(await (await connect()).call('run', { command: 'echo new' })).toMatchObject({ stdout: 'new\n' });
  });

  it('is not made where something else is', async () => {
    const file = join(sockets, 'file');
    writeFileSync(file, 'precious');
    const link = join(sockets, 'link');
    symlinkSync(join(sockets, 'elsewhere'), link);
    for (const path of [file, link, sockets]) {
      const { exitCode, stderr } = await start(path);
      expect(exitCode, path).toBe(125);
      expect(stderr).toMatch(/^sandbox-run: serve cannot use [^\n]+\n$/);
    }
    expect(readFileSync(file, 'utf8')).toBe('precious');
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(existsSync(join(sockets, 'elsewhere'))).toBe(false);
    // A link to a socket that lives is not followed, either.
    const server = createServer().listen(join(sockets, 'elsewhere'));
    expect((await start(link)).exitCode).toBe(125);
    server.close();
    for (const path of [file, link]) rmSync(path);
  });

  it('lies neither where commands are nor where others can write', async () => {
    const shared = join(place.root, 'shared');
    mkdirSync(shared);
    const extra = join(place.root, 'extra');
    mkdirSync(extra);
    for (const mode of [0o777, 0o1777, 0o775]) {
      chmodSync(shared, mode);
      const { exitCode, stderr } = await start(join(shared, 's'));
      expect(exitCode).toBe(125);
      expect(stderr).toMatch(/can be written by others/);
    }
    const inside = await start(join(place.workspace, 's'));
    expect(inside.stderr).toMatch(/which commands can reach/);
    const hidden = join(place.root, 'hidden');
    symlinkSync(place.workspace, hidden);
    expect((await start(join(hidden, 's'))).stderr).toMatch(/which commands can reach/);
    expect((await start(join(extra, 's'), ['--ro', extra])).stderr).toMatch(/which commands can reach/);
    expect((await start(join(place.root, 'missing/s'))).exitCode).toBe(125);
    expect(existsSync(join(place.workspace, 's'))).toBe(false);
  });

  it('hears nobody who does not say hello, and ends unused', async () => {
    const { child } = await listening(['--unused-timeout', '1']);
    const client = await connectTo(socket);
    client.output.end();
    expect(await child).toMatchObject({ exitCode: 0 });
    expect(existsSync(socket)).toBe(false);
  });

  it('tells whom it turns away that it is busy', async () => {
    const { connect } = await here();
    const silent = await Promise.all(Array.from({ length: 64 }, () => connect()));
    const late = await connectTo(socket);
    await late.ends();
    expect(late.said).toMatchObject([{ id: null, error: { data: { code: 'protocol.busy' } } }]);
    for (const client of silent) client.output.destroy();
    await eventually(async () => {
      const next = await connectTo(socket);
      const answer = await Promise.race([
        next.ask('initialize', { protocolVersion: 1 }),
        next.ends().then(() => undefined),
      ]);
      next.output.destroy();
      expect(answer?.result).toBeDefined();
    });
  });

  it.each([
    ['nothing said', ''],
    ['half a message', '{"jsonrpc":"2.0","id":1,"method":"initial'],
    ['a message that is not for a beginning', '{"jsonrpc":"2.0","id":1,"method":"run","params":{}}\n'],
  ])('is not kept busy by 200 that wait, with %s', async (_, said) => {
    const { connect } = await here();
    const before = await connect();
    const attacker = await holdOpen(200, () => createConnection(socket), said);
    try {
      for (let times = 0; times < 5; times += 1) {
        const client = await connect();
        expect((await client.call('run', { command: 'echo served' })).stdout).toBe('served\n');
      }
      expect((await before.call('run', { command: 'echo still' })).stdout).toBe('still\n');
      expect(attacker.dropped()).toBeGreaterThan(100);
    } finally {
      attacker.release();
    }
  });

  it('is closed to commands of the sandbox, even where they could connect', async () => {
    const { connect } = await listening(['--ro', process.execPath]);
    // Stands for a command of a sandbox that can see the socket: it is as confined as those, and of this user.
    const talk = `
      const socket = require('node:net').connect(process.argv[1]);
      socket.on('connect', () => socket.write('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\\n'));
      socket.on('data', (text) => console.log('heard', String(text)));
      socket.on('close', () => console.log('closed'));
      socket.on('error', (error) => console.log(error.code));`;
    const inside = await (await connect()).call('run', { command: [process.execPath, '-e', talk, socket] });
    expect(inside.stdout).not.toContain('heard');
    const more = [WITHOUT, 'namespaces', 'EPERM'];
    const confined = spawnSync('python3', [...more, process.execPath, '-e', talk, socket], {
      encoding: 'utf8',
      timeout: 20_000,
    });
    expect(confined.stdout).toMatch(/^((EPIPE|ECONNRESET)\n)?closed\n$/);
    const free = spawn(process.execPath, ['-e', talk, socket]);
    await new Promise<void>((done) =>
      free.stdout.on('data', (text) => String(text).startsWith('heard') && done()),
    );
    free.kill('SIGKILL');
  });

  it.runIf(process.geteuid?.() === 0)('is closed to other users, whatever its mode', async () => {
    const { connect } = await listening();
    const talk =
      "import socket,sys; s=socket.socket(socket.AF_UNIX); s.settimeout(20); s.connect(sys.argv[1]); s.sendall(b'{}\\n'); print(s.recv(10))";
    const as = (user: string) =>
      spawnSync('runuser', ['-u', user, '--', '/usr/bin/python3', '-c', talk, socket], { encoding: 'utf8' });
    expect(as('nobody').stderr).toMatch(/PermissionError/);
    for (const path of [place.root, sockets]) chmodSync(path, 0o755);
    chmodSync(socket, 0o666);
    const { stdout, stderr } = as('nobody');
    expect(stdout === "b''\n" || /ConnectionResetError|BrokenPipeError/.test(stderr), stdout + stderr).toBe(
      true,
    );
    expect(as('root').stdout).toContain('jsonrpc');
    expect(await (await connect()).call('run', { command: 'echo on' })).toMatchObject({ stdout: 'on\n' });
    chmodSync(sockets, 0o700);
  });
});
