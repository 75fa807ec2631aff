import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { beforeEach, describe, expect, it } from 'vitest';
import { HOST } from '../support/tiers.ts';
import { makePlaceWithSandbox } from './support.ts';

const { place, sandbox } = await makePlaceWithSandbox();
const log = join(place.workspace, 'logs/run.log');
const outside = join(place.other, 'precious');
const read = (path: string) => readFileSync(path, 'utf8');
beforeEach(() => {
  rmSync(join(place.workspace, 'logs'), { recursive: true, force: true });
  mkdirSync(join(place.workspace, 'logs'));
  writeFileSync(outside, 'precious');
});

const refused = (why: RegExp) => ({
  status: 'setup-failed',
  error: { code: 'file.unusable', message: expect.stringMatching(why) },
});

describe('output into files that the caller names', () => {
  it('is whole, beside what is kept', async () => {
    const [stdout, stderr] = [log, pathToFileURL(join(place.other, 'a ü.err'))];
    const result = await sandbox.run('seq 100000; echo e >&2', { maxOutput: 10, spill: { stdout, stderr } });
    expect(result).toMatchObject({ ok: true, truncated: { stdout: 588_885 }, stderr: 'e\n' });
    expect(result.spilled).toEqual({
      stdout: log,
      stderr: join(place.other, 'a ü.err'),
      incomplete: undefined,
    });
    expect(read(log)).toBe(Array.from({ length: 100_000 }, (_, at) => `${at + 1}\n`).join(''));
    expect(readFileSync(stderr, 'utf8')).toBe('e\n');
    expect(statSync(log).mode & 0o777).toBe(0o600);
  });

  it('replaces what was there, or is appended to it', async () => {
    writeFileSync(log, 'before, and longer\n');
    chmodSync(log, 0o640);
    await sandbox.run('echo one', { spill: { stdout: log } });
    expect(read(log)).toBe('one\n');
    await sandbox.run('echo two', { spill: { stdout: log, append: true } });
    expect(read(log)).toBe('one\ntwo\n');
    expect(statSync(log).mode & 0o777).toBe(0o640);
  });

  it('is of one stream, or of both in one', async () => {
    const error = await sandbox.run('echo out; echo err >&2', { spill: { stderr: log } });
    expect(error.spilled).toEqual({ stdout: undefined, stderr: log, incomplete: undefined });
    expect(read(log)).toBe('err\n');
    await sandbox.run('echo out; echo err >&2', { combined: true, spill: { stdout: log } });
    expect(read(log)).toBe('out\nerr\n');
    await sandbox.run('echo out; echo err >&2', { spill: { stdout: log }, onOutput: () => {} });
    expect(read(log)).toBe('out\n');
  });

  it('leaves the file alone for a command that is not run', async () => {
    writeFileSync(log, 'before');
    const result = await sandbox.run(['no-such-program'], { spill: { stdout: log } });
    expect(result).toMatchObject({ status: 'setup-failed', error: { code: 'program.not_found' } });
    expect(read(log)).toBe('before');
  });

  it('says what was not written', async () => {
    const result = await sandbox.run('seq 1000', { spill: { stdout: log, maxBytes: 5 } });
    expect(result.spilled?.incomplete).toMatch(/^stdout ends after 5 bytes/);
    expect(read(log)).toBe('1\n2\n3');
  });

  it.each<[string, object, RegExp]>([
    ['a relative path', { stdout: 'logs/run.log' }, /spill must be/],
    ['another URL', { stdout: new URL('https://example.org/x') }, /spill must be/],
    ['a directory', { stdout: `${place.workspace}/` }, /spill must be/],
    ['nothing to append to', { append: true }, /appends to files/],
  ])('is not written for %s', async (_, spill, why) => {
    await expect(sandbox.run('true', { spill })).rejects.toThrow(why);
    const both = sandbox.run('true', { combined: true, spill: { stderr: log } });
    await expect(both).rejects.toThrow(/combined/);
  });

  it('whose file cannot be opened keeps the command from running', async () => {
    const ran = join(place.workspace, 'ran');
    const cases: readonly (readonly [string, RegExp])[] = [
      [join(place.workspace, 'none/x'), /ENOENT/],
      [join(place.workspace, 'logs'), /EISDIR/],
      [join(place.other, 'precious/x'), /ENOTDIR|does not exist/],
    ];
    for (const [stdout, why] of cases)
      expect(await sandbox.run('touch ran', { spill: { stdout } })).toMatchObject(refused(why));
    const same = await sandbox.run('touch ran', { spill: { stdout: log, stderr: log } });
    expect(same).toMatchObject(refused(/both streams in one file/));
    expect(existsSync(ran)).toBe(false);
  });
});

describe('a command cannot lead it elsewhere', () => {
  const spill = { stdout: log };

  it('by a link in the place of the file', async () => {
    await sandbox.run(`ln -s ${outside} logs/run.log`);
    expect(readlinkSync(log)).toBe(outside);
    expect(await sandbox.run('echo evil', { spill })).toMatchObject(refused(/symbolic link/));
    expect(read(outside)).toBe('precious');
    rmSync(log);
    await sandbox.run('ln -s not-there logs/run.log');
    expect(await sandbox.run('echo evil', { spill })).toMatchObject(refused(/symbolic link/));
  });

  it('by a link in the place of a directory on the way', async () => {
    await sandbox.run(`rmdir logs; ln -s ${place.other} logs`);
    const evil = await sandbox.run('echo evil', {
      spill: { stdout: join(place.workspace, 'logs/precious') },
    });
    expect(evil).toMatchObject(refused(/logs is a symbolic link that a command may have made/));
    expect(read(outside)).toBe('precious');
    rmSync(join(place.workspace, 'logs'));
  });

  it('by another name of a file', async () => {
    const protectedFile = join(place.workspace, 'protected');
    writeFileSync(protectedFile, 'precious');
    linkSync(protectedFile, log);
    expect(await sandbox.run('echo evil', { spill })).toMatchObject(refused(/another name/));
    expect(read(protectedFile)).toBe('precious');
  });

  it('by a FIFO, on which this process would wait', async () => {
    await sandbox.run('mkfifo logs/run.log');
    expect(await sandbox.run('echo evil', { spill })).toMatchObject(refused(/no regular file/));
  });

  it('while it runs: it goes on into the file that it had', async () => {
    const script = `echo one; sleep 0.05; rm logs/run.log; ln -s ${outside} logs/run.log; echo two`;
    expect((await sandbox.run(script, { spill })).ok).toBe(true);
    expect(read(outside)).toBe('precious');
  });

  it('a link of the user’s outside of its reach is followed', async () => {
    const link = join(place.other, 'link');
    symlinkSync(mkdtempSync(join(place.other, 'real-')), link);
    const stdout = join(link, 'out');
    expect((await sandbox.run('echo followed', { spill: { stdout } })).ok).toBe(true);
    expect(read(stdout)).toBe('followed\n');
  });

  it.runIf(HOST.root)('a file of another user is not written', async () => {
    writeFileSync(log, 'theirs');
    execFileSync('chown', ['65534', log]);
    expect(await sandbox.run('echo evil', { spill })).toMatchObject(refused(/another user/));
    expect(read(log)).toBe('theirs');
  });
});
