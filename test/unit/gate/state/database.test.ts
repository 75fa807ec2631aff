import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { afterAll, describe, expect, it } from 'vitest';
import { unusable as notUsable, resultCode, SQLITE_BUSY } from '../../../../src/gate/state/database-file.ts';
import type { DatabaseKind } from '../../../../src/gate/state/database-kind.ts';
import { MIGRATIONS } from '../../../../src/gate/state/migrations.ts';
import { ensureStateDirectory, stateDirectoryPath } from '../../../../src/workspace/index.ts';
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
    ['one with a damaged header', damageCounters, /damaged; move it away/],
    ['a directory', (file: string) => mkdirSync(file), /cannot be opened/],
    [
      'a link to nowhere it may go',
      (file: string) => symlinkSync('/proc/nowhere/x', file),
      /symbolic link; move that away/,
    ],
  ])('that is %s is refused with a reason', async (_, spoil, message) => {
    const path = directory();
    await spoil(join(path, 'gate.db'));
    await expect(open(path).then((state) => state.budget.reserve('p', 5))).rejects.toMatchObject(
      unusable(message),
    );
  });

  it('that another process keeps locked is given up after a while', async () => {
    const path = directory();
    const state = await open(path);
    const other = new DatabaseSync(join(path, 'gate.db'));
    other.exec('BEGIN EXCLUSIVE');
    try {
      await expect(async () => state.budget.reserve('p', 5)).rejects.toMatchObject(unusable(/locked/));
    } finally {
      other.close();
    }
    expect(await state.budget.reserve('p', 5)).toBeDefined();
    state.close();
  });
});

/** A tmpfs of its own; `undefined`: this user may not mount. */
function mountTmpfs(access: 'rw' | 'ro'): string | undefined {
  const path = directory();
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `${access},size=256k,mode=700`, 'tmpfs', path]).status !== 0)
    return undefined;
  mounted.push(path);
  return path;
}
const mounted: string[] = [];
afterAll(() => {
  for (const path of mounted) spawnSync('umount', ['-l', path]);
});

const ownDisk = mountTmpfs('rw');

describe.skipIf(ownDisk === undefined)('the state database on a disk of its own (not run: no mount)', () => {
  const disk = ownDisk ?? '';

  it.each([0, 4096, 8192, 16_384])('that is full but for %i bytes: make room', async (left) => {
    const path = join(disk, `${left}`);
    mkdirSync(path, { mode: 0o700 });
    writeFileSync(join(disk, 'left'), Buffer.alloc(left));
    expect(spawnSync('dd', ['if=/dev/zero', `of=${join(disk, 'ballast')}`, 'bs=4096']).status).not.toBe(0);
    rmSync(join(disk, 'left'));
    try {
      await expect(open(path)).rejects.toMatchObject(unusable(/: the disk is full; make room$/));
    } finally {
      rmSync(join(disk, 'ballast'));
      rmSync(path, { recursive: true });
    }
  });

  it('that is read-only is refused as such', async () => {
    const path = mountTmpfs('ro') ?? '';
    await expect(open(path)).rejects.toMatchObject(unusable(/file system is read-only; .*XDG_STATE_HOME/));
  });
});

it.skipIf(process.getuid?.() === 0)(
  'a database that cannot be written is told by what of it cannot (not run: by root)',
  () => {
    const place = directory();
    const path = join(place, 'gate.db');
    const kind = { name: 'the state', code: 'state.unusable' } as DatabaseKind;
    const readOnly = Object.assign(new Error('attempt to write a readonly database'), { errcode: 8 });
    const told = () =>
      notUsable(path, readOnly, kind).message.slice(`the state ${path} cannot be used: `.length);
    for (const end of ['', '-shm']) writeFileSync(`${path}${end}`, '');
    chmodSync(path, 0o400);
    expect(told()).toBe('it cannot be written; make it writable or set XDG_STATE_HOME');
    // As a reader of a file that was read-only for a while leaves it.
    chmodSync(path, 0o600);
    chmodSync(`${path}-shm`, 0o400);
    expect(told()).toBe(`${path}-shm cannot be written; make it writable or set XDG_STATE_HOME`);
    chmodSync(`${path}-shm`, 0o600);
    chmodSync(place, 0o500);
    expect(told()).toBe(`${place} cannot be written; make it writable or set XDG_STATE_HOME`);
    chmodSync(place, 0o700);
  },
);

it('a database that is damaged where its rows are is called damaged', async () => {
  const path = directory();
  const file = join(path, 'gate.db');
  await fill(path);
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0xff, bytes.length / 2));
  await expect(open(path)).rejects.toMatchObject(unusable(/damaged; move it away/));
});

it('a database that is damaged while it is in use is called damaged, by the code that SQLite gives', async () => {
  const path = directory();
  const file = join(path, 'gate.db');
  await fill(path);
  const state = await open(path);
  // In its place, or it would be another file.
  const size = statSync(file).size;
  const descriptor = openSync(file, 'r+');
  writeSync(descriptor, Buffer.alloc(size, 0xff), 0, size - 4096, 4096);
  closeSync(descriptor);
  // What was read before is no longer up to date once another process has written.
  const other = new DatabaseSync(file);
  other.exec(`PRAGMA user_version = ${MIGRATIONS.length}`);
  other.close();
  await expect(async () => state.sessions.list('p')).rejects.toMatchObject({
    ...unusable(/damaged; move it away/),
    cause: expect.objectContaining({ errcode: expect.any(Number) }),
  });
  state.close();
});

it('the code of a failure is SQLite’s, and never taken from its text', () => {
  expect(resultCode(new Error('database is locked'))).toBeUndefined();
  // An extended one: SQLITE_BUSY_RECOVERY.
  expect(resultCode(Object.assign(new Error('other words'), { errcode: 261 }))).toBe(SQLITE_BUSY);
});

async function damageCounters(file: string): Promise<void> {
  await fill(join(file, '..'));
  writeFileSync(file, readFileSync(file).fill(0, 24, 96));
}

async function damage(file: string): Promise<void> {
  await fill(join(file, '..'));
  // All but the first page, which names the tables.
  const bytes = readFileSync(file);
  writeFileSync(file, bytes.fill(0xff, 4096));
}

/** Makes a database of several pages, all of them in its file. */
async function fill(path: string): Promise<void> {
  const state = await open(path);
  for (let i = 0; i < 200; i++) {
    await state.budget.reserve('p', 1000);
    await state.sessions.use(`s${i}`, 'p');
  }
  state.close();
  const database = new DatabaseSync(join(path, 'gate.db'));
  database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
  database.close();
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
    symlinkSync('nowhere', join(parent, 'dangling'));
    for (const [name, message] of [
      ['link', /is a symbolic link; put a directory in its place/],
      ['dangling', /is a symbolic link/],
      ['file', /is not a directory/],
    ] as const)
      expect(() => ensureStateDirectory(join(parent, name))).toThrowError(
        expect.objectContaining({ code: 'state.untrusted', message: expect.stringMatching(message) }),
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
