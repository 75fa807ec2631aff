import fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { afterAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { decision, decisions, makeDirectory, open, recordsOf, result } from './support.ts';

const disk = {
  syncs: 0,
  error: null as NodeJS.ErrnoException | null,
  until: Promise.resolve(),
};

const { fdatasync } = fs;
fs.fdatasync = Object.assign((fd: number, done: fs.NoParamCallback) => {
  disk.syncs += 1;
  fdatasync(fd, (error) => void disk.until.then(() => done(disk.error ?? error)));
}, fdatasync);
syncBuiltinESMExports();
afterAll(() => {
  fs.fdatasync = fdatasync;
  syncBuiltinESMExports();
});

beforeEach(() => {
  disk.syncs = 0;
  disk.error = null;
  disk.until = Promise.resolve();
});

describe('a decision', () => {
  it('is synced to the disk before it is acknowledged', async () => {
    const trail = open(makeDirectory());
    await trail.append(decision('a'));
    expect(disk.syncs).toBe(1);
    await trail.append(decision('b'));
    expect(disk.syncs).toBe(2);
    await trail.close();
  });

  it('shares the sync with those that are written at the same time', async () => {
    const trail = open(makeDirectory());
    await Promise.all(decisions(64).map((record) => trail.append(record)));
    expect(disk.syncs).toBe(1);
    await trail.close();
  });

  it('shares the next sync if one is running', async () => {
    const directory = makeDirectory();
    const trail = open(directory);
    let release = () => {};
    disk.until = new Promise((done) => {
      release = done;
    });
    const first = trail.append(decision('a'));
    await vi.waitFor(() => expect(disk.syncs).toBe(1));
    const others: Promise<void>[] = [];
    for (const record of decisions(10)) {
      others.push(trail.append(record));
      await vi.waitFor(() => expect(recordsOf(directory)).toHaveLength(1 + others.length));
    }
    expect(disk.syncs).toBe(1);
    release();
    await Promise.all([first, ...others]);
    expect(disk.syncs).toBe(2);
    await trail.close();
  });

  it('is refused if the disk fails, and the next one is tried again', async () => {
    const directory = makeDirectory();
    const trail = open(directory);
    disk.error = Object.assign(new Error('EIO'), { code: 'EIO' });
    await expect(trail.append(decision('a'))).rejects.toMatchObject({
      code: 'audit.failed',
      message: expect.stringMatching(/cannot be used: EIO/),
    });
    disk.error = null;
    await trail.append(decision('b'));
    await trail.close();
    expect(recordsOf(directory)).toHaveLength(2);
  });
});

describe('a result', () => {
  it('waits for no disk', async () => {
    const directory = makeDirectory();
    const trail = open(directory);
    await trail.append(result('a'));
    expect(disk.syncs).toBe(0);
    expect(recordsOf(directory)).toHaveLength(1);
    await trail.close();
  });
});
