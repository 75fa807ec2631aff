import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CONTROL_IDS } from '../../src/base/words.ts';
import type { Sandbox } from '../../src/index.ts';

import { LINES, makeStage, USABLE } from './support.ts';

const stage = makeStage();

/** What a caller may rely on, whatever keeps the command in. */
describe.each(USABLE)('under %s', (backend) => {
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await stage.sandbox(backend, { env: { GIVEN: 'by the caller' } });
  });

  it('the result says which backend ran the command and what it holds', async () => {
    const result = await sandbox.run(['pwd']);
    expect(result).toMatchObject({
      status: 'exited',
      exitCode: 0,
      stdout: `${stage.workspace}\n`,
      stderr: '',
    });
    expect(result.report).toEqual(sandbox.plan.report);
    expect(result.report).toMatchObject({ backend, passedOver: [] });
    expect(result.report.controls.map(({ id }) => id)).toEqual(CONTROL_IDS);
    for (const { id, reason } of result.report.controls) expect(reason.length, id).toBeGreaterThan(10);
    expect(result.warnings).toEqual([]);
  });

  it('output, error output and exit status are the command’s', async () => {
    const found = await sandbox.run(['rg', '--no-ignore', '--no-config', '-N', 'line 7$', 'lines.txt']);
    expect(found).toMatchObject({ status: 'exited', exitCode: 0, stdout: 'line 7\n', stderr: '' });
    expect(
      await sandbox.run(['rg', '--no-ignore', '--no-config', 'no such line', 'lines.txt']),
    ).toMatchObject({ exitCode: 1, stdout: '' });
    const missing = await sandbox.run(['cat', 'missing.txt']);
    expect(missing).toMatchObject({ status: 'exited', exitCode: 1, stdout: '' });
    expect(missing.stderr).toMatch(/^\S*cat: missing\.txt: /);
  });

  it('a shell string has pipelines, lists and redirects', async () => {
    const command =
      "cat lines.txt | sed -n '1,20p' | head -n 3 > out.txt && cat out.txt || pwd; cat missing.txt";
    try {
      const result = await sandbox.run(command);
      expect(result).toMatchObject({ status: 'exited', exitCode: 1, stdout: 'line 1\nline 2\nline 3\n' });
      expect(result.stderr).toContain('missing.txt');
      expect(readFileSync(join(stage.workspace, 'out.txt'), 'utf8')).toBe('line 1\nline 2\nline 3\n');
    } finally {
      rmSync(join(stage.workspace, 'out.txt'), { force: true });
    }
  });

  it('bytes pass as they are, in and out', async () => {
    const input = Uint8Array.from({ length: 100_000 }, (_, index) => (index * 7) % 256);
    const result = await sandbox.run(['cat'], { input, encoding: 'bytes', maxOutput: 200_000 });
    expect(result.exitCode).toBe(0);
    expect(Buffer.compare(result.bytes?.stdout ?? Buffer.alloc(0), input)).toBe(0);
    expect(result.outputBytes).toEqual({ stdout: input.length, stderr: 0 });
  });

  it('arguments arrive as they are', async () => {
    const name = ' a\tb $(id) "q" \'s\' *é😀;&|';
    writeFileSync(join(stage.workspace, name), 'strange\n');
    try {
      expect(await sandbox.run(['cat', '--', name])).toMatchObject({ exitCode: 0, stdout: 'strange\n' });
    } finally {
      rmSync(join(stage.workspace, name));
    }
  });

  it('the directory is the one asked for', async () => {
    const result = await sandbox.run(['cat', 'inner.txt'], { cwd: 'sub' });
    expect(result).toMatchObject({ exitCode: 0, stdout: 'inner\n', cwd: join(stage.workspace, 'sub') });
    const gone = await sandbox.run(['pwd'], { cwd: 'missing' });
    expect(['denied', 'setup-failed']).toContain(gone.status);
    if (gone.status === 'setup-failed') expect(gone.error.code).toBe('cwd.unusable');
  });

  describe('the environment', () => {
    beforeAll(() => {
      process.env.CONFORMANCE_TOKEN = 'a-secret-of-the-launcher';
    });
    afterAll(() => {
      delete process.env.CONFORMANCE_TOKEN;
    });
    it('is rebuilt, with what the caller gives', async () => {
      // Without a kernel that holds it, a run may not give what a program could obey.
      const unknown = await sandbox.run(['printenv'], { env: { OF_THIS_RUN: '1' } });
      if (backend === 'application') expect(unknown.status).toBe('denied');
      else expect(unknown.stdout).toMatch(/^OF_THIS_RUN=1$/m);
      const { stdout } = await sandbox.run(['printenv'], { env: { LC_TIME: 'C.UTF-8' } });
      expect(stdout).toMatch(/^GIVEN=by the caller$/m);
      expect(stdout).toMatch(/^LC_TIME=C.UTF-8$/m);
      expect(stdout).toMatch(/^HOME=\//m);
      expect(stdout).toMatch(/^TMPDIR=\//m);
      expect(stdout).not.toContain('a-secret-of-the-launcher');
    });
  });

  it('a program that is not there is not found', async () => {
    const result = await sandbox.run(['no-such-program-anywhere']);
    if (backend === 'application') expect(result.status).toBe('denied');
    else expect(result).toMatchObject({ status: 'setup-failed', error: { code: 'program.not_found' } });
  });

  it('its own output is told from that of the backend', async () => {
    const result = await sandbox.run(['cat', 'lines.txt'], { combined: true });
    expect(result.stdout).toBe(LINES);
  });

  it('many at once do not get in each other’s way', async () => {
    const wanted = Array.from({ length: 12 }, (_, index) => `job ${index}\n`);
    const results = await Promise.all(wanted.map((input) => sandbox.run(['cat'], { input })));
    expect(results.map(({ stdout }) => stdout)).toEqual(wanted);
  });
});
