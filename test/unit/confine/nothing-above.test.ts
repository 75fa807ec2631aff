import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';

describe('law 4: nothing above is imported', () => {
  const repository = fileURLToPath(new URL('../../..', import.meta.url));
  const directory = mkdtempSync(join(tmpdir(), 'core-alone-'));
  afterAll(() => rmSync(directory, { recursive: true, force: true }));
  const text = (file: string) => readFileSync(join(repository, 'src', file), 'utf8');
  /** Every file that the index of the core imports, whatever for, with those that these import. */
  const closure = (start: string, seen = new Set<string>()): ReadonlySet<string> => {
    if (seen.has(start)) return seen;
    seen.add(start);
    if (!start.endsWith('.ts')) return seen;
    for (const [, named = ''] of text(start).matchAll(/(?:\bfrom|\bimport\(|\bimport)\s*'(\.[^']+)'/g))
      closure(posix.join(posix.dirname(start), named), seen);
    return seen;
  };
  const files = [...closure('confine/index.ts')];
  const code = files.filter((file) => file.endsWith('.ts'));

  it('of this repository: the core, base, and the version', () => {
    const others = files.filter((file) => !/^(?:confine|base)\//.test(file));
    expect(others.sort()).toEqual(['../package.json', 'version.ts']);
    // The walk sees what is imported.
    expect(files).toEqual(expect.arrayContaining(['confine/plan/plan.ts', 'confine/native/contract.ts']));
    expect([...closure('run/index.ts')].some((file) => file.startsWith('gate/'))).toBe(true);
  });

  it('and all of it is at most 6,500 lines, beside two tables of numbers', () => {
    const data = files.filter((file) => /\.json$/.test(file) && file !== '../package.json');
    expect(data.map((file) => posix.basename(file)).sort()).toEqual([
      'programs.gen.json',
      'syscalls.gen.json',
    ]);
    const lines = code.reduce((sum, file) => sum + text(file).split('\n').length - 1, 0);
    expect(lines).toBeLessThanOrEqual(6500);
    expect(lines).toBeGreaterThan(5000);
  });

  it('also by what guests declare: the core compiles without them', () => {
    const settings = join(directory, 'core-alone.json');
    const only = {
      extends: join(repository, 'tsconfig.json'),
      compilerOptions: { typeRoots: [join(repository, 'node_modules/@types')] },
      include: [],
      files: [join(repository, 'src/confine/index.ts')],
    };
    writeFileSync(settings, JSON.stringify(only));
    const tsc = join(repository, 'node_modules/typescript/bin/tsc');
    const said = execFileSync(process.execPath, [tsc, '-p', settings, '--listFiles'], { encoding: 'utf8' });
    expect(said).toContain('src/confine/native/contract.ts');
    expect(said).not.toMatch(/\/src\/(?!confine\/|base\/|version\.ts)/);
  }, 120_000);

  it('of packages: what schemas are written with', () => {
    const imported = code.flatMap((file) =>
      [...text(file).matchAll(/\bfrom '([^.'][^']*)'/g)].map(([, name = '']) => name),
    );
    expect([...new Set(imported.filter((name) => !name.startsWith('node:')))]).toEqual(['zod']);
  });
});
