import { readFileSync } from 'node:fs';
import { Script } from 'node:vm';
import { describe, expect, it } from 'vitest';
import { wrapped } from '../../src/run/load-compiled.ts';

const dist = (name: string) => new URL(`../../dist/${name}`, import.meta.url);

describe('the compiled code in dist', () => {
  it('is of this version of Node and V8 takes it', () => {
    const source = wrapped(readFileSync(dist('judgement.cjs'), 'latin1'));
    const cachedData = readFileSync(dist(`judgement.${process.version}.code`));
    expect(new Script(source, { cachedData }).cachedDataRejected).toBe(false);
  });

  it('belongs to a source of one byte per character', () => {
    expect(readFileSync(dist('judgement.cjs'), 'latin1')).not.toMatch(/[\u0080-\u00ff]/);
  });
});
