import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { type AuditRecord, createSandbox } from '../../src/index.ts';
import { eventually, sleep } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { processesWith } from '../support/leftovers.ts';
import { untilTimeOut } from '../support/time-out.ts';
import { makePlaceWithSandbox } from './support.ts';

const { place, sandbox } = await makePlaceWithSandbox();

async function textOf(stream: AsyncIterable<Buffer | string>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString();
}

describe('onOutput', () => {
  it('gets everything in order, and the result has it too', async () => {
    const seen: string[] = [];
    // Two pipes have no order between them, so that nothing is said before the last word was read.
    const holds = Array.from({ length: 6 }, () => makeHold(place.workspace));
    const script = holds.map(({ words }, at) => {
      const turn = Math.floor(at / 2) + 1;
      return `echo ${at % 2 === 0 ? `out ${turn}` : `err ${turn} >&2`}; ${words}`;
    });
    const result = await sandbox.run(script.join('; '), {
      onOutput: ({ stream, bytes }) => {
        holds[seen.length]?.letGo();
        seen.push(`${stream}: ${Buffer.from(bytes)}`);
      },
    });
    expect(seen.join('')).toBe([1, 2, 3].map((i) => `stdout: out ${i}\nstderr: err ${i}\n`).join(''));
    expect(result).toMatchObject({ stdout: 'out 1\nout 2\nout 3\n', stderr: 'err 1\nerr 2\nerr 3\n' });
  });

  it('arrives while the command runs', async () => {
    const { words, letGo } = makeHold(place.workspace);
    const result = await sandbox.run(`echo now; ${words}`, { timeout: 20_000, onOutput: letGo });
    expect(result).toMatchObject({ status: 'exited', exitCode: 0 });
  });

  it('gets what is beyond the limit too', async () => {
    await using own = await createSandbox({ workspace: place.workspace, maxOutput: 10 });
    let total = 0;
    const result = await own.run(['head', '-c', '3000000', '/dev/zero'], {
      onOutput: ({ bytes }) => {
        total += bytes.length;
      },
    });
    expect(total).toBe(3_000_000);
    expect(result.stdout).toBe(`${'\0'.repeat(5)}\n[... 2,999,990 bytes left out ...]\n${'\0'.repeat(5)}`);
    expect(result.truncated.stdout).toBe(2_999_990);
  });

  it('holds the command back while a consumer is slow, so that memory stays bounded', async () => {
    let received = 0;
    let atRest = 0;
    let release = () => {};
    const gate = new Promise<void>((open) => {
      release = open;
    });
    const before = process.memoryUsage();
    const pending = sandbox.run(['head', '-c', '200000000', '/dev/zero'], {
      onOutput: async ({ bytes }) => {
        received += bytes.length;
        await gate;
      },
    });
    await eventually(() => expect(received).toBeGreaterThan(0));
    // Others run to their ends meanwhile.
    for (let others = 0; others < 20; others += 1) await sandbox.run(['true']);
    atRest = received;
    const during = process.memoryUsage();
    expect(during.arrayBuffers + during.external - before.arrayBuffers - before.external).toBeLessThan(
      32_000_000,
    );
    expect(during.rss - before.rss).toBeLessThan(64_000_000);
    expect(atRest).toBeLessThan(2_000_000);
    release();
    expect(await pending).toMatchObject({ status: 'exited', exitCode: 0 });
    expect(received).toBe(200_000_000);
  });

  it('that throws or rejects fails the run with its error', async () => {
    for (const onOutput of [
      () => {
        throw new Error('consumer failed');
      },
      async () => Promise.reject(new Error('consumer failed')),
    ]) {
      await expect(sandbox.run('echo a; sleep 0.05; echo b', { onOutput })).rejects.toThrow(
        'consumer failed',
      );
    }
    expect((await sandbox.run(['true'])).status).toBe('exited');
  });

  it('that never settles does not hold the result of a command that was ended, nor close()', async () => {
    const never = () => new Promise<void>(() => {});
    let known = 0;
    const audit = { append: async ({ type }: AuditRecord) => void (type === 'result' && known++) };
    await using own = await createSandbox({ workspace: place.workspace, gate: { audit } });
    const late = await untilTimeOut(
      300,
      (timeout) => own.run('seq 1 1000000', { timeout, onOutput: never }),
      ({ warnings }) => warnings.length > 0,
    );
    expect(late).toMatchObject({ status: 'timed-out', warnings: [expect.stringContaining('onOutput')] });
    const canceled = own.start('seq 1 1000000', {
      onOutput: () => {
        canceled.cancel();
        return never();
      },
    });
    expect((await canceled.result).status).toBe('canceled');
    const mark = `never-${process.pid}`;
    let begun = 0;
    const onOutput = () => {
      begun += 1;
      return never();
    };
    const before = known;
    const exited = own.start(`: ${mark}; echo one`, { onOutput });
    const held = own.run(`: ${mark}; yes & :`, { timeout: 20_000, onOutput });
    // On a busy machine it may take long until there is any output, and until both have exited.
    await eventually(() => expect(begun).toBe(2), 10_000);
    await eventually(() => expect(processesWith(`: ${mark};`)).toEqual([]));
    await eventually(() => expect(known).toBeGreaterThan(before));
    await own.close();
    expect(await exited.result).toMatchObject({
      status: 'exited',
      warnings: [expect.stringContaining('onOutput')],
    });
    expect((await held).warnings).toContainEqual(expect.stringContaining('onOutput'));
  });

  it('does not hold a command that has exited longer than its time-out', async () => {
    const result = await untilTimeOut(
      600,
      (timeout) =>
        sandbox.run('yes & sleep 0.1', {
          timeout,
          onOutput: () => sleep(timeout + 900),
          signal: AbortSignal.timeout(timeout + 3_400),
        }),
      ({ exitCode }) => exitCode === 0,
    );
    expect(result).toMatchObject({ outputHeld: true, treeEnded: true });
  });

  it('gets all of what a command wrote that has ended, however slow it is', async () => {
    let total = 0;
    const result = await sandbox.run(['head', '-c', '1100000', '/dev/zero'], {
      onOutput: async ({ bytes }) => {
        total += bytes.length;
        await sleep(40);
      },
    });
    expect([total, result.outputHeld, result.warnings]).toEqual([1_100_000, false, []]);
  });

  it('is never called at the same time for one run', async () => {
    let active = 0;
    let most = 0;
    await sandbox.run('seq 20000; seq 20000 >&2', {
      onOutput: async () => {
        active += 1;
        most = Math.max(most, active);
        await sleep(1);
        active -= 1;
      },
    });
    expect(most).toBe(1);
  });
});

describe('spawn', () => {
  it('gives streams', async () => {
    const child = sandbox.spawn(['cat']);
    child.stdin.write('one ');
    child.stdin.end('two');
    expect(await textOf(child.stdout)).toBe('one two');
    expect(await textOf(child.stderr)).toBe('');
    expect(await child.result).toMatchObject({ status: 'exited', exitCode: 0, stdout: '', stderr: '' });
  });

  it('carries a conversation', async () => {
    const child = sandbox.spawn('while read -r line; do echo "got $line"; done');
    const lines: string[] = [];
    child.stdin.write('a\n');
    for await (const chunk of child.stdout) {
      lines.push(`${chunk}`);
      if (lines.length === 1) child.stdin.write('b\n');
      else child.stdin.end();
    }
    expect(lines.join('')).toBe('got a\ngot b\n');
  });

  it('carries 20 MB each way', async () => {
    const child = sandbox.spawn(['cat']);
    const size = 20_000_000;
    child.stdin.end(Buffer.alloc(size, 'x'));
    let received = 0;
    for await (const chunk of child.stdout) received += (chunk as Buffer).length;
    expect(received).toBe(size);
    expect((await child.result).exitCode).toBe(0);
  });

  it('keeps output and errors apart', async () => {
    const child = sandbox.spawn('echo out; echo err >&2');
    expect(await Promise.all([textOf(child.stdout), textOf(child.stderr)])).toEqual(['out\n', 'err\n']);
  });

  it('can be killed, by default with SIGTERM', async () => {
    const child = sandbox.spawn('echo on; exec sleep 9');
    await once(child.stdout, 'data');
    expect(child.kill()).toBe(true);
    expect(await child.result).toMatchObject({ status: 'signaled', signal: 'SIGTERM' });
    expect(child.kill()).toBe(false);
    expect(await textOf(child.stdout)).toBe('');
  });

  it('settles for a command that cannot start, its streams at their end', async () => {
    const child = sandbox.spawn(['no-such-program']);
    expect(await textOf(child.stdout)).toBe('');
    expect(await child.result).toMatchObject({
      status: 'setup-failed',
      error: { code: 'program.not_found' },
    });
    child.stdin.destroy();
  });

  it('settles though nobody reads the output', async () => {
    const child = sandbox.spawn('head -c 1000000 /dev/zero', { timeout: 300 });
    expect((await child.result).status).toBe('timed-out');
    child.stdout.destroy();
    child.stderr.destroy();
    child.stdin.destroy();
  });

  it('honours timeout, signal, cwd and env', async () => {
    expect((await sandbox.spawn(['sleep', '9'], { timeout: 50 }).result).status).toBe('timed-out');
    expect((await sandbox.spawn(['sleep', '9'], { signal: AbortSignal.timeout(50) }).result).status).toBe(
      'canceled',
    );
    const child = sandbox.spawn('pwd; echo $X', { cwd: '/usr', env: { X: 'y' } });
    expect(await textOf(child.stdout)).toBe('/usr\ny\n');
  });
});

describe('a process tree', () => {
  it('ends with its command', async () => {
    const mark = `${200_000 + process.pid}`;
    const result = await sandbox.run(
      `sleep ${mark} & setsid sleep ${mark} > /dev/null 2>&1 & sleep 0.1; echo done`,
      { timeout: 3_000 },
    );
    expect(result).toMatchObject({ status: 'exited', stdout: 'done\n' });
    // Killed, they run no more; on a busy machine the kernel takes a moment to remove them.
    if (result.treeEnded) await eventually(() => expect(processesWith(mark)).toEqual([]));
    else for (const pid of processesWith(mark)) process.kill(pid, 'SIGKILL');
  });
});
