import { beforeAll, describe, expect, it } from 'vitest';
import type { Sandbox } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { LINES, makeStage, USABLE } from './support.ts';

const stage = makeStage();
/** Waits for input that never comes. */
const WAITS = ['cat'] as const;

describe.each(USABLE)('under %s', (backend) => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await stage.sandbox(backend);
  });

  it('a time-out ends the command', async () => {
    const started = sandbox.spawn(WAITS, { timeout: 200 });
    started.stdout.resume();
    started.stderr.resume();
    const result = await started.result;
    expect(result).toMatchObject({ status: 'timed-out', treeEnded: true });
    expect(result.durationMs).toBeGreaterThanOrEqual(199);
    started.stdin.destroy();
  });

  it('an abort ends the command', async () => {
    const controller = new AbortController();
    const started = sandbox.spawn(WAITS, { signal: controller.signal });
    started.stdout.once('data', () => controller.abort());
    started.stderr.resume();
    started.stdin.write('ready\n');
    expect(await started.result).toMatchObject({ status: 'canceled', treeEnded: true });
    started.stdin.destroy();
  });

  it('streams pass in both directions while it runs', async () => {
    const started = sandbox.spawn(WAITS);
    let seen = '';
    started.stdout.on('data', (chunk: Buffer) => {
      seen += chunk.toString();
    });
    started.stderr.resume();
    started.stdin.write('ping\n');
    await eventually(() => expect(seen).toBe('ping\n'));
    started.stdin.end('pong\n');
    expect(await started.result).toMatchObject({ status: 'exited', exitCode: 0 });
    await eventually(() => expect(seen).toBe('ping\npong\n'));
  });

  it('output is told as it arrives, and kept within its limit', async () => {
    const chunks: string[] = [];
    const result = await sandbox.run(['cat', 'lines.txt'], {
      onOutput: ({ bytes }) => {
        chunks.push(Buffer.from(bytes).toString());
      },
      maxOutput: { head: 14, tail: 9 },
    });
    expect(chunks.join('')).toBe(LINES);
    expect(result.stdout).toMatch(/^line 1\nline 2\n[\s\S]*left out[\s\S]*line 100\n$/);
    expect(result.truncated.stdout).toBe(LINES.length - 23);
  });

  it('a job runs on, and ends when it is told to', async () => {
    const job = await sandbox.run(['cat', 'lines.txt'], { background: true });
    expect(await job.wait()).toMatchObject({ status: 'exited', exitCode: 0, stdout: LINES });
  });

  it('a pipeline ends when its reader has enough', async () => {
    const result = await sandbox.run('cat /dev/zero | head -c 3 | cat', { timeout: 20_000 });
    // Where paths are looked at and nothing else, /dev/zero is outside.
    if (result.status === 'denied') expect(backend).toBe('application');
    else expect(result).toMatchObject({ status: 'exited', exitCode: 0, stdout: '\0\0\0' });
  });

  it('on a terminal it has the size that was asked for, and its output', async () => {
    const result = await sandbox.run(['cat', 'sub/inner.txt'], { pty: { cols: 100, rows: 30 } });
    expect(result).toMatchObject({ status: 'exited', exitCode: 0, stdout: 'inner\r\n' });
  });

  it('closing the sandbox ends what runs', async () => {
    const other = await stage.sandbox(backend);
    const started = other.spawn(WAITS);
    started.stdout.resume();
    started.stderr.resume();
    await other.close();
    expect(['canceled', 'signaled']).toContain((await started.result).status);
    started.stdin.destroy();
    await expect(other.run(['pwd'])).rejects.toMatchObject({ code: 'sandbox.closed' });
  });
});
