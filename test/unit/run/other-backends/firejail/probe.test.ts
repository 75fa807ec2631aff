import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Trial } from '../../../../../src/confine/backends/backend.ts';
import {
  askFirejail,
  probeFirejail,
  trySpec,
  versionIn,
} from '../../../../../src/run/other-backends/firejail/probe.ts';

const FAILED = { stdout: '', stderr: '', exitCode: undefined, killed: false } as const;
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

describe('what Firejail says of its version', () => {
  /** A program in its place. */
  async function said(script: string) {
    const directory = mkdtempSync(join(tmpdir(), 'sandbox-run-firejail-'));
    const program = join(directory, 'firejail');
    writeFileSync(program, `#!/bin/sh\n${script}\n`);
    chmodSync(program, 0o755);
    try {
      return versionIn(await askFirejail(program, ['--version']), program);
    } finally {
      rmSync(directory, { recursive: true });
    }
  }

  it('counts if it is whole and Firejail ended well', async () => {
    expect(await said('echo firejail version 0.9.72')).toEqual({ version: [0, 9, 72] });
  });

  it.each([
    ['nothing', 'exit 0'],
    ['half', 'printf "firejail vers"'],
    ['half a number', 'printf "firejail version 0."'],
    ['the version, and ends with an error', 'echo firejail version 0.9.72; exit 1'],
    ['the version, and dies', 'echo firejail version 0.9.72; kill -SEGV $$'],
    ['too old a version', 'echo firejail version 0.9.66'],
  ])('is a reason against it where it says %s', async (_, script) => {
    expect(await said(script)).toEqual({ reason: expect.stringContaining('install 0.9.68 or later') });
  });

  it('is no reason for good where it is killed on the way', async () => {
    await expect(said('echo firejail version 0.9.72; kill -KILL $$')).rejects.toMatchObject({
      code: 'launch.failed',
    });
  });
});

describe('a trial of Firejail that is killed', () => {
  it.each<[string, Trial]>([
    ['before the command began', { ...FAILED, failure: { stage: 'launcher', errno: 0, path: '137' } }],
    ['later, or was late', { ...FAILED, killed: true, failure: undefined }],
  ])('%s says nothing of it, and is made again', async (_, trial) => {
    const spec = ++specs;
    await expect(tryIt(trial, spec)).rejects.toMatchObject({ code: 'launch.failed' });
    await expect(tryIt(WENT_WELL, spec)).resolves.toBeUndefined();
  });

  it.each<[string, Trial]>([
    [
      'ends well before the command began',
      { ...FAILED, failure: { stage: 'launcher', errno: 0, path: '0' } },
    ],
    ['ends the command with an error', { ...FAILED, exitCode: 1, failure: undefined }],
    ['dies of something else', { ...FAILED, failure: undefined }],
  ])('is one that fails where it %s', async (_, trial) => {
    await expect(tryIt(trial, ++specs)).rejects.toMatchObject({ code: 'backend.unavailable' });
  });
});
