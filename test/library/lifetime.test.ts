import { existsSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { createSandbox, SandboxError } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { expectNothingLeft, leftIn, processesWith } from '../support/leftovers.ts';
import { HOST } from '../support/tiers.ts';
import { LIBRARY, makePlace } from './support.ts';

const place = makePlace();
afterEach(() => expectNothingLeft(place));
afterAll(() => place.dispose());

describe('several sandboxes in one process', () => {
  it('hold each to its own policy, at the same time', async () => {
    await using writer = await createSandbox({ workspace: place.workspace, env: { WHO: 'writer' } });
    await using reader = await createSandbox({
      workspace: place.workspace,
      profile: 'read-only',
      env: { WHO: 'reader' },
    });
    await using elsewhere = await createSandbox({ workspace: place.other, env: { WHO: 'elsewhere' } });
    const script = `echo $WHO; touch ${place.workspace}/by-$WHO; touch ${place.other}/by-$WHO; exit 0`;
    const sandboxes = [writer, reader, elsewhere];
    const results = await Promise.all(
      Array.from({ length: 24 }, (_, index) => sandboxes[index % 3]?.run(script)),
    );
    results.forEach((result, index) => {
      expect(result?.stdout).toBe(`${['writer', 'reader', 'elsewhere'][index % 3]}\n`);
    });
    expect(readdirSync(place.workspace)).toEqual(['by-writer']);
    expect(readdirSync(place.other)).toEqual(['by-elsewhere']);
  });
});

/** What this process watches directories with: a user has 128 of them for all programs. */
const watching = () =>
  readdirSync('/proc/self/fd').filter((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`) === 'anon_inode:inotify';
    } catch {
      return false;
    }
  }).length;

describe('what watches the workspaces', () => {
  it('is not had by each of many sandboxes, and given back by close', async () => {
    const before = watching();
    const many = await Promise.all(
      Array.from({ length: 40 }, () => createSandbox({ workspace: place.workspace })),
    );
    for (const sandbox of many) await sandbox.run(['true']);
    expect(watching()).toBeGreaterThan(before);
    expect(watching()).toBeLessThanOrEqual(before + 32);
    // One that has none sees the same.
    const { leftBehind } =
      (await many.at(-1)?.run('git init -q made && echo x > made/.git/hooks/pre-commit')) ?? {};
    expect(leftBehind?.map(({ path }) => path)).toContain(
      join(place.workspace, 'made/.git/hooks/pre-commit'),
    );
    await Promise.all(many.map((sandbox) => sandbox.close()));
    expect(watching()).toBe(before);
    rmSync(join(place.workspace, 'made'), { recursive: true });
  });
});

describe('close', () => {
  it('ends what runs, and everything after it is refused', async () => {
    const mark = `${300_000 + process.pid}`;
    const sandbox = await createSandbox({
      workspace: place.workspace,
      policy: { limits: { kill_grace_seconds: 3600 } },
    });
    const running = sandbox.run(['sleep', mark], { timeout: 0 });
    const stubborn = sandbox.run(`trap "" TERM; sleep ${mark}; sleep ${mark}`, { timeout: 0 });
    await eventually(() => expect(processesWith(`sleep\0${mark}`)).toHaveLength(2));
    // It does not wait as long as a command has here to end after SIGTERM: that is longer than this test has.
    await sandbox.close();
    expect((await running).status).toBe('canceled');
    expect((await stubborn).status).toBe('canceled');
    expect(processesWith(mark)).toEqual([]);
    await expect(sandbox.run(['true'])).rejects.toMatchObject({ code: 'sandbox.closed' });
    expect(() => sandbox.start(['true'])).toThrow(SandboxError);
    expect(() => sandbox.spawn(['true'])).toThrow(SandboxError);
    await sandbox.close();
  });

  it.runIf(HOST.namespaces).each([
    ['a preview', { effect: 'preview' }, 'touch made; '],
    ['what can be undone', { effect: 'undoable' }, 'touch made; '],
  ] as const)('ends %s as soon as any other command', async (_, how, first) => {
    const mark = `${400_000 + process.pid}`;
    const sandbox = await createSandbox({
      workspace: place.workspace,
      policy: { limits: { kill_grace_seconds: 3600 } },
    });
    const stubborn = sandbox.run(`${first}trap "" TERM; sleep ${mark}; sleep ${mark}`, {
      timeout: 0,
      ...how,
      approved: true,
    });
    await eventually(() => expect(processesWith(`sleep\0${mark}`)).toHaveLength(1));
    await sandbox.close();
    expect((await stubborn).status).toBe('canceled');
    expect(processesWith(mark)).toEqual([]);
    rmSync(join(place.workspace, 'made'), { force: true });
  });

  it('right after a start leaves nothing', async () => {
    for (let round = 0; round < 5; round++) {
      const sandbox = await createSandbox({ workspace: place.workspace });
      const pending = [sandbox.run(['sleep', '9']), sandbox.run(['true'])];
      await sandbox.close();
      for (const result of await Promise.all(pending))
        expect(['canceled', 'exited']).toContain(result.status);
    }
  });

  it('comes by itself at the end of an `await using` block', async () => {
    const inner = async () => {
      await using sandbox = await createSandbox({ workspace: place.workspace });
      return { sandbox, pending: sandbox.run(['sleep', '9']) };
    };
    const { sandbox, pending } = await inner();
    expect((await pending).status).toBe('canceled');
    await expect(sandbox.run(['true'])).rejects.toThrow(/closed/);
  });
});

describe('200 runs', () => {
  it('leak no descriptor, no process and no directory', async () => {
    const sandbox = await createSandbox({ workspace: place.workspace });
    const batch = (command: readonly [string, ...string[]]) =>
      Promise.all(Array.from({ length: 8 }, () => sandbox.run(command, { input: 'x' })));
    // All eight at the same time: as many private directories are made as there will ever be.
    const { words, letGo } = makeHold(place.workspace);
    const eight = batch(['sh', '-c', words]);
    await eventually(() => expect(processesWith(`sh\0-c\0${words}`)).toHaveLength(8));
    letGo();
    await eight;
    const before = readdirSync('/proc/self/fd').length;
    const directories = leftIn(place.tmp).length;
    for (let round = 0; round < 25; round++) await batch(['true']);
    // A leak stays. What the test runner has open at a moment, such as a file it reads, does not.
    await eventually(() => expect(readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(before));
    expect(leftIn(place.tmp).length).toBeLessThanOrEqual(directories);
    await sandbox.close();
    await eventually(() => expect(readdirSync('/proc/self/fd').length).toBeLessThan(before));
  });

  it('of spawn, of a missing program and of a closed sandbox neither', async () => {
    const sandbox = await createSandbox({ workspace: place.workspace });
    const once = async (program: string) => {
      const child = sandbox.spawn([program]);
      child.stdin.destroy();
      child.stdout.resume();
      child.stderr.resume();
      await child.result;
    };
    for (let round = 0; round < 3; round++) await once('true');
    const before = readdirSync('/proc/self/fd').length;
    for (let round = 0; round < 20; round++) {
      await once('true');
      await once('no-such-program');
    }
    await eventually(() => expect(readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(before));
    await sandbox.close();
    const closed = readdirSync('/proc/self/fd').length;
    for (let round = 0; round < 20; round++) expect(() => sandbox.spawn(['true'])).toThrow(SandboxError);
    await eventually(() => expect(readdirSync('/proc/self/fd').length).toBeLessThanOrEqual(closed));
  });
});

describe('worker threads', () => {
  const script = join(place.root, 'worker.mjs');
  const startWorker = (body: string) => {
    writeFileSync(
      script,
      `import { parentPort } from 'node:worker_threads';
      import { createSandbox } from ${JSON.stringify(LIBRARY)};
      const sandbox = await createSandbox({ workspace: ${JSON.stringify(place.workspace)} });
      ${body}`,
    );
    return new Worker(script);
  };

  it('run commands', async () => {
    const worker = startWorker(`
      const results = await Promise.all([1, 2, 3].map((n) => sandbox.run('echo ' + n)));
      parentPort.postMessage(results.map((result) => result.stdout).join(''));
      await sandbox.close();`);
    const message = await new Promise((done, fail) => {
      worker.once('message', done);
      worker.once('error', fail);
    });
    expect(message).toBe('1\n2\n3\n');
    await worker.terminate();
  });

  it('that are terminated while a command runs leave nothing', async () => {
    const mark = `${400_000 + process.pid}`;
    const worker = startWorker(`
      const onOutput = () => parentPort.postMessage('running');
      sandbox.run('sleep ${mark} & setsid sleep ${mark} & echo on; sleep ${mark}', { onOutput });`);
    await new Promise((done, fail) => {
      worker.once('message', done);
      worker.once('error', fail);
    });
    await eventually(() => expect(processesWith(`sleep\0${mark}`)).toHaveLength(3));
    await worker.terminate();
    await eventually(() => expect(processesWith(mark)).toEqual([]));
  });

  it('that are terminated again and again while commands run do not take the process with them', async () => {
    // Node unloads an addon with the last worker that loaded it; a command's thread may still be in its code.
    for (let round = 0; round < 15; round++) {
      const worker = startWorker(`
        for (let n = 0; n < 8; n++) sandbox.run(['sleep', '0.0' + n]);
        parentPort.postMessage('running');`);
      await new Promise((done, fail) => {
        worker.once('message', done);
        worker.once('error', fail);
      });
      await worker.terminate();
    }
  });

  it('do not disturb this thread when they are terminated', async () => {
    await using sandbox = await createSandbox({ workspace: place.workspace });
    const { words, letGo } = makeHold(place.workspace);
    const mine = sandbox.run(`${words}; echo mine`);
    const worker = startWorker(`
      sandbox.run('echo on; exec sleep 9', { onOutput: () => parentPort.postMessage('running') });`);
    await new Promise((done) => worker.once('message', done));
    await worker.terminate();
    letGo();
    expect(await mine).toMatchObject({ status: 'exited', stdout: 'mine\n' });
    expect(existsSync(place.workspace)).toBe(true);
  });
});
