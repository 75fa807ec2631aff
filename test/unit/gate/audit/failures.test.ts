import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { afterAll, describe, expect, it } from 'vitest';
import type { AuditTrail } from '../../../../src/gate/audit/open-audit.ts';
import {
  decision,
  decisions,
  makeDirectory,
  makeRoot,
  open,
  problemsOf,
  recordsOf,
  write,
} from './support.ts';
import { createWriters } from './writers.ts';

const mounted: string[] = [];
const startWriter = await createWriters();

afterAll(() => {
  for (const path of mounted) spawnSync('umount', ['-l', path]);
});

/** A tmpfs of its own; `undefined`: this user may not mount. */
function mountTmpfs(options: string): string | undefined {
  const path = makeRoot();
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', path]).status !== 0) return undefined;
  mounted.push(path);
  return path;
}

const small = mountTmpfs('size=512k,mode=700');
const whereMountingWorks = small === undefined ? it.skip : it;
const reason = small === undefined ? ' (not run: this user may not mount a tmpfs)' : '';

async function failure(trail: AuditTrail): Promise<unknown> {
  return trail.append(decision('x')).then(
    () => 'written',
    (error: unknown) => error,
  );
}

const failed = (message: RegExp) =>
  expect.objectContaining({
    name: 'SandboxError',
    code: 'audit.failed',
    message: expect.stringMatching(message),
  });

describe('a record that cannot be written', () => {
  whereMountingWorks(
    `is refused on a full disk, whole, and the next one has room again${reason}`,
    async () => {
      const directory = join(small ?? '', 'audit');
      mkdirSync(directory, { mode: 0o700 });
      const trail = open(directory);
      await trail.append(decision('before'));
      const ballast = join(small ?? '', 'ballast');
      expect(spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=4096']).status).not.toBe(0);
      let written = 0;
      let error: unknown = 'written';
      // What is left of the last page is used up first.
      while (error === 'written' && written < 50) {
        error = await failure(trail);
        written += error === 'written' ? 1 : 0;
      }
      expect(error).toEqual(failed(/^the audit trail \S+ cannot be used: the disk is full; make room$/));
      expect(recordsOf(directory)).toHaveLength(1 + written);
      await expect(Promise.all(decisions(30).map((record) => trail.append(record)))).rejects.toEqual(
        failed(/full/),
      );
      expect(recordsOf(directory)).toHaveLength(1 + written);
      rmSync(ballast);
      await trail.append(decision('after'));
      await trail.close();
      expect(recordsOf(directory).at(-1)?.request).toBe('after');
      expect(await problemsOf(directory)).toEqual([]);
    },
  );

  whereMountingWorks(`is refused on a disk that is full from the start${reason}`, async () => {
    const root = mountTmpfs('size=256k,mode=700') ?? '';
    const directory = join(root, 'audit');
    mkdirSync(directory, { mode: 0o700 });
    const ballast = join(root, 'ballast');
    spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=4096']);
    const trail = open(directory);
    expect(await failure(trail)).toEqual(failed(/the disk is full/));
    expect(readdirSync(directory)).toEqual([]);
    rmSync(ballast);
    await trail.append(decision('after'));
    await trail.close();
    expect(recordsOf(directory).map(({ type, seq }) => `${type} ${seq}`)).toEqual(['decision 1']);
    expect(await problemsOf(directory)).toEqual([]);
  });

  whereMountingWorks(`is refused on a read-only file system, until it is writable${reason}`, async () => {
    const root = mountTmpfs('size=1m,mode=700') ?? '';
    const directory = join(root, 'audit');
    mkdirSync(directory, { mode: 0o700 });
    // In a process that ends: this one would keep the database open.
    expect(await startWriter({ directory, name: 'w', count: 1, together: 1 }).ended).toBe(0);
    const remount = (how: string) => spawnSync('mount', ['-o', `remount,${how}`, root]).status;
    expect(remount('ro')).toBe(0);
    const trail = open(directory);
    expect(await failure(trail)).toEqual(failed(/cannot be used: its file system is read-only/));
    expect(remount('rw')).toBe(0);
    await trail.append(decision('after'));
    await trail.close();
    expect(recordsOf(directory)).toHaveLength(3);
    expect(await problemsOf(directory)).toEqual([]);
  });

  const asUser = process.geteuid?.() !== 0;
  const because = asUser ? '' : ' (not run: root may write everywhere)';
  (asUser ? it : it.skip)(`is refused in a directory that may not be written${because}`, async () => {
    const directory = makeDirectory();
    chmodSync(directory, 0o500);
    expect(await failure(open(directory))).toEqual(failed(/cannot be (opened|used)/));
    chmodSync(directory, 0o700);
  });

  it('is refused if the directory is gone', async () => {
    const directory = makeDirectory();
    rmSync(directory, { recursive: true });
    const trail = open(directory);
    expect(await failure(trail)).toEqual(failed(/its directory is gone$/));
    await trail.close();
  });

  it.each(['trail.db', 'trail.db-wal', 'trail.db-shm'])(
    'is refused if %s is a symbolic link',
    async (name) => {
      const directory = makeDirectory();
      if (name !== 'trail.db') {
        await write(directory, decisions(1));
        rmSync(join(directory, name), { force: true });
      }
      const target = join(makeRoot(), 'target');
      writeFileSync(target, '');
      symlinkSync(target, join(directory, name));
      expect(await failure(open(directory))).toMatchObject({ code: 'audit.failed' });
      expect(statSync(target).size).toBe(0);
    },
  );

  it('is refused if a directory lies where its database should', async () => {
    const directory = makeDirectory();
    mkdirSync(join(directory, 'trail.db'));
    expect(await failure(open(directory))).toMatchObject({ code: 'audit.failed' });
  });

  it('waits for a process that writes, and is refused while one keeps the database locked', async () => {
    const directory = makeDirectory();
    await write(directory, decisions(1));
    const other = new DatabaseSync(join(directory, 'trail.db'));
    other.exec('BEGIN IMMEDIATE');
    const trail = open(directory);
    expect(await failure(trail)).toEqual(failed(/another process keeps it locked/));
    other.exec('ROLLBACK');
    other.close();
    await trail.append(decision('later'));
    await trail.close();
    expect(recordsOf(directory)).toHaveLength(2);
  }, 30_000);
});
