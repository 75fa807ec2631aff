import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createPathLookup, createStartLookup } from '../../../../src/workspace/index.ts';

const top = mkdtempSync(join(realpathSync(tmpdir()), 'sandbox-run-listings-'));
const NAMES = ['.git', 'Makefile', 'link', 'dangling', 'directory'];
const MISSING = Array.from({ length: 10 }, (_, at) => `none-${at}`);

beforeAll(async () => {
  mkdirSync(join(top, 'directory'));
  for (const name of ['.git', 'Makefile', 'directory/inner']) writeFileSync(join(top, name), '');
  symlinkSync('directory/inner', join(top, 'link'));
  symlinkSync('nowhere', join(top, 'dangling'));
});
afterAll(() => rmSync(top, { recursive: true, force: true }));

/** Until a directory counts as unchanged: its time may be that of the last second. */
const untilSettled = () => new Promise((done) => setTimeout(done, 1_200));

describe('the lookup of a start', () => {
  it('says what a look at each name says', async () => {
    await untilSettled();
    const [one, other] = [createStartLookup(), createPathLookup()];
    for (const name of [...MISSING, ...NAMES, 'makefile', 'link/', 'directory/inner', 'directory/none'])
      expect(one.resolve(join(top, name)), name).toEqual(other.resolve(join(top, name)));
  });

  it('looks at each name of a directory that changed just now', () => {
    const lookup = createStartLookup();
    writeFileSync(join(top, 'now'), '');
    for (const name of MISSING) expect(lookup.resolve(join(top, name)).kind).toBe('missing');
    writeFileSync(join(top, 'later'), '');
    expect(lookup.resolve(join(top, 'later')).kind).toBe('other');
  });

  it('looks at each name beside one that a file system may fold', async () => {
    const beside = join(top, 'folded');
    mkdirSync(beside);
    writeFileSync(join(beside, 'git\u212a'), '');
    await untilSettled();
    const lookup = createStartLookup();
    for (const name of MISSING) expect(lookup.resolve(join(beside, name)).kind).toBe('missing');
    writeFileSync(join(beside, 'later'), '');
    expect(lookup.resolve(join(beside, 'later')).kind).toBe('other');
  });

  it.skipIf(process.geteuid?.() === 0)('knows nothing of names that can only be listed', async () => {
    const shut = join(top, 'shut');
    mkdirSync(shut);
    chmodSync(shut, 0o600);
    await untilSettled();
    const lookup = createStartLookup();
    for (const name of MISSING) expect(lookup.resolve(join(shut, name)).unknown?.errno).toBe('EACCES');
    chmodSync(shut, 0o700);
  });
});
