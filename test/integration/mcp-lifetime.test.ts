import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { CLI } from '../cli/support.ts';
import { processesWith } from '../support/leftovers.ts';
import { connectTo, eventually, makeMcpPlace, markedSeconds, TEST_TIMEOUT } from './mcp-client.ts';

vi.setConfig({ testTimeout: TEST_TIMEOUT, hookTimeout: TEST_TIMEOUT });
const place = makeMcpPlace();
const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});
afterAll(async () => {
  await eventually(() => expect(processesWith(place.root)).toEqual([]));
  place.dispose();
});

const gone = (mark: string) => eventually(() => expect(processesWith(mark)).toEqual([]));
const running = (mark: string, count: number) =>
  eventually(() => expect(processesWith(mark).length).toBeGreaterThanOrEqual(count));
const arguments_ = (...more: string[]) => [
  CLI,
  'mcp',
  '--workspace',
  place.workspace,
  '--autonomy',
  'autonomous',
  ...more,
];

/** A server and its streams, without a client that knows the protocol. */
function serve(...more: string[]) {
  const child = spawn(process.execPath, arguments_(...more), {
    env: place.env,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  started.push(child);
  const lines: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  let log = '';
  child.stderr.on('data', (text: Buffer) => {
    log += text.toString('utf8');
  });
  child.stdin.on('error', () => {});
  const send = (message: unknown) =>
    child.stdin.write(typeof message === 'string' ? `${message}\n` : `${JSON.stringify(message)}\n`);
  const request = (id: number | string, method: string, params: unknown) =>
    send({ jsonrpc: '2.0', id, method, params });
  const answerTo = async (id: number | string) => {
    let found: unknown;
    await eventually(() => {
      found = lines.map((line) => JSON.parse(line)).find((message) => message.id === id && !message.method);
      expect(found).toBeDefined();
    });
    return found as { readonly result?: { readonly structuredContent?: unknown }; readonly error?: unknown };
  };
  const initialize = () => {
    request('hello', 'initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'raw', version: '1' },
    });
    send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return answerTo('hello');
  };
  const shell = (id: number | string, command: string, background = false) =>
    request(id, 'tools/call', { name: 'shell', arguments: { command, background } });
  return { child, lines, log: () => log, send, request, answerTo, initialize, shell };
}

/** Commands of every kind: waited for, in the background, and what they leave behind. */
function startEverything({ shell }: Pick<ReturnType<typeof serve>, 'shell'>, mark: string) {
  shell('waited', `sleep ${mark}`);
  shell(
    'tree',
    `(setsid sleep ${mark} &); trap '' TERM HUP; setsid nohup sleep ${mark} & sleep ${mark}; sleep ${mark}`,
  );
  shell('job', `trap '' TERM; sleep ${mark} & (setsid sleep ${mark} &); sleep ${mark}; sleep ${mark}`, true);
  return running(mark, 6);
}

describe('everything that a client of sandbox-run mcp started ends', () => {
  it('when the client closes its end', async () => {
    const server = serve();
    await server.initialize();
    const mark = markedSeconds();
    await startEverything(server, mark);
    const exited = once(server.child, 'exit');
    server.child.stdin.end();
    expect(await exited).toEqual([0, null]);
    // Killed, they run no more; on a busy machine the kernel takes a moment to remove them.
    await eventually(() => expect(processesWith(mark)).toEqual([]));
  });

  it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)('at %s', async (signal) => {
    const server = serve();
    await server.initialize();
    const mark = markedSeconds();
    await startEverything(server, mark);
    const exited = once(server.child, 'exit');
    server.child.kill(signal);
    expect(await exited).toEqual([0, null]);
    // Killed, they run no more; on a busy machine the kernel takes a moment to remove them.
    await eventually(() => expect(processesWith(mark)).toEqual([]));
  });

  it('when the server is killed', async () => {
    const server = serve();
    await server.initialize();
    const mark = markedSeconds();
    await startEverything(server, mark);
    server.child.kill('SIGKILL');
    await gone(mark);
  });

  it('when the client is killed', async () => {
    // The client is a process of its own, whose end of the pipe the kernel closes.
    const mark = markedSeconds();
    const command = JSON.stringify(`(setsid sleep ${mark} &); sleep ${mark}`);
    const script = `
      const { spawn } = require('node:child_process');
      const server = spawn(process.execPath, ${JSON.stringify(arguments_('--quiet'))}, { stdio: ['pipe', 'ignore', 'ignore'] });
      const send = (id, method, params) => server.stdin.write(JSON.stringify({ jsonrpc: '2.0', id, method, params }) + '\\n');
      send(0, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'doomed', version: '1' } });
      send(1, 'tools/call', { name: 'shell', arguments: { command: ${command} } });
      send(2, 'tools/call', { name: 'shell', arguments: { command: ${command}, background: true } });
      setInterval(() => {}, 1e6);`;
    const client = spawn(process.execPath, ['-e', script], { env: place.env, stdio: 'ignore' });
    started.push(client);
    // Those of the client and of its server name it too.
    await running(`sleep\0${mark}`, 4);
    client.kill('SIGKILL');
    await gone(mark);
    await eventually(() => expect(processesWith(place.workspace)).toEqual([]));
  });

  it('when the SDK’s client closes, and soon', async () => {
    const { client, call, pid } = await connectTo(place, ['--autonomy', 'autonomous']);
    const mark = markedSeconds();
    const waiting = call('shell', { command: `trap '' TERM; sleep ${mark}; sleep ${mark}` }).catch(
      () => 'closed',
    );
    await running(mark, 2);
    await client.close();
    expect(await waiting).toBe('closed');
    await gone(mark);
    await eventually(() => expect(existsSync(`/proc/${pid}`)).toBe(false));
  });

  it('when nobody reads what the server writes', async () => {
    const server = serve();
    await server.initialize();
    server.child.stdout.pause();
    for (let id = 0; id < 40; id += 1) server.shell(id, 'yes aaaaaaaaaaaaaaaaaaaaaa | head -c 100000');
    const mark = markedSeconds();
    server.shell('job', `sleep ${mark}`, true);
    await running(mark, 1);
    server.child.kill('SIGTERM');
    await gone(mark);
    await eventually(() => expect(server.child.exitCode).toBe(0));
  });
});

describe('the protocol of sandbox-run mcp', () => {
  it('goes on after messages that are none', async () => {
    const server = serve();
    await server.initialize();
    for (const message of [
      '{',
      'null',
      '[]',
      '"text"',
      '',
      '{"jsonrpc":"1.0","id":1,"method":"tools/call"}',
      '{"jsonrpc":"2.0","id":null,"method":"tools/list"}',
      `{"jsonrpc":"2.0","id":9,"result":{"action":"accept","content":{"approve":true}}}`,
      '\u001b[2J\u0007 not JSON',
      '['.repeat(100_000),
      `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"shell","arguments":{"command":"touch too-long #${'x'.repeat(2_000_000)}"}}}`,
    ])
      server.send(message);
    server.shell('after', 'echo still here');
    expect((await server.answerTo('after')).result?.structuredContent).toMatchObject({
      stdout: 'still here\n',
    });
    expect(existsSync(join(place.workspace, 'too-long'))).toBe(false);
    expect(server.log()).toContain('a message of more than 1048576 bytes was left out');
    // One line each, nothing that a terminal would obey, no stack trace.
    for (const line of server.log().trimEnd().split('\n')) {
      expect(line).toMatch(/^sandbox-run: mcp: /);
      expect(line).toMatch(/^[ -~…]*$/);
    }
    // Nothing but messages on standard output.
    for (const line of server.lines)
      expect(JSONRPCMessageSchema.safeParse(JSON.parse(line)).success).toBe(true);
  });

  it('understands messages in pieces, and several in one', async () => {
    const server = serve();
    await server.initialize();
    const line = JSON.stringify({
      jsonrpc: '2.0',
      id: 'pieces',
      method: 'tools/call',
      params: { name: 'shell', arguments: { command: 'echo grüße' } },
    });
    const bytes = Buffer.from(`${line}\n`);
    for (let at = 0; at < bytes.length; at += 7) {
      server.child.stdin.write(bytes.subarray(at, at + 7));
      await new Promise((done) => setImmediate(done));
    }
    expect((await server.answerTo('pieces')).result?.structuredContent).toMatchObject({ stdout: 'grüße\n' });
    server.send(`${line.replace('pieces', 'a')}\n${line.replace('pieces', 'b')}`);
    await server.answerTo('a');
    await server.answerTo('b');
  });

  it('says what is wrong with a client a few times only: perhaps nobody reads it', async () => {
    for (const [args, most] of [
      [[], 50],
      [['--quiet'], 0],
    ] as const) {
      const server = serve(...args);
      await server.initialize();
      for (let i = 0; i < 5_000; i += 1) server.send('{');
      server.shell('after', 'true');
      await server.answerTo('after');
      // What a host lacks is said before it is ready.
      const remarks = server.log().replace(/^.*?mcp: ready: [^\n]*\n/s, '');
      expect(remarks.split('\n').length - 1).toBe(most);
    }
  });
});
