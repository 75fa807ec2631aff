import { readFileSync } from 'node:fs';
import { Script } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { wrapped } from '../../src/run/index.ts';

const dist = (name: string) => new URL(`../../dist/${name}`, import.meta.url);

describe.each(['part-core', 'part-lists', 'part-validation', 'part-stateful'])(
  'the compiled code of %s in dist',
  (name) => {
    it('is of this version of Node and V8 takes it', () => {
      const source = wrapped(readFileSync(dist(`${name}.cjs`), 'latin1'));
      const cachedData = readFileSync(dist(`${name}.${process.version}.code`));
      expect(new Script(source, { cachedData }).cachedDataRejected).toBe(false);
    });

    it('belongs to a source of one byte per character', () => {
      expect(readFileSync(dist(`${name}.cjs`), 'latin1')).not.toMatch(/[\u0080-\u00ff]/);
    });
  },
);

describe('starts that validate nothing', () => {
  it.each(['cli', 'sandbox-sh', 'part-core', 'part-lists'])('%s does not load zod', (name) => {
    expect(readFileSync(dist(`${name}.cjs`), 'latin1')).not.toMatch(/require\("zod|ZodObject/);
  });

  it('and what validates has it (so that the words would be found)', () => {
    expect(readFileSync(dist('part-validation.cjs'), 'latin1')).toMatch(/ZodObject/);
  });
});
