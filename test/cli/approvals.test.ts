import { connect } from 'node:net';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { PAGE } from '../../src/serve/index.ts';
import { connectTo } from '../integration/serve-client.ts';
import { makeStatePlace, sampleRequest, until } from '../support/approvals.ts';
import { HALF_OPEN, holdOpen } from '../support/half-open.ts';
import { CLI, cli, expectOneLine } from './support.ts';

const place = makeStatePlace();
const env = { PATH: process.env.PATH ?? '', XDG_STATE_HOME: place.stateHome, HOME: place.stateHome };

const caller = { workspace: place.stateHome, env };
const approvals = (...args: string[]) => cli(caller, ['approvals', ...args]);

const post = async (changes: Parameters<typeof sampleRequest>[0] = {}) => {
  const { approvals: store } = await place.open();
  return { store, id: await store.post(sampleRequest(changes), Date.now() + 60_000) };
};
const lines = (text: string) => text.split('\n').filter((line) => line !== '');

describe('approvals list and show', () => {
  it('say that nothing waits', async () => {
    const empty = join(place.stateHome, 'empty');
    const { stdout } = await cli(caller, ['approvals', 'list'], { env: { XDG_STATE_HOME: empty } });
    expect(stdout).toBe('Nothing waits for an answer.\n');
  });

  it('show the whole command, with what cannot be seen', async () => {
    const command = `echo ${'X'.repeat(2_000)}\u202e\x1b[2J\nrm -r build`;
    const { id } = await post({ command });
    const listed = await approvals('list');
    expect(listed).toMatchObject({ exitCode: 0, stderr: '' });
    expect(listed.stdout).toContain(id);
    expect(listed.stdout.match(/X/g)).toHaveLength(2_000);
    expect(listed.stdout).toContain('\\u{202e}\\u{1b}[2J');
    expect(listed.stdout).toContain('\n| rm -r build\n');
    expect(listed.stdout).not.toContain('\x1b');
    const shown = await approvals('show', id);
    expect(shown.stdout).toContain('\n  It changes another repository.\n');
    expect(shown.stdout).toContain('\n  Held: Writes nothing outside the workspace.\n');
  });

  it('give other programs everything as JSON', async () => {
    const { id } = await post({ command: ['echo', '\u202e'] });
    const { stdout } = await approvals('list', '--json');
    expect(stdout).not.toMatch(/[^\n -~]/);
    const listed = lines(stdout).map((line) => JSON.parse(line));
    expect(listed.find((request) => request.id === id)).toMatchObject({
      state: 'pending',
      command: ['echo', '\u202e'],
      cwd: '/work/project',
    });
    const asText = (await approvals('show', id, '--json')).stdout;
    expect(asText).not.toMatch(/[^\n -~]/);
    const shown = JSON.parse(asText);
    expect(shown).toMatchObject({ id, fingerprint: 'f'.repeat(64) });
  });

  it('know what became of a request', async () => {
    const { id } = await post();
    await approvals('deny', id);
    expect((await approvals('list')).stdout).not.toContain(id);
    expect((await approvals('list', '--all')).stdout).toContain(`${id}  denied, answered by command line`);
  });
});

describe('approvals approve and deny', () => {
  it('say what was approved', async () => {
    const { id, store } = await post();
    const approved = await approvals('approve', id);
    expect(approved).toMatchObject({ exitCode: 0, stderr: '' });
    expect(approved.stdout).toContain('\n| git push origin main\n');
    expect(approved.stdout).toMatch(/\nApproved \(once\)\. Allows exactly this command.*, once\.\n$/);
    expect(await store.take(id)).toEqual({ approved: true, scope: 'once', by: 'command line' });
  });

  it('take a scope', async () => {
    const { id, store } = await post({ session: 's1' });
    expect((await approvals('approve', id, '--scope', 'session')).stdout).toContain('in the session s1');
    expect(await store.take(id)).toMatchObject({ scope: 'session' });
  });

  it('do not approve for a session where there is none', async () => {
    const { id, store } = await post();
    const refused = await approvals('approve', id, '--scope', 'session');
    expect(refused).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(refused.stderr);
    expect(await store.take(id)).toBeUndefined();
  });

  it.each([
    ['approve', 'approve'],
    ['deny', 'approve'],
    ['approve', 'deny'],
  ])('%s stands against a later %s', async (first, second) => {
    const { id, store } = await post();
    await approvals(first, id);
    const later = await approvals(second, id);
    expect(later).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(later.stderr);
    expect(later.stderr).toContain('does not wait any more');
    expect(await store.take(id)).toMatchObject({ approved: first === 'approve' });
  });

  it.each([
    ['show', 'nonsense'],
    ['approve', '0'.repeat(24)],
    ['approve', '%'],
    ['deny', ''],
    ['revoke', '0'.repeat(24)],
    ['approve', 'x\x1b[2J\n'],
  ])('an id that nobody knows is an error: %s %j', async (verb, id) => {
    const result = await approvals(verb, id);
    expect(result).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(result.stderr);
    expect(result.stderr).not.toContain('\x1b');
    expect(result.stderr).toContain('there is no');
  });

  it('the beginning of an id is none', async () => {
    const { id, store } = await post();
    expect(await approvals('approve', id.slice(0, -1))).toMatchObject({ exitCode: 125 });
    expect(await store.take(id)).toBeUndefined();
  });

  it.each([
    [['approve']],
    [['approve', 'a', 'b']],
    [['approve', 'a', '--scope', 'forever']],
    [['approve', 'a', '--all']],
  ])('wrong words are an error: %j', async (args) => {
    const result = await approvals(...args);
    expect(result).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(result.stderr);
  });
});

describe('approvals grants and revoke', () => {
  it('show in full what is remembered, until it is forgotten', async () => {
    const { approvals: store } = await place.open();
    const request = sampleRequest({
      fingerprint: 'a'.repeat(64),
      environment: ['GIT_TRACE=1', 'A=\u202e\u009b'],
    });
    // Of the tests before: an answer for longer is remembered at once.
    for (const { id } of await store.grants()) await store.revoke(id);
    await store.grant(request, 'always', 'test');
    const [grant] = await store.grants();
    const id = grant?.id ?? '';
    const shown = await approvals('grants');
    expect(shown.stdout).toMatch(
      new RegExp(`^${id}  always, granted .* by test\nAllows exactly this command`),
    );
    expect(shown.stdout).toContain('\n| git push origin main\n');
    expect(shown.stdout).toContain('\n  Variable: GIT_TRACE=1\n');
    const { stdout } = await approvals('grants', '--json');
    expect(stdout).not.toMatch(/[^\n -~]/);
    const json = lines(stdout).map((line) => JSON.parse(line));
    expect(json).toMatchObject([{ id, scope: 'always', request: { command: 'git push origin main' } }]);
    expect((await approvals('revoke', id)).stdout).toMatch(/Revoked\.\n$/);
    expect(await store.granted(request)).toBeUndefined();
    expect((await approvals('grants')).stdout).toBe('Nothing is remembered.\n');
  });
});

describe('approvals watch', () => {
  it('tells of requests as they come and go, one JSON object per line', async () => {
    const { id: waiting } = await post({ command: 'was there' });
    const watch = execa(process.execPath, [CLI, 'approvals', 'watch', '--json'], {
      env,
      extendEnv: false,
      stdin: 'ignore',
      reject: false,
    });
    const seen: { type: string; id?: string; state?: string; request?: { id: string; command: string } }[] =
      [];
    const reading = (async () => {
      for await (const line of watch) seen.push(JSON.parse(line));
    })();
    await until(() => seen.find(({ request }) => request?.id === waiting));
    const { id } = await post({ command: 'came later' });
    const come = await until(() => seen.find(({ request }) => request?.id === id));
    expect(come).toMatchObject({ type: 'pending', request: { command: 'came later' } });
    await approvals('deny', id);
    expect(await until(() => seen.find((line) => line.type === 'settled' && line.id === id))).toEqual({
      type: 'settled',
      id,
      state: 'denied',
    });
    watch.kill('SIGTERM');
    await reading;
    expect((await watch).exitCode).toBe(0);
  });
});

describe('approvals serve', () => {
  it('says where it is, and leaves nothing behind', async () => {
    const server = execa(process.execPath, [CLI, 'approvals', 'serve'], {
      env,
      extendEnv: false,
      reject: false,
    });
    let output = '';
    server.stdout.on('data', (chunk) => {
      output += chunk;
    });
    await until(() => (output.includes('socket') ? true : undefined));
    expect(output).toMatch(
      /^web page {2}http:\/\/127\.0\.0\.1:\d+\/#[\w-]{43}\nsocket {4}\/.*\/sandbox-run\/approvals\.sock\n$/,
    );
    // What is bundled is what was written.
    const [address = '', path = ''] = output.split('\n').map((line) => line.slice(10));
    expect(await (await fetch(address)).text()).toBe(PAGE);
    const { id, store } = await post();
    const client = await connectTo(path);
    await client.initialize();
    await client.call('approvals.answer', { question: id, approved: true });
    expect(await store.take(id)).toMatchObject({ approved: true });
    client.output.destroy();
    const second = await approvals('serve');
    expect(second).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(second.stderr);
    server.kill('SIGINT');
    expect((await server).exitCode).toBe(0);
    const again = execa(process.execPath, [CLI, 'approvals', 'serve'], {
      env,
      extendEnv: false,
      reject: false,
    });
    await until(() => new Promise((done) => again.stdout.once('data', done)));
    // What a server leaves that was killed is no obstacle.
    again.kill('SIGKILL');
    await again;
    const third = execa(process.execPath, [CLI, 'approvals', 'serve'], {
      env,
      extendEnv: false,
      reject: false,
    });
    await until(() => new Promise((done) => third.stdout.once('data', done)));
    third.kill('SIGTERM');
    expect((await third).exitCode).toBe(0);
  });

  it('has time for people while 200 connections are held open', async () => {
    const server = execa(process.execPath, [CLI, 'approvals', 'serve'], {
      env,
      extendEnv: false,
      reject: false,
    });
    let output = '';
    server.stdout.on('data', (chunk) => {
      output += chunk;
    });
    await until(() => (output.includes('socket') ? true : undefined));
    const address = /http:\S+/.exec(output)?.[0] ?? '';
    const port = Number(new URL(address).port);
    const attackers = await Promise.all(
      HALF_OPEN.map(([, text]) => holdOpen(200, () => connect(port, '127.0.0.1'), text)),
    );
    for (let times = 0; times < 5; times += 1) {
      expect(await (await fetch(address)).text()).toBe(PAGE);
    }
    for (const attacker of attackers) {
      expect(attacker.held()).toBeGreaterThan(64);
      attacker.release();
    }
    server.kill('SIGTERM');
    expect((await server).exitCode).toBe(0);
  });

  it('serves the page alone where the state directory is too deep for a socket', async () => {
    const deep = { ...env, XDG_STATE_HOME: join(place.stateHome, 'd'.repeat(120)) };
    const options = { env: deep, extendEnv: false, reject: false } as const;
    const server = execa(process.execPath, [CLI, 'approvals', 'serve'], options);
    let output = '';
    server.stdout.on('data', (chunk) => {
      output += chunk;
    });
    await until(() => (output.includes('\n') ? true : undefined));
    expect(output).toMatch(/^web page {2}http:\S+\n$/);
    expect((await fetch(output.slice(10).trim())).status).toBe(200);
    server.kill('SIGTERM');
    const { exitCode, stderr } = await server;
    expect(exitCode).toBe(0);
    expect(stderr).toMatch(/^sandbox-run: there is no socket: \S+ is longer than 107 bytes; --socket /);
    // Who asks for a path gets that or nothing.
    const given = join(deep.XDG_STATE_HOME, 'a.sock');
    const refused = await approvals('serve', '--socket', given);
    expect(refused).toMatchObject({ exitCode: 125, stdout: '' });
  });

  it.each(['65536', '-1', 'x', ''])('port %j is none', async (port) => {
    const result = await approvals('serve', `--port=${port}`);
    expect(result).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(result.stderr);
  });
});
