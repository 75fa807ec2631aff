import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { expect, it } from 'vitest';

const LOAD = fileURLToPath(new URL('../../scripts/gate-load.mjs', import.meta.url));

// The same with 10,000 decisions is `npm run load:gate`.
it('nothing is lost or doubled under load, nor when processes are killed', { timeout: 120_000 }, async () => {
  const { exitCode, stdout, stderr } = await execa(
    process.execPath,
    [LOAD, '--decisions', '800', '--processes', '4', '--kill-seconds', '3'],
    { reject: false },
  );
  expect({ exitCode, stderr }, stdout).toEqual({ exitCode: 0, stderr: '' });
  expect(stdout).not.toContain('FAIL');
  expect(stdout.match(/^ {2}ok /gm)?.length).toBe(15);
});
