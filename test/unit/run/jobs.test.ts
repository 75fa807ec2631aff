import { expect, it } from 'vitest';
import type { NativeCapture } from '../../../src/confine/native/contract.ts';
import type { Running } from '../../../src/confine/running.ts';
import { startJob } from '../../../src/run/launch/jobs.ts';

const captured = (text: string): NativeCapture => ({
  stdout: Buffer.from(text),
  stderr: undefined,
  stdoutBytes: text.length,
  stderrBytes: 0,
});

it('output that was seen does not go away before the result is there', () => {
  // The addon has none left when the command has ended, and tells of that a moment later.
  const captures = [captured('a\n'), captured('a\nb\n'), undefined];
  const running = { outputSoFar: () => captures.shift() } as unknown as Running;
  const view = { limits: { head: 50, tail: 50 }, headBytes: 50, asBytes: false, neutralizes: false };
  const job = startJob(view, ({ onLaunch }) => {
    onLaunch?.(running);
    return { result: new Promise(() => {}), kill: () => false, cancel: () => {} };
  });
  expect([job.output().stdout, job.output().stdout, job.output().stdout]).toEqual([
    'a\n',
    'a\nb\n',
    'a\nb\n',
  ]);
  expect(job.output().outputBytes.stdout).toBe(4);
});
