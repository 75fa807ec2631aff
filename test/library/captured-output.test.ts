import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createSandbox } from '../../src/index.ts';
import { untilTimeOut } from '../support/time-out.ts';
import { makePlaceWithSandbox } from './support.ts';

const { place, sandbox } = await makePlaceWithSandbox();

const residentBytes = () => {
  const pages = readFileSync('/proc/self/statm', 'latin1').split(' ')[1];
  return Number(pages) * 4096;
};

describe('captured output', () => {
  it('of 4 GB needs no memory that a little would not need', async () => {
    await sandbox.run(['head', '-c', '100M', '/dev/zero']);
    const before = residentBytes();
    const result = await sandbox.run(['head', '-c', '4G', '/dev/zero'], { timeout: 100_000 });
    expect(residentBytes() - before).toBeLessThan(20_000_000);
    expect(result).toMatchObject({ status: 'exited', exitCode: 0, outputBytes: { stdout: 4 * 1024 ** 3 } });
    expect(result.truncated.stdout).toBe(4 * 1024 ** 3 - 1024 ** 2);
  });

  it('and the time limit need no turn of the event loop', async () => {
    const lines = Array.from({ length: 200_000 }, (_, i) => `${i + 1}\n`).join('');
    const timed = async (timeout: number) => {
      const pending = sandbox.run('seq 200000; sleep 30', { timeout, maxOutput: 10_000_000 });
      const begun = performance.now();
      while (performance.now() < begun + timeout + 2_000);
      return { timeout, busyMs: performance.now() - begun, result: await pending };
    };
    const { timeout, busyMs, result } = await untilTimeOut(
      1_000,
      timed,
      (timed) => timed.result.stdout === lines,
    );
    expect(result.status).toBe('timed-out');
    expect(result.durationMs).toBeGreaterThanOrEqual(timeout);
    // It was over before the event loop had a turn.
    expect(result.durationMs).toBeLessThan(busyMs);
    expect(result.stdout === lines).toBe(true);
    expect(result.truncated.stdout).toBe(0);
  }, 20_000);

  it('is split as the caller says, also for one run alone', async () => {
    await using own = await createSandbox({
      workspace: place.workspace,
      maxOutput: { head: 2, tail: 5 },
    });
    expect((await own.run(['printf', 'abcdefghij'])).stdout).toBe('ab\n[... 3 bytes left out ...]\nfghij');
    const once = await own.run(['printf', 'abcdefghij'], { maxOutput: { head: 0, tail: 1 } });
    expect(once.stdout).toBe('\n[... 9 bytes left out ...]\nj');
    expect((await own.run(['printf', 'abcdefghij'], { maxOutput: 9 })).stdout).toBe(
      'abcde\n[... 1 bytes left out ...]\nghij',
    );
  });

  it('is split as the policy says', async () => {
    const policy = { limits: { output_bytes: 4, output_head_bytes: 3 } };
    await using own = await createSandbox({ workspace: place.workspace, policy });
    expect((await own.run(['printf', 'abcdefghij'])).stdout).toBe('abc\n[... 6 bytes left out ...]\nj');
  });

  it('is the same when it is also streamed', async () => {
    const seen: Uint8Array[] = [];
    const { stdout, truncated } = await sandbox.run('seq 100000', {
      maxOutput: 100,
      onOutput: ({ bytes }) => {
        seen.push(bytes);
      },
    });
    const all = Buffer.concat(seen).toString();
    expect(all.length).toBe(588_895);
    expect(stdout).toBe(`${all.slice(0, 50)}\n[... 588,795 bytes left out ...]\n${all.slice(-50)}`);
    expect(truncated.stdout).toBe(588_795);
  });

  it('as bytes has nothing replaced', async () => {
    const script = 'import os\nfor i in range(256): os.write(1, bytes([i]))\nos.write(2, b"\\xff")';
    const result = await sandbox.run(['python3', '-c', script], { encoding: 'bytes' });
    expect(result.stdout).toBe('');
    expect(Buffer.from(result.bytes?.stdout ?? [])).toEqual(
      Buffer.from(Array.from({ length: 256 }, (_, i) => i)),
    );
    expect(Buffer.from(result.bytes?.stderr ?? [])).toEqual(Buffer.from([0xff]));
    expect(result.bytes?.gapAt).toEqual({ stdout: undefined, stderr: undefined });
    const short = await sandbox.run(['printf', 'aé'], { encoding: 'bytes', maxOutput: 2 });
    expect(Buffer.from(short.bytes?.stdout ?? [])).toEqual(Buffer.from([0x61, 0xa9]));
    expect(short).toMatchObject({ truncated: { stdout: 1 }, bytes: { gapAt: { stdout: 1 } } });
    expect((await sandbox.run(['true'])).bytes).toBeUndefined();
  });

  it('of both streams through one pipe is in the order in which it was written', async () => {
    const script = 'import os\nfor i in range(3000): os.write(1 + i % 2, b"%d\\n" % i)';
    const result = await sandbox.run(['python3', '-c', script], { combined: true });
    expect(result.stdout).toBe(Array.from({ length: 3_000 }, (_, i) => `${i}\n`).join(''));
    expect(result).toMatchObject({ stderr: '', truncated: { stdout: 0, stderr: 0 } });
    expect(result.outputBytes.stderr).toBe(0);
    const streams = new Set<string>();
    await sandbox.run('echo a; echo b >&2', {
      combined: true,
      onOutput: ({ stream }) => {
        streams.add(stream);
      },
    });
    expect([...streams]).toEqual(['stdout']);
  });

  it('for a model has nothing in it that a terminal would obey', async () => {
    const command = String.raw`printf '\033]0;title\a\033[1;31mred\033[0m\r\n10%%\r99%%\rdone \342\200\256x\n'`;
    const result = await sandbox.run(command, { escapes: 'neutralize' });
    expect(result.stdout).toBe('red\ndone \\u{202e}x\n');
    expect((await sandbox.run(command)).stdout).toContain('\x1b[1;31m');
  });
});
