import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NATIVE_ARTIFACTS, TARGETS } from '../../scripts/native-artifacts.mjs';
import {
  builtAddon,
  hostLibc,
  installedAddons,
  packageRoot,
  platformPackage,
  unfitFor,
} from '../../src/confine/native/index.ts';
import { packageVersion } from '../../src/version.ts';

describe('where the addon is looked for', () => {
  it('is where the build and the platform packages have it', () => {
    for (const target of TARGETS) {
      expect(platformPackage(target.architecture, target.libc)).toBe(target.package);
    }
    const file = NATIVE_ARTIFACTS.find((artifact) => !artifact.isProgram)?.file;
    expect(builtAddon('/p').path).toBe(`/p/build/Release/${file}`);
    expect(installedAddons('/p/node_modules/sandbox-run', 'x64', 'gnu').map(({ path }) => path)).toEqual([
      `/p/node_modules/sandbox-run/node_modules/@sandbox-run/linux-x64-gnu/${file}`,
      `/p/node_modules/@sandbox-run/linux-x64-gnu/${file}`,
    ]);
  });

  it('is the same package from each of its modules', () => {
    expect(packageRoot('/p/node_modules/sandbox-run/dist')).toBe('/p/node_modules/sandbox-run');
    expect(packageRoot('/p/node_modules/sandbox-run/dist/tests')).toBe('/p/node_modules/sandbox-run');
    expect(packageRoot('/checkout/node_modules/.cache')).toBe('/checkout');
    expect(packageRoot('/checkout/src/confine/native')).toBe('/checkout');
  });

  it('is not a directory above, which may be somebody else’s', () => {
    const paths = installedAddons('/tmp/checkout', 'arm64', 'musl').map(({ path }) => path);
    expect(paths).toEqual(['/tmp/checkout/node_modules/@sandbox-run/linux-arm64-musl/sandbox_run.node']);
  });
});

describe('a platform package', () => {
  const place = mkdtempSync(join(tmpdir(), 'sandbox-run-packaging-'));
  const manifest = join(place, 'package.json');
  const location = { path: join(place, 'sandbox_run.node'), manifest };
  beforeAll(() => mkdirSync(place, { recursive: true }));
  afterAll(() => rmSync(place, { recursive: true, force: true }));

  it('of the same version is used', () => {
    writeFileSync(manifest, JSON.stringify({ version: packageVersion }));
    expect(unfitFor(location)).toBeUndefined();
  });

  it('of another version is not', () => {
    writeFileSync(manifest, JSON.stringify({ version: '0.0.1' }));
    expect(unfitFor(location)).toBe(`${place} is version 0.0.1, sandbox-run is ${packageVersion}`);
  });

  it('without a readable manifest is not', () => {
    writeFileSync(manifest, '{');
    expect(unfitFor(location)).toBe(`${manifest} cannot be read`);
  });
});

describe('the C library of this process', () => {
  it('is told by the loader that the program names', () => {
    const place = mkdtempSync(join(tmpdir(), 'sandbox-run-packaging-'));
    const program = join(place, 'program');
    writeFileSync(program, `\x7fELF${'\0'.repeat(700)}/lib/ld-musl-x86_64.so.1\0`);
    expect(hostLibc(program)).toBe('musl');
    writeFileSync(program, `\x7fELF${'\0'.repeat(700)}/lib64/ld-linux-x86-64.so.2\0`);
    expect(hostLibc(program)).toBe('gnu');
    expect(hostLibc(join(place, 'missing'))).toBe('gnu');
    rmSync(place, { recursive: true });
  });
});
