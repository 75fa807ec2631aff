import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

describe('packages are made whole or not at all', () => {
  const place = mkdtempSync(join(tmpdir(), 'sandbox-run-pack-test-'));
  const output = join(place, 'packages');
  mkdirSync(output);
  afterAll(() => rmSync(place, { recursive: true, force: true }));

  it('npm pack of the checkout, which would lack the native part, refuses and names what does not', async () => {
    const packed = await execa('npm', ['pack', '--pack-destination', output], { cwd: ROOT, reject: false });
    expect(packed.exitCode).not.toBe(0);
    expect(packed.stderr).toMatch(/^pack: .*npm run pack:here .*npm run pack:all /m);
    expect(readdirSync(output)).toEqual([]);
  });

  it('packages for all hosts say in one line what is missing for them, before anything is built', async () => {
    const programs = join(place, 'programs');
    mkdirSync(programs);
    for (const name of ['node', 'npm'])
      symlinkSync(join(dirname(process.execPath), name), join(programs, name));
    const packed = await execa(process.execPath, [join(ROOT, 'scripts/pack.mjs'), output], {
      env: { PATH: programs },
      extendEnv: false,
      reject: false,
    });
    expect(packed).toMatchObject({ exitCode: 1, stdout: '' });
    expect(packed.stderr).toMatch(
      /^pack: missing: .*g\+\+-12.*; on Debian 12: apt-get install .*g\+\+-12-.*-linux-gnu.*npm run pack:here$/,
    );
    expect(readdirSync(output)).toEqual([]);
  });
});
