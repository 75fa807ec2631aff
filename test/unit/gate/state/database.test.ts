import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { describe, expect, it } from 'vitest';
import { MIGRATIONS } from '../../../../src/gate/state/migrations.ts';
import { ensureStateDirectory, stateDirectoryPath } from '../../../../src/host/state-directory.ts';
import { open, stateDirectories } from './fixtures.ts';

const directory = stateDirectories();
const unusable = (message: RegExp) => ({ code: 'state.unusable', message: expect.stringMatching(message) });

describe('the state database', () => {
  it('is made with the newest schema, and only once', async () => {
    const path = directory();
    const states = await Promise.all(Array.from({ length: 8 }, () => open(path)));
    for (const state of states) state.close();
    const database = new DatabaseSync(join(path, 'gate.db'));
    expect(database.prepare('PRAGMA user_version').get()).toEqual({ user_version: MIGRATIONS.length });
    expect(database.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' });
    database.close();
  });

  it('of a newer version is refused', async () => {
    const path = directory();
    (await open(path)).close();
    const database = new DatabaseSync(join(path, 'gate.db'));
    database.exec('PRAGMA user_version = 999');
    database.close();
    await expect(open(path)).rejects.toMatchObject(unusable(/newer sandbox-run \(version 999/));
  });

  it.each([
    ['text', (file: string) => writeFileSync(file, 'no database at all\n'.repeat(500)), /not a database/],
    ['a damaged one', damage, /damaged|not a database/],
    ['a directory', (file: string) => mkdirSync(file), /cannot be opened/],
    [
      'a link to nowhere it may go',
      (file: string) => symlinkSync('/proc/nowhere/x', file),
      /cannot be opened/,
    ],
  ])('that is %s is refused with a reason', async (_, spoil, message) => {
    const path = directory();
    await spoil(join(path, 'gate.db'));
    await expect(open(path).then((state) => state.budget.reserve('p', 5))).rejects.toMatchObject(
      unusable(message),
    );
  });

  it('that another process keeps locked is given up after a while', { timeout: 20_000 }, async () => {
    const path = directory();
    const state = await open(path);
    const other = new DatabaseSync(join(path, 'gate.db'));
    other.exec('BEGIN EXCLUSIVE');
    try {
      await expect(async () => state.budget.reserve('p', 5)).rejects.toMatchObject(unusable(/locked/));
    } finally {
      other.close();
    }
    expect(await state.budget.reserve('p', 5)).toBeTypeOf('string');
    state.close();
  });
});

async function damage(file: string): Promise<void> {
  const path = join(file, '..');
  const state = await open(path);
  for (let i = 0; i < 200; i++) await state.budget.reserve('p', 1000);
  state.close();
  const database = new DatabaseSync(file);
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
  // All but the first page, which names the tables.
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0xff, 4096));
}

describe('the state directory', () => {
  it.each([
    ['/home/u', undefined, '/home/u/.local/state/sandbox-run'],
    ['/home/u', '/var/state', '/var/state/sandbox-run'],
    ['/home/u', 'relative', '/home/u/.local/state/sandbox-run'],
  ])('of the home %s and XDG_STATE_HOME=%s is %s', (home, stateHome, expected) => {
    expect(stateDirectoryPath(home, stateHome)).toBe(expected);
  });

  it('is made for its owner alone, with what leads there', () => {
    const path = join(directory(), 'a/b/sandbox-run');
    expect(ensureStateDirectory(path)).toBe(path);
    expect(statSync(path).mode & 0o777).toBe(0o700);
    expect(ensureStateDirectory(path)).toBe(path);
  });

  it.each([
    ['others can read', (path: string) => chmodSync(path, 0o755), /can be used by others \(mode 755\)/],
    ['others can write', (path: string) => chmodSync(path, 0o770), /can be used by others/],
  ])('that %s is refused', (_, spoil, message) => {
    const path = directory();
    spoil(path);
    expect(() => ensureStateDirectory(path)).toThrowError(
      expect.objectContaining({ code: 'state.untrusted', message: expect.stringMatching(message) }),
    );
  });

  it.runIf(process.getuid?.() === 0)('of somebody else is refused (only root can make one)', () => {
    const path = directory();
    chownSync(path, 65534, 65534);
    expect(() => ensureStateDirectory(path)).toThrowError(
      expect.objectContaining({ code: 'state.untrusted', message: expect.stringContaining('65534') }),
    );
  });

  it('that is a link or a file is refused', () => {
    const parent = directory();
    mkdirSync(join(parent, 'real'), { mode: 0o700 });
    symlinkSync('real', join(parent, 'link'));
    writeFileSync(join(parent, 'file'), '');
    for (const name of ['link', 'file'])
      expect(() => ensureStateDirectory(join(parent, name))).toThrowError(
        expect.objectContaining({ code: 'state.untrusted' }),
      );
    expect(readdirSync(join(parent, 'real'))).toEqual([]);
  });

  it('that cannot be made is refused with what to do', () => {
    expect(() => ensureStateDirectory('/proc/no/sandbox-run')).toThrowError(
      expect.objectContaining(
        unusable(/cannot be made or read \(ENOENT\); make it writable or set XDG_STATE_HOME/),
      ),
    );
  });
});
