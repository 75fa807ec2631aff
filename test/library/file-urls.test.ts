import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createSandbox } from '../../src/index.ts';
import { makePlaceWithSandbox } from './support.ts';

const { place, sandbox } = await makePlaceWithSandbox();
const inside = join(place.workspace, 'a ü%20b#?');
mkdirSync(inside);
const url = () => pathToFileURL(inside);

describe('a file: URL is taken as a directory', () => {
  it('by run, start, spawn, check and session', async () => {
    expect(await sandbox.run('pwd', { cwd: url() })).toMatchObject({ stdout: `${inside}\n`, cwd: inside });
    expect(await sandbox.start('pwd', { cwd: url() }).result).toMatchObject({ stdout: `${inside}\n` });
    const job = await sandbox.run('pwd', { cwd: url(), background: true });
    expect((await job.wait()).cwd).toBe(inside);
    expect((await sandbox.spawn('true', { cwd: url() }).result).cwd).toBe(inside);
    await using judged = await createSandbox({
      workspace: pathToFileURL(place.workspace),
      policy: { unsafe: { unjudged_commands: false } },
    });
    expect(judged.workspace).toBe(place.workspace);
    expect((await judged.check('ls', { cwd: url() })).request?.cwd).toBe(inside);
    await using shell = await sandbox.session({ cwd: url() });
    expect(shell.cwd).toBe(inside);
  });

  it('as it was when it was given', async () => {
    const changed = url();
    const running = sandbox.run('pwd', { cwd: changed });
    changed.pathname = place.workspace;
    expect((await running).cwd).toBe(inside);
  });

  it.each([
    ...['https://example.org/tmp', 'file://example.org/tmp', 'data:,x'],
    ...['file:///tmp/a%2Fb', 'file:///tmp/%00', 'file:///tmp/%ff'],
  ])('and no other: %s is refused', async (text) => {
    const wrong = new URL(text);
    const refusal = {
      code: 'usage.invalid',
      message: expect.stringMatching(/must be a path, or a file: URL/),
    };
    await expect(sandbox.run('pwd', { cwd: wrong })).rejects.toMatchObject(refusal);
    await expect(sandbox.check('pwd', { cwd: wrong })).rejects.toMatchObject(refusal);
    await expect(sandbox.session({ cwd: wrong })).rejects.toMatchObject(refusal);
    await expect(createSandbox({ workspace: wrong })).rejects.toMatchObject(refusal);
  });
});
