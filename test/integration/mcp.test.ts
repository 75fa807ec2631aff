import { once } from 'node:events';
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { connect as netConnect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ElicitResult } from '@modelcontextprotocol/sdk/types.js';
import { execa } from 'execa';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { CLI, cli, expectOneLine } from '../cli/support.ts';
import { makeHold } from '../support/hold.ts';
import { processesWith } from '../support/leftovers.ts';
import { HOST } from '../support/tiers.ts';
import { ASKS_ABOUT_LOSSES, makeAskingConfiguration, makeConfiguration } from '../support/unjudged-policy.ts';
import {
  type ClientOptions,
  connectTo,
  eventually,
  makeMcpPlace,
  markedSeconds,
  TEST_TIMEOUT,
  textOf,
} from './mcp-client.ts';

vi.setConfig({ testTimeout: TEST_TIMEOUT, hookTimeout: TEST_TIMEOUT });
const place = makeMcpPlace();
const open: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});
afterAll(() => {
  const left = processesWith(place.root);
  place.dispose();
  expect(left).toEqual([]);
});

async function connect(args: readonly string[] = [], options: ClientOptions = {}) {
  const connected = await connectTo(place, args, options);
  open.push(() => connected.client.close());
  return connected;
}
const AUTONOMOUS = ['--autonomy', 'autonomous'];
/** Asks by risk, whatever the sandbox holds. */
const SUPERVISED = ['--autonomy', 'supervised'];
const gone = (mark: string) => eventually(() => expect(processesWith(mark)).toEqual([]));
const running = (mark: string) => eventually(() => expect(processesWith(mark)).not.toEqual([]));

describe('tools of sandbox-run mcp', () => {
  it('are listed with strict schemas and say within what they work', async () => {
    const { client } = await connect(['--timeout', '90']);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual([
      'shell',

      'shell_output',
      'shell_kill',
      'policy_explain',
    ]);
    for (const { inputSchema } of tools) expect(inputSchema.additionalProperties).toBe(false);
    // A model pays for all of it in each conversation.
    expect(Buffer.byteLength(JSON.stringify({ tools }))).toBeLessThanOrEqual(4096);
    const about = tools[0]?.description ?? '';
    for (const said of [place.workspace, 'no network', '90 s', 'private $TMPDIR', 'background'])
      expect(about).toContain(said);
    expect(client.getInstructions()).toContain(place.workspace);
    // Nothing that grants: these are the arguments there are.
    expect(Object.keys(tools[0]?.inputSchema.properties ?? {})).toEqual([
      'command',
      'cwd',
      'timeout',
      'background',
      'preview',
      'on',
    ]);
  });

  it('run commands and tell how they ended, structured and as text', async () => {
    const { shell, errors } = await connect();
    const good = await shell('echo out; echo err >&2');
    expect(good.isError).toBeUndefined();
    expect(good.structuredContent).toMatchObject({
      status: 'exited',
      exitCode: 0,
      signal: null,
      stdout: 'out\n',
      stderr: 'err\n',
      error: null,
      job: null,
    });
    expect(good.content).toEqual([
      {
        type: 'text',
        text: 'exit code 0\n[stdout, 3 characters]\nout\n[stderr, 3 characters]\nerr',
      },
    ]);
    const bad = await shell('exit 7');
    expect(bad.isError).toBeUndefined();
    expect(bad.structuredContent).toMatchObject({ status: 'exited', exitCode: 7 });
    expect(textOf(bad)).toBe('exit code 7 (no output)');
    expect((await shell('pwd')).structuredContent).toMatchObject({ stdout: `${place.workspace}\n` });
    expect(errors).toEqual([]);
  });

  it('do several things at once', async () => {
    const { shell } = await connect();
    const results = await Promise.all([...Array(8).keys()].map((i) => shell(`sleep 0.2; echo number ${i}`)));
    expect(results.map(({ structuredContent }) => structuredContent?.stdout)).toEqual(
      [...Array(8).keys()].map((i) => `number ${i}\n`),
    );
  });

  it('give no escape sequence and no more output than a model can take', async () => {
    const { shell } = await connect(AUTONOMOUS);
    const result = await shell(
      "printf '\\033[31mred\\033[0m\\033]0;title\\007\\u202e\\n'; yes 0123456789 | head -c 5000000",
    );
    expect(result.structuredContent?.status).toBe('exited');
    const stdout = String(result.structuredContent?.stdout);
    expect(stdout.startsWith('red\\u{202e}\n0123456789\n')).toBe(true);
    expect(stdout.length).toBeLessThan(40_000);
    expect(stdout).toMatch(/\[\.\.\. [\d,]+ bytes left out \.\.\.\]/);
    expect(result.structuredContent?.truncated).toMatchObject({ stderr: 0 });
  });

  it.each([
    [[], 55],
    [['--timeout', '60'], 55],
    [['--timeout', '61'], 61],
    [['--timeout', '20'], 20],
  ])('end a command in time for a client that waits a minute: %j', async (options, seconds) => {
    const { client, shell } = await connect([...AUTONOMOUS, ...options]);
    const { tools } = await client.listTools();
    expect(tools[0]?.description).toContain(`ended after ${seconds} s`);
    expect(textOf(await shell('true', { timeout: 3600 }))).toContain(`the time limit here is ${seconds} s`);
  });

  it('end a command at the time-out, and a call can only shorten it', async () => {
    const { shell } = await connect([...AUTONOMOUS, '--timeout', '2']);
    const [mark, longer] = [markedSeconds(), markedSeconds()];
    const [short, clamped] = await Promise.all([
      shell(`setsid sleep ${mark} & sleep ${mark}`, { timeout: 0.5 }),
      shell(`sleep ${longer}`, { timeout: 3600 }),
    ]);
    for (const result of [short, clamped]) {
      expect(result.isError).toBe(true);
      expect(result.structuredContent).toMatchObject({ status: 'timed-out' });
      expect(textOf(result)).toMatch(/^Ended: .*\nRule: timed-out\n/);
    }
    const less = 'Sandbox: the time limit here is 2 s; the 3600 s of the call do not hold.';
    expect(textOf(clamped)).toContain(less);
    expect(textOf(short)).not.toContain('do not hold');
    // Some clients show a model nothing but what is structured.
    expect(clamped.structuredContent?.messageForModel).toContain(less);
    expect(textOf(await shell('true', { timeout: 3600 }))).toBe(`exit code 0 (no output)\n${less}`);
    await gone(mark);
    await gone(longer);
  });

  it('refuse with a text for the model, and run nothing', async () => {
    const { shell, call } = await connect(SUPERVISED);
    const refused = await shell('touch made-by-root; sudo touch x');
    expect(refused.isError).toBe(true);
    expect(refused.structuredContent).toMatchObject({
      status: 'denied',
      exitCode: null,
      error: { code: 'command.denied' },
    });
    // What is allowed stands in the description of the tool.
    expect(textOf(refused)).toMatch(/^Not run: .*\nRule: .*\nReason: .*\nNext: .*\nNote: [^\n]*$/);
    expect(textOf(refused).length).toBeLessThan(500);
    expect(existsSync(join(place.workspace, 'made-by-root'))).toBe(false);
    const explained = await call('policy_explain', { command: 'sudo ls' });
    expect(explained.isError).toBeUndefined();
    expect(explained.structuredContent).toMatchObject({
      verdict: 'deny',
      judged: true,
      allowed: { network: 'off' },
    });
    expect((await call('policy_explain', { command: 'ls' })).structuredContent).toMatchObject({
      verdict: 'allow',
    });
    const asked = await call('policy_explain', { command: 'touch x' });
    expect(asked.structuredContent).toMatchObject({ verdict: 'ask' });
    expect(textOf(asked)).toContain('person');
  });

  it('know what the session of the agent was exposed to', async () => {
    const { call } = await connect([...AUTONOMOUS, '--profile', 'networked', '--session', 'exposed']);
    const verdict = async () =>
      (await call('policy_explain', { command: 'git push origin main' })).structuredContent?.verdict;
    expect(await verdict()).toBe('allow');
    const here = { ...place, tmp: join(place.root, 'tmp') };
    for (const taint of ['corruption', 'secret'])
      expect(await cli(here, ['session', 'taint', 'exposed', taint])).toMatchObject({ exitCode: 0 });
    expect(await verdict()).toBe('ask');
  });

  it('keep commands in the workspace, whatever directory is asked for', async () => {
    const { shell, call } = await connect(AUTONOMOUS, { capabilities: { roots: {} } });
    symlinkSync(place.outside, join(place.workspace, 'way-out'));
    for (const cwd of [
      place.outside,
      '..',
      '../outside',
      'way-out',
      '/',
      '/etc',
      `${place.workspace}/../outside`,
    ]) {
      const result = await shell('pwd', { cwd });
      expect(result.isError).toBe(true);
      expect(result.structuredContent).toMatchObject({
        status: 'setup-failed',
        error: { code: 'cwd.unusable' },
      });
      expect((await call('policy_explain', { command: 'pwd', cwd })).isError).toBe(true);
      expect((await shell('pwd', { cwd, background: true })).isError).toBe(true);
    }
    const read = await shell(`cat ${place.outside}/secret.txt; echo x > ${place.outside}/planted`);
    expect(JSON.stringify(read)).not.toContain('the-secret-41c7');
    expect(existsSync(join(place.outside, 'planted'))).toBe(false);
  });

  it('reject whatever would grant something or is malformed', async () => {
    const { call } = await connect();
    const attempts: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
      ['shell', { command: 'touch forged', approved: true }],
      ['shell', { command: 'touch forged', autonomy: 'autonomous' }],
      ['shell', { command: 'touch forged', env: { SANDBOX_RUN_AUTONOMY: 'autonomous' } }],
      ['shell', { command: 'touch forged', policy: '/tmp/x.toml', backend: 'application' }],
      ['shell', { command: 'touch forged', __proto__x: 1, writable: ['/'] }],
      ['shell', { command: ['touch', 'forged'] }],
      ['shell', { command: '' }],
      ['shell', { command: 'touch forged\0' }],
      ['shell', { command: 'touch forged', timeout: -1 }],
      ['shell', { command: 'touch forged', timeout: 0 }],
      ['shell', { command: 'touch forged', background: 'yes' }],
      ['shell', { command: `touch forged #${'x'.repeat(200_000)}` }],
      ['shell', {}],
      ['policy_explain', { command: 'touch forged', approved: true }],
      ['shell_kill', { id: 'job-1', signal: 'SIGSTOP; touch forged' }],
      ['shell_output', { id: 'constructor', since: -1 }],
      ['shell_output', { id: '__proto__' }],
      ['constructor', { command: 'touch forged' }],
      ['__proto__', {}],
    ];
    for (const [name, args] of attempts) {
      const result = await call(name, args);
      expect([name, args, result.isError]).toEqual([name, args, true]);
      expect(existsSync(join(place.workspace, 'forged'))).toBe(false);
    }
  });
});

describe('background commands of sandbox-run mcp', () => {
  it.runIf(HOST.namespaces)('are told with the next result, once, with where they are reached', async () => {
    const { shell, call } = await connect(AUTONOMOUS);
    const serve = 'import socket;s=socket.create_server(("localhost",8124));s.accept()';
    await shell(`python3 -c '${serve}'`, { background: true });
    await eventually(async () => expect(textOf(await call('shell_output', { id: 'job-1' }))).toMatch('8124'));
    const told = await shell('true');
    expect(textOf(told)).toMatch(
      /^In the background: job-1 runs "python3 -c .*", reach it at localhost:8124; shell_kill ends it$/m,
    );
    expect((told.structuredContent as { messageForModel: string }).messageForModel).toMatch('job-1 runs');
    expect(textOf(await shell('true'))).not.toMatch('In the background');
    await call('shell_kill', { id: 'job-1' });
    expect(textOf(await shell('true'))).toMatch('In the background: nothing runs any more.');
    expect(textOf(await shell('true'))).not.toMatch('In the background');
  });

  it.runIf(HOST.namespaces)('say where they listen, and other commands reach them there', async () => {
    const { shell, call } = await connect(AUTONOMOUS);
    const serve = 'import socket;s=socket.create_server(("127.0.0.1",8123));s.accept()[0].sendall(b"served")';
    await shell(`python3 -c '${serve}'`, { background: true });
    await eventually(async () => {
      const { content } = await call('shell_output', { id: 'job-1' });
      expect(JSON.stringify(content)).toMatch(
        /running; process \d+ listens at 127\.0\.0\.1:8123, which other commands reach at localhost:8123 /,
      );
    });
    const reach = 'import socket;print(socket.create_connection(("localhost",8123)).recv(9).decode())';
    expect((await shell(`python3 -c '${reach}'`)).structuredContent).toMatchObject({ stdout: 'served\n' });
    await call('shell_kill', { id: 'job-1' });
  });

  it.runIf(HOST.namespaces)('are listed, and reached from outside where a port is published', async () => {
    const { shell, call, log, client } = await connect([...AUTONOMOUS, '--publish', '0:8125']);
    expect(textOf(await call('shell_output', {}))).toBe('No command was started in the background.');
    const serve = 'import socket;s=socket.create_server(("127.0.0.1",8125));s.accept()[0].sendall(b"served")';
    await shell(`python3 -c '${serve}; input()'`, { background: true });
    await shell('sleep 600', { background: true });
    const reach = /^localhost:8125 \(outside 127\.0\.0\.1:(\d+)\)$/;
    let port = 0;
    await eventually(async () => {
      const { structuredContent } = await call('shell_output', {});
      const { jobs } = structuredContent as { jobs: { id: string; status: string; reach: string[] }[] };
      expect(jobs).toMatchObject([
        { id: 'job-1', status: 'running', reach: [expect.stringMatching(reach)] },
        { id: 'job-2', status: 'running', command: 'sleep 600', reach: [] },
      ]);
      port = Number(reach.exec(jobs[0]?.reach[0] ?? '')?.[1]);
    });
    const socket = netConnect(port, '127.0.0.1');
    const [bytes] = await once(socket, 'data');
    expect(String(bytes)).toBe('served');
    socket.destroy();
    await call('shell_kill', { id: 'job-1' });
    expect(textOf(await call('shell_output', {}))).toMatch(
      /^job-1: .*; (?!running)[^\n]*\njob-2: "sleep 600"; running$/,
    );
    await client.close();
    await eventually(() => expect(log()).toContain('ended with its client: job-2, "sleep 600"'));
    expect(log()).not.toContain('job-1');
  });

  it('share temporary files with the other commands of their client, and with those of no other', async () => {
    const { shell } = await connect(AUTONOMOUS);
    const other = await connect(AUTONOMOUS);
    // Without namespaces /tmp and /dev/shm are those of the host, and nobody's own.
    const shared = (HOST.namespaces ? ['/tmp', '/dev/shm'] : ['"$TMPDIR"']).map(
      (path) => `${path}/of-session`,
    );
    const hold = `${shared.map((path) => `echo mine > ${path}`).join('; ')}; sleep 600`;
    await shell(hold, { background: true });
    const look = `cat ${shared.join(' ')}`;
    await eventually(async () =>
      expect((await shell(look)).structuredContent).toMatchObject({
        stdout: shared.map(() => 'mine\n').join(''),
      }),
    );
    expect((await other.shell(look)).structuredContent).toMatchObject({ stdout: '' });
  });

  it('live from call to call, are read piece by piece, and end by themselves', async () => {
    const { shell, call } = await connect(AUTONOMOUS);
    const started = await shell(
      'echo first; echo second >&2; until [ -e go ]; do sleep 0.05; done; echo last; exit 3',
      {
        background: true,
      },
    );
    expect(started.structuredContent).toMatchObject({ status: 'running', job: 'job-1' });
    let seen = '';
    await eventually(async () => {
      const part = await call('shell_output', { id: 'job-1' });
      seen += part.structuredContent?.output;
      expect(seen).toBe('first\nsecond\n');
      expect(part.structuredContent).toMatchObject({ status: 'running', exitCode: null });
    });
    writeFileSync(join(place.workspace, 'go'), '');
    await eventually(async () => {
      const part = await call('shell_output', { id: 'job-1', since: 13 });
      expect(part.structuredContent).toMatchObject({
        status: 'exited',
        exitCode: 3,
        output: 'last\n',
        next: 18,
      });
    });
    expect((await call('shell_output', { id: 'job-1', since: 0 })).structuredContent).toMatchObject({
      output: 'first\nsecond\nlast\n',
      more: false,
    });
    expect((await call('shell_kill', { id: 'job-1' })).structuredContent).toMatchObject({ status: 'exited' });
  });

  it('end with everything that they started', async () => {
    const { shell, call } = await connect(AUTONOMOUS);
    const mark = markedSeconds();
    await shell(
      `trap '' TERM; setsid sleep ${mark} & (setsid sleep ${mark} &) ; sleep ${mark}; sleep ${mark}`,
      {
        background: true,
      },
    );
    await running(mark);
    const ended = await call('shell_kill', { id: 'job-1' });
    expect(ended.structuredContent).toMatchObject({ id: 'job-1' });
    expect(ended.structuredContent?.status).not.toBe('running');
    await gone(mark);
  });

  it('get signals', async () => {
    const { shell, call } = await connect(AUTONOMOUS);
    await shell("trap 'echo got it' INT; echo ready; while :; do sleep 0.05; done", { background: true });
    const wait = (text: string) =>
      eventually(async () => {
        const part = await call('shell_output', { id: 'job-1', since: 0 });
        expect(part.structuredContent?.output).toContain(text);
      });
    await wait('ready');
    expect((await call('shell_kill', { id: 'job-1', signal: 'SIGINT' })).structuredContent?.status).toBe(
      'running',
    );
    await wait('got it');
    await call('shell_kill', { id: 'job-1', signal: 'SIGKILL' });
    await eventually(async () => {
      const part = await call('shell_output', { id: 'job-1' });
      expect(part.structuredContent).toMatchObject({ status: 'signaled', signal: 'SIGKILL' });
    });
  });

  it('keep the end of a huge output, and say what is missing', async () => {
    const { shell, call } = await connect(AUTONOMOUS);
    await shell('yes 0123456789 | head -c 5000000; echo; echo the end', { background: true });
    await eventually(async () => {
      const part = await call('shell_output', { id: 'job-1', since: 4_999_900 });
      expect(part.structuredContent?.output).toMatch(/the end\n$/);
    });
    const part = await call('shell_output', { id: 'job-1', since: 0 });
    expect(String(part.structuredContent?.output).length).toBe(30_000);
    expect(part.structuredContent).toMatchObject({ more: true });
    expect(Number(part.structuredContent?.leftOut)).toBeGreaterThan(4_000_000);
  });

  it('are limited in number and in time', async () => {
    const { shell, call } = await connect(AUTONOMOUS);
    const mark = markedSeconds();
    const all = await Promise.all(
      [...Array(20)].map(() => shell(`sleep ${mark}`, { background: true, timeout: 3600 })),
    );
    expect(all.filter(({ isError }) => isError !== true)).toHaveLength(16);
    expect(textOf(all.find(({ isError }) => isError) ?? all[0] ?? { content: [] })).toContain('16 commands');
    await call('shell_kill', { id: 'job-16' });
    // There is room again.
    expect((await shell('true', { background: true })).isError).toBeUndefined();
    const brief = await connect([...AUTONOMOUS, '--background-timeout', '0.3']);
    const late = markedSeconds();
    await brief.shell(`sleep ${late}`, { background: true, timeout: 3600 });
    await eventually(async () => {
      const { structuredContent } = await brief.call('shell_output', { id: 'job-1' });
      expect(structuredContent?.status).toBe('timed-out');
    });
    await gone(late);
  });

  it('are refused as others are, and unknown ones are not found', async () => {
    const { shell, call } = await connect();
    const refused = await shell('sudo sleep 1', { background: true });
    expect(refused.isError).toBe(true);
    expect(refused.structuredContent).toMatchObject({ status: 'denied', job: null });
    const unknown = await call('shell_output', { id: 'job-1\u001b[31m' });
    expect(unknown.isError).toBe(true);
    expect(textOf(unknown)).toBe('no background command "job-1\\\\u{1b}[31m"; there is none');
  });
});

describe('long calls of sandbox-run mcp', () => {
  it('tell their progress to who asked for it, without escape sequences', async () => {
    const { call } = await connect(AUTONOMOUS);
    const begun = performance.now();
    const told: { progress: number; message?: string | undefined }[] = [];
    const { words, letGo } = makeHold(place.workspace);
    const called = call(
      'shell',
      { command: `printf 'one\\n\\033[31mtwo\\033[0m\\n'; ${words}` },
      { onprogress: (progress) => told.push(progress) },
    );
    await eventually(() => expect(told.length).toBeGreaterThanOrEqual(2));
    letGo();
    await called;
    expect(told.length).toBeLessThanOrEqual((performance.now() - begun) / 1000);
    expect(told.map(({ progress }) => progress)).toEqual(
      [...new Set(told.map(({ progress }) => progress))].sort((a, b) => a - b),
    );
    expect(told.at(-1)?.message).toMatch(/^\d+ s: two$/);
  });

  it('end with their whole tree when the client cancels them', async () => {
    const { call, shell } = await connect(AUTONOMOUS);
    const mark = markedSeconds();
    const over = new AbortController();
    const canceled = call(
      'shell',
      { command: `setsid sleep ${mark} & sleep ${mark}` },
      { signal: over.signal },
    ).then(
      () => 'answered',
      () => 'canceled',
    );
    await running(mark);
    over.abort();
    expect(await canceled).toBe('canceled');
    await gone(mark);
    // A job is no call any more, and the server goes on.
    expect((await shell('echo on')).structuredContent).toMatchObject({ stdout: 'on\n' });
  });
});

describe('approvals of sandbox-run mcp', () => {
  const asks = 'touch approved-by-user';
  const made = () => existsSync(join(place.workspace, 'approved-by-user'));
  const remove = (shell: (command: string) => Promise<unknown>) => shell('rm -f approved-by-user');

  it('are asked for through the client, with everything that there is to see', async () => {
    const messages: string[] = [];
    const { shell } = await connect(SUPERVISED, {
      onElicit: ({ params }) => {
        messages.push(params.message);
        return { action: 'accept', content: { approve: true } };
      },
    });
    const result = await shell(`${asks}\necho '  In: /'`);
    expect(result.structuredContent).toMatchObject({ status: 'exited', exitCode: 0 });
    expect(made()).toBe(true);
    const [message = ''] = messages;
    expect(message).toMatch(new RegExp(`^\\| ${asks}\\n\\| echo '  In: /'\\n {2}touch`));
    for (const said of ['\n  Written: approved-by-user\n', `\n  In: ${place.workspace}\n`])
      expect(message).toContain(said);
    expect(message.split('\n').length).toBeLessThanOrEqual(6);
    // Once: the next one is asked again.
    await shell(asks);
    expect(messages).toHaveLength(2);
    await remove(shell);
  });

  it('are asked for a loss with the default level, too', async () => {
    const messages: string[] = [];
    let approve = false;
    const policy = join(makeAskingConfiguration(place.root), 'sandbox-run/policy.toml');
    const { shell } = await connect(['--policy', policy], {
      onElicit: ({ params }) => {
        messages.push(params.message);
        return { action: 'accept', content: { approve } };
      },
    });
    // What the sandbox holds is no question (control).
    expect((await shell(asks)).structuredContent).toMatchObject({ status: 'exited', exitCode: 0 });
    expect(messages).toEqual([]);
    // Somebody else worked on it since: what a command alone made is no loss.
    writeFileSync(join(place.workspace, 'approved-by-user'), 'of the user');
    for (approve of [false, true]) {
      const result = await shell('rm approved-by-user');
      expect(result.structuredContent).toMatchObject({ status: approve ? 'exited' : 'denied' });
      expect(made()).toBe(!approve);
      expect(messages.pop()).toContain(
        'rm would delete approved-by-user, which version control cannot restore',
      );
    }
    expect(messages).toEqual([]);
  });

  it('take anything but an accepted yes for a no', async () => {
    const answers: ElicitResult[] = [
      { action: 'decline' },
      { action: 'cancel' },
      { action: 'accept', content: { approve: false } },
      { action: 'accept' },
      { action: 'accept', content: {} },
      { action: 'accept', content: { approve: 'true' } },
      { action: 'accept', content: { approved: true } },
      { action: 'decline', content: { approve: true } },
      { action: 'cancel', content: { approve: true } },
    ];
    let answer = answers[0];
    const { shell } = await connect(SUPERVISED, { onElicit: () => answer ?? { action: 'decline' } });
    for (answer of answers) {
      const result = await shell(asks);
      expect(result.isError).toBe(true);
      expect(result.structuredContent).toMatchObject({ status: 'denied' });
      // A question that was dismissed was answered by nobody, and that is what the model is told.
      if (answer.action === 'cancel') expect(textOf(result)).toContain('nobody has given it');
      if (answer.action === 'decline') expect(textOf(result)).toContain('the user was asked and refused');
      expect(textOf(result)).toMatch(/^Not run: .*\nRule: \w+\.\w+ \(command\./);
      expect(made()).toBe(false);
    }
  });

  it('take an error of the client for a no', async () => {
    const { shell } = await connect(SUPERVISED, {
      onElicit: () => {
        throw new Error('no window');
      },
    });
    const result = await shell(asks);
    expect(result.structuredContent).toMatchObject({
      status: 'denied',
      error: { code: 'command.needs_approval' },
    });
    expect(made()).toBe(false);
  });

  it('expire when nobody answers', async () => {
    const policy = join(place.root, 'short.toml');
    writeFileSync(policy, '[approval]\ntimeout_seconds = 1\n', { mode: 0o600 });
    let withdrawn = false;
    const { shell } = await connect([...SUPERVISED, '--policy', policy], {
      onElicit: (_, { signal }) =>
        new Promise((answer) => {
          signal.addEventListener('abort', () => {
            withdrawn = true;
            // Too late.
            answer({ action: 'accept', content: { approve: true } });
          });
        }),
    });
    const result = await shell(asks);
    expect(result.structuredContent).toMatchObject({
      status: 'denied',
      error: {
        code: 'command.needs_approval',
        message: expect.stringContaining('there was no answer in time'),
      },
    });
    await eventually(() => expect(withdrawn).toBe(true));
    // What would have been made is not by the time that another one has run to its end.
    await shell('true');
    expect(made()).toBe(false);
  });

  it('are not asked for what is too long to be shown', async () => {
    let asked = 0;
    const { shell } = await connect(SUPERVISED, {
      onElicit: () => {
        asked += 1;
        return { action: 'accept', content: { approve: true } };
      },
    });
    const result = await shell(`touch approved-by-user${' x'.repeat(10_000)}`);
    expect(result.structuredContent).toMatchObject({ status: 'denied' });
    expect(asked).toBe(0);
    expect(made()).toBe(false);
  });

  it('are nobody’s where the client cannot ask, the operator wants no elicitation, or nobody is to be asked', async () => {
    const yes = () => ({ action: 'accept' as const, content: { approve: true } });
    for (const [args, options] of [
      [[], {}],
      [['--no-elicitation'], { onElicit: yes }],
      [['--ask', 'nobody'], { onElicit: yes }],
      [[], { capabilities: { elicitation: { url: {} } } }],
    ] as const) {
      const { shell } = await connect([...SUPERVISED, ...args], options);
      const result = await shell(asks);
      expect(result.structuredContent).toMatchObject({
        status: 'denied',
        error: { code: 'command.needs_approval' },
      });
      expect(made()).toBe(false);
    }
  });

  it('wait in the queue where the policy says so and the client cannot ask', async () => {
    const { shell } = await connect([...SUPERVISED, '--ask', 'queue']);
    const answer = shell(asks);
    const env = { ...place.env };
    const here = { ...place, tmp: join(place.root, 'tmp') };
    let id = '';
    await eventually(async () => {
      const { stdout } = await cli(here, ['approvals', 'list', '--json'], { env });
      id = /"id":\s*"([^"]+)"/.exec(stdout)?.[1] ?? '';
      expect(id).not.toBe('');
    });
    await cli(here, ['approvals', 'approve', id], { env });
    expect((await answer).structuredContent).toMatchObject({ status: 'exited', exitCode: 0 });
    await eventually(() => expect(made()).toBe(true));
  });

  it('end with the call that waits for them', async () => {
    let asked = false;
    const { call, shell } = await connect(SUPERVISED, {
      onElicit: (_, { signal }) => {
        asked = true;
        return new Promise((answer) => {
          signal.addEventListener('abort', () => answer({ action: 'accept', content: { approve: true } }));
        });
      },
    });
    const over = new AbortController();
    const waiting = call('shell', { command: 'touch after-cancel' }, { signal: over.signal }).catch(
      () => 'canceled',
    );
    await eventually(() => expect(asked).toBe(true));
    over.abort();
    expect(await waiting).toBe('canceled');
    expect((await shell('echo on')).structuredContent).toMatchObject({ stdout: 'on\n' });
    expect(existsSync(join(place.workspace, 'after-cancel'))).toBe(false);
  });
});

describe('the command sandbox-run mcp', () => {
  const here = { ...place, tmp: join(place.root, 'tmp') };

  it('says in one line why it cannot start', async () => {
    for (const args of [['--workspace', '/nowhere'], ['extra'], ['--approved'], ['--profile', 'none']]) {
      const { exitCode, stdout, stderr } = await cli(here, ['mcp', ...args]);
      expect(exitCode).toBe(125);
      expect(stdout).toBe('');
      expectOneLine(stderr);
    }
  });

  it('has help', async () => {
    const { exitCode, stdout } = await cli(here, ['mcp', '--help']);
    expect(exitCode).toBe(0);
    for (const said of ['--workspace', '--background-timeout', 'elicitation', 'mcpServers', 'Exit status'])
      expect(stdout).toContain(said);
  });

  it('serves the client in examples/', async () => {
    const example = fileURLToPath(new URL('../../examples/mcp-client.mjs', import.meta.url));
    // The client hands on HOME, and no other place of settings.
    makeConfiguration(join(place.env.HOME ?? '', '.config'), ASKS_ABOUT_LOSSES);
    const run = (...args: string[]) =>
      execa(process.execPath, [example, ...args], {
        env: { ...place.env, SANDBOX_RUN: CLI },
        extendEnv: false,
        stdin: 'ignore',
      });
    const { stdout } = await run();
    expect(stdout).toContain('tools: shell, shell_output, shell_kill, policy_explain');
    expect(stdout).toContain('exit code: 0\nstdout: hello\nLinux\n');
    expect(stdout).toContain('policy: deny\n');
    // It asks, and without a terminal nobody says yes.
    const refused = await run('find . -delete');
    expect(refused.stdout).toContain('| find . -delete\n');
    expect(refused.stdout).toContain('command.denied');
    expect(readFileSync(example, 'utf8').split('\n').length).toBeLessThan(60);
  });

  it('bundles the SDK without what serves HTTP', () => {
    const bundle = readFileSync(new URL('../../dist/part-commands.cjs', import.meta.url), 'utf8');
    // A string may go on in the next line, after a backslash.
    const required = [...bundle.replaceAll('\\\n', '').matchAll(/require\("([^"]+)"\)/g)].map(
      ([, name]) => name ?? '',
    );
    const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
    const { dependencies, peerDependencies } = JSON.parse(manifest);
    const known = Object.keys({ ...dependencies, ...peerDependencies });
    const isKnown = (name: string) =>
      // The second: in code that ajv would write to files.
      isBuiltin(name) ||
      name.startsWith('.') ||
      /^ajv(-formats)?\/dist\//.test(name) ||
      known.some((library) => name === library || name.startsWith(`${library}/`));
    expect(required).toContain('@nats-io/kv');
    expect(required.filter((name) => !isKnown(name))).toEqual([]);
    expect(bundle).not.toMatch(/\bexpress\b|\bhono\b/);
  });
});
