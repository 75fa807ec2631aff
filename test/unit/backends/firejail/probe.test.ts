import { describe, expect, it } from 'vitest';
import type { Trial } from '../../../../src/backends/backend.ts';
import { probeFirejail, trySpec } from '../../../../src/backends/firejail/probe.ts';

const FAILED = { stdout: '', stderr: '', exitCode: undefined } as const;
const WENT_WELL: Trial = { ...FAILED, exitCode: 0, failure: undefined };
const withErrno = (errno: number): Trial => ({ ...FAILED, failure: { stage: 'handover', errno, path: '' } });

const FOUND = { path: '/usr/bin/firejail', version: [0, 9, 72] } as const;
let specs = 0;
const tryIt = (trial: Trial, spec: number) =>
  trySpec(async () => trial, FOUND, { setUidLauncher: { settings: [`${spec}`], conditional: [] } } as never, [
    '/usr',
    '/bin',
  ]);

describe('a trial of Firejail', () => {
  it.each([
    ['EMFILE', 24],
    ['ENFILE', 23],
    ['ENOMEM', 12],
    ['EAGAIN', 11],
  ])('that fails for %s says nothing of Firejail, and is made again', async (name, errno) => {
    const spec = ++specs;
    await expect(tryIt(withErrno(errno), spec)).rejects.toMatchObject({
      code: 'launch.failed',
      message: expect.stringContaining(name),
    });
    await expect(tryIt(WENT_WELL, spec)).resolves.toBeUndefined();
  });

  it('that fails for good is remembered', async () => {
    const spec = ++specs;
    const refused = { code: 'backend.unavailable' };
    await expect(tryIt(withErrno(1), spec)).rejects.toMatchObject(refused);
    await expect(tryIt(WENT_WELL, spec)).rejects.toMatchObject(refused);
  });

  it('that fails for a shortage does not count for the whole process', async () => {
    const first = await probeFirejail(async () => withErrno(24)).catch((error: unknown) => error);
    // Only where Firejail is there is anything tried.
    if (!(first instanceof Error)) return expect(first).toHaveProperty('reason');
    expect(first).toMatchObject({ code: 'launch.failed' });
    expect(await probeFirejail(async () => WENT_WELL)).toHaveProperty('version');
  });
});
