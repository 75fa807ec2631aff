import { rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { deferred } from '../../src/base/deferred.ts';
import {
  type AuditRecord,
  type BackgroundJob,
  createSandbox,
  type ListeningSocket,
  type Sandbox,
} from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { processesWith } from '../support/leftovers.ts';
import { HOST, OLDEST_TIERS, TIERS, type Tier } from '../support/tiers.ts';
import { untilTimeOut } from '../support/time-out.ts';

const arena = makeArena();
let count = 0;
/** An argument that no other process has. */
const mark = () => `${500_000 + (process.pid % 10_000) * 10 + count++}.5`;
/** A port that nobody else is likely to have. */
const somePort = () => 20_000 + ((process.pid * 7 + count++ * 13) % 10_000);
const background = true;

const sandboxes = new Map<Tier, Promise<Sandbox>>();
function sandboxOn(tier: Tier): Promise<Sandbox> {
  const known = sandboxes.get(tier) ?? arena.sandbox(tier);
  sandboxes.set(tier, known);
  return known;
}

async function untilItListens(job: BackgroundJob): Promise<readonly ListeningSocket[]> {
  let ports: readonly ListeningSocket[] = [];
  await eventually(async () => {
    ports = await job.ports();
    expect([ports, job.output()]).not.toEqual([[], job.output()]);
  });
  return ports;
}

describe.each([...TIERS, ...OLDEST_TIERS])('a job, $name', (tier) => {
  it('gives its output so far, and all of it at the end', async () => {
    const sandbox = await sandboxOn(tier);
    const { words, letGo } = makeHold(arena.workspace);
    const command = `echo one; echo two >&2; ${words}; echo three; exit 3`;
    const job = await sandbox.run(command, { background });
    await eventually(() => expect(job.output()).toMatchObject({ stdout: 'one\n', stderr: 'two\n' }));
    expect(job.result).toBeUndefined();
    expect(job.exited).toBeUndefined();
    letGo();
    const result = await job.wait();
    expect(result).toMatchObject({ status: 'exited', exitCode: 3, stdout: 'one\nthree\n', stderr: 'two\n' });
    expect(job.result).toBe(result);
    expect(job.exited).toMatchObject({ exitCode: 3, signal: undefined });
    expect(job.output()).toMatchObject({ stdout: 'one\nthree\n', outputBytes: { stdout: 10, stderr: 4 } });
    expect(job.kill()).toBe(false);
    expect(await job.ports()).toEqual([]);
  });

  it('still has its output while its result waits for the audit trail', async () => {
    const written = deferred<void>();
    await using sandbox = await createSandbox({
      workspace: arena.workspace,
      policyFiles: false,
      gate: { audit: { append: ({ type }) => (type === 'result' ? written.promise : Promise.resolve()) } },
    });
    const job = await sandbox.run('echo kept; echo too >&2', { background });
    await job.waitForExit();
    await eventually(() => expect(job.output()).toMatchObject({ stdout: 'kept\n', stderr: 'too\n' }));
    for (let questions = 0; questions < 20; questions += 1) await job.ports();
    expect(job.result).toBeUndefined();
    expect(job.output()).toMatchObject({ stdout: 'kept\n', stderr: 'too\n' });
    written.resolve();
    expect(await job.wait()).toMatchObject({ status: 'exited', stdout: 'kept\n' });
  });

  it('goes on with what the command leaves behind, until that has ended', async () => {
    const sandbox = await sandboxOn(tier);
    const { words, letGo } = makeHold(arena.workspace);
    const job = await sandbox.run(`(${words}; echo later) & echo now`, { background });
    const began = performance.now();
    expect(await job.waitForExit()).toMatchObject({ exitCode: 0, signal: undefined });
    expect(job.result).toBeUndefined();
    await eventually(() => expect(job.output().stdout).toBe('now\n'));
    // It takes some time from then on, and all of that counts.
    await sandbox.run('true');
    const held = performance.now() - began;
    letGo();
    const result = await job.wait();
    expect(result).toMatchObject({ status: 'exited', exitCode: 0, stdout: 'now\nlater\n' });
    expect(result.durationMs).toBeGreaterThanOrEqual(Math.floor(held));
  });

  it.each(['SIGTERM', 'SIGKILL'] as const)('%s ends what the command left behind', async (signal) => {
    const sandbox = await sandboxOn(tier);
    const left = mark();
    const job = await sandbox.run(`sleep ${left} & setsid sleep ${left} & echo on`, { background });
    await job.waitForExit();
    await eventually(() => expect(processesWith(`sleep\0${left}`)).toHaveLength(2));
    expect(job.kill('SIGUSR1')).toBe(false);
    expect(job.kill(signal)).toBe(true);
    await job.wait();
    await eventually(() => expect(processesWith(`sleep\0${left}`)).toEqual([]));
  });

  it('end() ends the command and everything else', async () => {
    const sandbox = await sandboxOn(tier);
    const left = mark();
    const job = await sandbox.run(`sleep ${left} & sleep ${left}`, { background });
    await eventually(() => expect(processesWith(`sleep\0${left}`)).toHaveLength(2));
    expect(await job.end()).toMatchObject({ status: 'canceled' });
    await eventually(() => expect(processesWith(`sleep\0${left}`)).toEqual([]));
  });

  it('end() leaves a command that had ended by itself what it was', async () => {
    const sandbox = await sandboxOn(tier);
    const left = mark();
    for (const end of ['end', 'kill'] as const) {
      const job = await sandbox.run(`sleep ${left} & exit 3`, { background });
      await job.waitForExit();
      job[end]();
      expect(await job.wait()).toMatchObject({ status: 'exited', exitCode: 3, error: undefined });
    }
    await eventually(() => expect(processesWith(`sleep\0${left}`)).toEqual([]));
  });

  it('a signal reaches the command', async () => {
    const sandbox = await sandboxOn(tier);
    const job = await sandbox.run(
      'trap "echo heard; exit 5" USR1; echo ready; while :; do sleep 0.02; done',
      {
        background,
      },
    );
    await eventually(() => expect(job.output().stdout).toBe('ready\n'));
    expect(job.kill('SIGUSR1')).toBe(true);
    expect(await job.wait()).toMatchObject({ exitCode: 5, stdout: 'ready\nheard\n' });
  });

  it('a time-out ends it, also after the command', async () => {
    const sandbox = await sandboxOn(tier);
    const left = mark();
    const job = await untilTimeOut(
      500,
      async (timeout) => {
        const one = await sandbox.run(`sleep ${left} & echo on`, { background, timeout });
        expect(await one.wait()).toMatchObject({ status: 'timed-out' });
        return one;
      },
      ({ exited }) => exited?.exitCode === 0,
    );
    expect(job.exited).toMatchObject({ exitCode: 0 });
    await eventually(() => expect(processesWith(`sleep\0${left}`)).toEqual([]));
  });

  it('ends with the sandbox', async () => {
    const sandbox = await arena.sandbox(tier);
    const left = mark();
    const jobs = await Promise.all([
      sandbox.run(`sleep ${left}`, { background }),
      sandbox.run(`setsid sleep ${left} & echo on`, { background }),
    ]);
    await jobs[1].waitForExit();
    await eventually(() => expect(processesWith(`sleep\0${left}`)).toHaveLength(2));
    await sandbox.close();
    // SIGKILL was sent by then; the kernel takes its time on a busy host.
    await eventually(() => expect(processesWith(`sleep\0${left}`)).toEqual([]), 1_000);
    for (const job of jobs) expect(await job.wait()).toMatchObject({ status: 'canceled' });
  });

  it('keeps head and tail of much output', async () => {
    const sandbox = await sandboxOn(tier);
    const { words, letGo } = makeHold(arena.workspace);
    const job = await sandbox.run(`seq 100000; ${words}`, { background, maxOutput: 100 });
    await eventually(() => expect(job.output().outputBytes.stdout).toBe(588_895));
    const { stdout, truncated } = job.output();
    letGo();
    expect(stdout).toMatch(/^1\n2\n/);
    expect(stdout).toMatch(/100000\n$/);
    expect(truncated.stdout).toBeGreaterThan(588_000);
    expect((await job.wait()).stdout).toBe(stdout);
  });

  it('onOutput gets what comes', async () => {
    const sandbox = await sandboxOn(tier);
    let got = '';
    const job = await sandbox.run('echo a; sleep 0.1; echo b', {
      background,
      onOutput: ({ bytes }) => {
        got += Buffer.from(bytes).toString();
      },
    });
    await job.wait();
    expect(got).toBe('a\nb\n');
  });

  it('may be on a terminal', async () => {
    const sandbox = await sandboxOn(tier);
    const { words, letGo } = makeHold(arena.workspace);
    const job = await sandbox.run(`stty size; ${words}`, { background, pty: { cols: 70, rows: 20 } });
    await eventually(() => expect(job.output().stdout).toBe('20 70\r\n'));
    letGo();
    await job.wait();
  });
});

describe('a job with servers', () => {
  it.runIf(HOST.namespaces)(
    'goes on, and is reached, when the next command gets a confinement that hides a new file',
    async () => {
      await using sandbox = await createSandbox({
        workspace: arena.workspace,
        hide: ['*.hidden-from-commands'],
      });
      const port = somePort();
      const script = `import socket;s=socket.create_server(("127.0.0.1",${port}));s.accept()[0].sendall(b"served")`;
      const job = await sandbox.run(['python3', '-c', script], { background });
      await untilItListens(job);
      writeFileSync(join(arena.workspace, 'new.hidden-from-commands'), '');
      const client = `import socket;print(socket.create_connection(("localhost",${port})).recv(9).decode())`;
      expect(await sandbox.run(['python3', '-c', client])).toMatchObject({ exitCode: 0, stdout: 'served\n' });
      await job.end();
    },
  );
});

describe('a question about a job', () => {
  it('is answered also if it comes before the command runs', async () => {
    const sandbox = await sandboxOn(TIERS[0] as Tier);
    const jobs = Array.from({ length: 20 }, () => sandbox.start('sleep 100', { background }));
    expect(await Promise.all(jobs.map((job) => job.ports()))).toEqual(jobs.map(() => []));
    await Promise.all(jobs.map((job) => job.end()));
  });
});

describe('the audit trail of a job', () => {
  it('has its decision before it starts and its result when all of it has ended', async () => {
    const records: AuditRecord[] = [];
    await using sandbox = await createSandbox({
      workspace: arena.workspace,
      policyFiles: false,
      gate: { audit: { append: async (record) => void records.push(record) } },
    });
    const { words, letGo } = makeHold(arena.workspace);
    const job = await sandbox.run(`(${words}; echo later) & echo now`, { background });
    expect(records.map(({ type }) => type)).toEqual(['decision']);
    await job.waitForExit();
    expect(records).toHaveLength(1);
    letGo();
    await job.wait();
    expect(records.map(({ type }) => type)).toEqual(['decision', 'result']);
    expect(records[1]).toMatchObject({ status: 'exited', exitCode: 0 });
  });
});

describe('what does not run in the background', () => {
  it('is refused as ever', async () => {
    await using sandbox = await createSandbox({
      workspace: arena.workspace,
      policyFiles: false,
      policy: { unsafe: { unjudged_commands: false } },
    });
    const job = await sandbox.run('touch /etc/shadow', { background });
    expect(await job.launched).toBe(false);
    expect(job.result).toMatchObject({ status: 'denied' });
    expect(job.exited).toBeUndefined();
    expect(await job.waitForExit()).toBeUndefined();
    expect(job.output()).toMatchObject({ stdout: '', stderr: '' });
    expect(job.kill()).toBe(false);
  });

  it('a program that is not there', async () => {
    const sandbox = await sandboxOn(TIERS[0] as Tier);
    const job = sandbox.start(['no-such-program'], { background });
    expect(await job.launched).toBe(false);
    expect(await job.wait()).toMatchObject({ status: 'setup-failed', error: { code: 'program.not_found' } });
    expect(await job.ports()).toEqual([]);
  });

  it("does not go with stdio: 'inherit'", async () => {
    // By the door that applications use: it is what looks at options.
    await using sandbox = await createSandbox({ workspace: arena.workspace });
    await expect(sandbox.run('true', { background, stdio: 'inherit' })).rejects.toThrow(
      /background is for captured/,
    );
  });
});

describe.each(TIERS.filter((tier) => tier.view))('ports with the network off, $name', (tier) => {
  it('python -m http.server, on a loopback of its own', async () => {
    const sandbox = await sandboxOn(tier);
    const port = somePort();
    const job = await sandbox.run(`exec python3 -m http.server ${port}`, { background });
    const ports = await untilItListens(job);
    expect(ports).toEqual([{ protocol: 'tcp', address: '0.0.0.0', port, pid: expect.any(Number) }]);
    expect(processesWith('http.server')).toContain(ports[0]?.pid);
    // Nobody outside reaches it, another command of the sandbox does.
    await expect(get(port)).rejects.toThrow(/ECONNREFUSED/);
    const client = await sandbox.run([
      'curl',
      '-s',
      '-o',
      '/dev/null',
      '-w',
      '%{http_code}',
      `http://127.0.0.1:${port}/`,
    ]);
    expect(client.stdout).toBe('200');
    await job.end();
  });

  it('a node server on both protocols', async () => {
    const sandbox = await sandboxOn(tier);
    const port = somePort();
    const job = await sandbox.run(['node', '-e', `require('net').createServer().listen(${port})`], {
      background,
    });
    expect(await untilItListens(job)).toEqual([
      { protocol: 'tcp', address: '::', port, pid: expect.any(Number) },
    ]);
    await job.end();
  });

  it('a Unix socket in the workspace', async () => {
    const sandbox = await sandboxOn(tier);
    const path = join(arena.workspace, 'a socket');
    // Of the tier before.
    rmSync(path, { force: true });
    const job = await sandbox.run(
      ['node', '-e', `require('net').createServer().listen(${JSON.stringify(path)})`],
      {
        background,
      },
    );
    expect(await untilItListens(job)).toEqual([
      { protocol: 'unix', address: path, port: undefined, pid: expect.any(Number) },
    ]);
    await job.end();
  });

  it('a daemon that left its session and its parent', async () => {
    const sandbox = await sandboxOn(tier);
    const port = somePort();
    writeFileSync(
      join(arena.workspace, 'daemon.py'),
      `import os, socket, sys, time
if os.fork(): sys.exit(0)
os.setsid()
if os.fork(): os._exit(0)
one = socket.create_server(('127.0.0.1', ${port}))
two = socket.create_server(('::1', ${port + 1}), family=socket.AF_INET6)
if os.fork(): time.sleep(100)
time.sleep(100)
`,
    );
    const job = await sandbox.run('python3 daemon.py', { background });
    expect(await job.waitForExit()).toMatchObject({ exitCode: 0 });
    await eventually(async () =>
      // What it said, too: whether it could not listen, or was not found.
      expect({ ports: await job.ports(), stderr: job.output().stderr }).toEqual({
        ports: [
          { protocol: 'tcp', address: '127.0.0.1', port, pid: expect.any(Number) },
          { protocol: 'tcp', address: '::1', port: port + 1, pid: expect.any(Number) },
        ],
        stderr: '',
      }),
    );
    expect(job.kill()).toBe(true);
    await job.wait();
    await eventually(() => expect(processesWith('daemon.py')).toEqual([]));
  });
});

describe('ports with the network off, where there are no sockets', () => {
  it.each([...TIERS, ...OLDEST_TIERS].filter((tier) => !tier.view))('there are none: $name', async (tier) => {
    const sandbox = await sandboxOn(tier);
    const job = await sandbox.run('python3 -m http.server; sleep 100', { background });
    await eventually(() => expect(job.output().stderr).toMatch(/Error/));
    expect(await job.ports()).toEqual([]);
    await job.end();
  });
});

describe.each([...TIERS, ...OLDEST_TIERS])('ports with the network open, $name', (tier) => {
  it('a server that others reach', async () => {
    const sandbox = await arena.sandbox(tier, { profile: 'networked' });
    const [port, other] = [somePort(), somePort()];
    const jobs = await Promise.all([
      sandbox.run(`exec python3 -m http.server --bind 127.0.0.1 ${port}`, { background }),
      sandbox.run(
        ['node', '-e', `require('http').createServer((_, answer) => answer.end('node')).listen(${other})`],
        {
          background,
        },
      ),
    ]);
    expect(await untilItListens(jobs[0])).toEqual([
      { protocol: 'tcp', address: '127.0.0.1', port, pid: expect.any(Number) },
    ]);
    expect(await untilItListens(jobs[1])).toEqual([
      { protocol: 'tcp', address: '::', port: other, pid: expect.any(Number) },
    ]);
    expect(await get(port)).toBe(200);
    expect(await get(other)).toBe(200);
    await sandbox.close();
    await expect(get(port)).rejects.toThrow(/ECONNREFUSED/);
  });
});

function get(port: number): Promise<number | undefined> {
  return new Promise((done, fail) => {
    request({ host: '127.0.0.1', port, agent: false }, (answer) => {
      answer.resume();
      done(answer.statusCode);
    })
      .on('error', fail)
      .end();
  });
}
