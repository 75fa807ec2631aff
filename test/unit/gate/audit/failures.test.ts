import { spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { loadAddon } from '../../../../src/confine/native/load.ts';
import type { AuditTrail } from '../../../../src/gate/audit/open-audit.ts';
import { eventually } from '../../../support/eventually.ts';
import {
  decision,
  decisions,
  filesOf,
  makeDirectory,
  makeRoot,
  open,
  problemsOf,
  recordsOf,
  write,
} from './support.ts';

const mounted: string[] = [];

afterEach(() => {
  vi.useRealTimers();
});
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

const small = mountTmpfs('size=64k,mode=700');
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
      expect(error).toEqual(failed(/^the audit trail \S+ cannot be written: the disk is full; make room$/));
      expect(recordsOf(directory)).toHaveLength(1 + written);
      await expect(Promise.all(decisions(30).map((record) => trail.append(record)))).rejects.toEqual(
        failed(/full/),
      );
      expect(recordsOf(directory)).toHaveLength(1 + written);
      rmSync(ballast);
      await trail.append(decision('after'));
      await trail.close();
      expect(recordsOf(directory).at(-1)?.request).toBe('after');
      expect(problemsOf(directory)).toEqual([]);
    },
  );

  whereMountingWorks(`is refused on a disk that is full from the start${reason}`, async () => {
    const root = mountTmpfs('size=16k,mode=700') ?? '';
    const directory = join(root, 'audit');
    mkdirSync(directory, { mode: 0o700 });
    const ballast = join(root, 'ballast');
    spawnSync('dd', ['if=/dev/zero', `of=${ballast}`, 'bs=4096']);
    const trail = open(directory);
    expect(await failure(trail)).toEqual(failed(/the disk is full/));
    rmSync(ballast);
    await trail.append(decision('after'));
    await trail.close();
    expect(recordsOf(directory).map(({ type, seq }) => `${type} ${seq}`)).toEqual(['decision 1']);
    expect(problemsOf(directory)).toEqual([]);
  });

  whereMountingWorks(`is refused on a read-only file system, until it is writable${reason}`, async () => {
    const root = mountTmpfs('size=1m,mode=700') ?? '';
    const directory = join(root, 'audit');
    mkdirSync(directory, { mode: 0o700 });
    await write(directory, decisions(1));
    const remount = (how: string) => spawnSync('mount', ['-o', `remount,${how}`, root]).status;
    expect(remount('ro')).toBe(0);
    const trail = open(directory);
    expect(await failure(trail)).toEqual(
      failed(/head cannot be written: the file system is read-only; mount it writable/),
    );
    expect(remount('rw')).toBe(0);
    await trail.append(decision('after'));
    await trail.close();
    expect(recordsOf(directory)).toHaveLength(2);
    expect(problemsOf(directory)).toEqual([]);
  });

  const asUser = process.geteuid?.() !== 0;
  const because = asUser ? '' : ' (not run: root may write everywhere)';
  (asUser ? it : it.skip)(`is refused in a directory that may not be written${because}`, async () => {
    const directory = makeDirectory();
    chmodSync(directory, 0o500);
    expect(await failure(open(directory))).toEqual(failed(/it may not be written/));
    chmodSync(directory, 0o700);
  });

  it('is refused if the directory is gone', async () => {
    const directory = makeDirectory();
    rmSync(directory, { recursive: true });
    const trail = open(directory);
    expect(await failure(trail)).toEqual(failed(/its directory is gone$/));
    await trail.close();
  });

  it.each(['head', 'file'])('is refused if the %s is a symbolic link', async (which) => {
    const directory = makeDirectory();
    const target = join(makeRoot(), 'target');
    writeFileSync(target, '');
    const name = which === 'head' ? 'head' : `${new Date().toISOString().slice(0, 10)}.jsonl`;
    symlinkSync(target, join(directory, name));
    expect(await failure(open(directory))).toEqual(failed(/symbolic link/));
    expect(statSync(target).size).toBe(0);
  });

  it('is refused if a directory lies where its file should', async () => {
    const directory = makeDirectory();
    mkdirSync(join(directory, `${new Date().toISOString().slice(0, 10)}.jsonl`));
    expect(await failure(open(directory))).toEqual(failed(/cannot be written/));
    rmSync(join(directory, filesOf(directory)[0] ?? 'x'), { recursive: true });
  });

  it('waits for a lock that another one has, and gives up after five seconds', async () => {
    const directory = makeDirectory();
    let isFree = false;
    let tries = 0;
    const { tryLock, unlock } = loadAddon();
    const lock = {
      tryLock: (fd: number) => {
        tries += 1;
        return isFree && tryLock(fd);
      },
      unlock,
    };
    const trail = open(directory, { lock });
    const waiting = trail.append(decision('waits'));
    await eventually(() => expect(tries).toBeGreaterThan(5));
    isFree = true;
    await waiting;
    isFree = false;
    // The time of this process is the test's from here.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
    let given: unknown;
    const refused = failure(trail).then((error) => {
      given = error;
    });
    await vi.advanceTimersByTimeAsync(4_900);
    expect(given).toBeUndefined();
    await vi.advanceTimersByTimeAsync(200);
    await refused;
    expect(given).toEqual(failed(/another process keeps it locked for 5 s/));
    vi.useRealTimers();
    isFree = true;
    await trail.append(decision('later'));
    await trail.close();
    expect(recordsOf(directory)).toHaveLength(2);
  });
});
