import { describe, expect, it } from 'vitest';
import { programNames } from '../../../src/programs/program-table.ts';

describe('the table of programs', () => {
  it('has each program in one row', () => {
    const names = programNames();
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });
});
