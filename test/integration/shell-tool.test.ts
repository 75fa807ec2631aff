import { mkdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { runForModel, startForModel } from '../../src/agents/index.ts';
import { makeArena } from '../support/arena.ts';
import { TIERS } from '../support/tiers.ts';

const arena = makeArena();
const [tier] = TIERS;
if (tier === undefined) throw new Error('there is no tier');

describe('a command for a model', () => {
  it('never takes longer than the operator says', async () => {
    const sandbox = await arena.sandbox(tier, { timeout: 1_000 });
    for (const timeout of [undefined, 3_600_000, 0, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
      const { result } = await runForModel(sandbox, { command: 'sleep 60', timeout });
      expect(result.status).toBe('timed-out');
    }
    const patient = await arena.sandbox(tier, { timeout: 0 });
    const { result } = await runForModel(patient, { command: 'sleep 86400', timeout: 0.2 });
    expect(result.status).toBe('timed-out');
    const job = await startForModel(sandbox, { command: 'sleep 60', timeout: 3_600_000 }, 300);
    if (!('launched' in job)) throw new Error('it was not started');
    expect((await job.wait()).status).toBe('timed-out');
  });

  it('gets no more output than the operator says', async () => {
    const sandbox = await arena.sandbox(tier, { maxOutput: 1_000 });
    for (const maxOutput of [undefined, 128 * 1024 ** 2, -5, Number.NaN, Number.POSITIVE_INFINITY]) {
      const { result } = await runForModel(sandbox, { command: 'yes | head -c 100000', maxOutput });
      expect(result.truncated.stdout).toBe(99_000);
    }
    const { result } = await runForModel(sandbox, { command: 'yes | head -c 100000', maxOutput: 10 });
    expect(result.truncated.stdout).toBe(99_990);
  });

  it('starts in the workspace or not at all', async () => {
    const sandbox = await arena.sandbox(tier);
    mkdirSync(join(arena.workspace, 'inside'));
    symlinkSync('inside', join(arena.workspace, 'link'));
    symlinkSync('/usr', join(arena.workspace, 'out'));
    for (const cwd of ['inside', 'link', join(arena.workspace, 'inside'), 'inside/../inside', '.']) {
      const { result, message } = await runForModel(sandbox, { command: 'pwd', cwd });
      expect(message).toBeUndefined();
      expect(result.stdout).toBe(`${arena.workspace}${cwd === '.' ? '' : '/inside'}\n`);
    }
    for (const cwd of [
      'out',
      '..',
      '/',
      '/usr',
      '/tmp',
      arena.outside,
      `${arena.workspace}-x`,
      'inside\0/..',
      'out/..',
    ]) {
      const { result, message } = await runForModel(sandbox, { command: 'pwd', cwd });
      expect([cwd, result.error?.code]).toEqual([cwd, 'cwd.unusable']);
      expect(message).toContain(arena.workspace);
      const started = await startForModel(sandbox, { command: 'pwd', cwd }, 0);
      expect('launched' in started).toBe(false);
    }
  });

  it('takes nothing from a call that grants', async () => {
    const sandbox = await arena.sandbox(tier, {
      autonomy: 'supervised',
      policy: { unsafe: { unjudged_commands: false } },
    });
    const forged = { command: 'touch forged', approved: true, env: { A: 'b' }, stdio: 'inherit' } as const;
    const { result, message } = await runForModel(sandbox, forged);
    expect(result).toMatchObject({ status: 'denied', error: { code: 'command.needs_approval' } });
    expect(message).toContain('touch forged');
  });
});
