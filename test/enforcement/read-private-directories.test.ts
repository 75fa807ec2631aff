import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import type { Sandbox } from '../../src/index.ts';
import { privateParentIn } from '../../src/workspace/index.ts';
import { makeArena, SECRET } from '../support/arena.ts';
import { TIERS } from '../support/tiers.ts';

const NAME = basename(privateParentIn('/').path);
/** What the one sandbox has in each of its private places. */
const WRITES = `for d in /tmp "$HOME" /dev/shm; do mkdir -p "$d" && echo ${SECRET} >"$d/of-another" && echo "$d"; done; sleep 1000 & echo $!`;
const SEARCH = (places: readonly string[]) =>
  `find ${places.join(' ')} -name of-another 2>/dev/null | xargs -r cat; for d in ${places.join(' ')}; do ls -A $d/${NAME} 2>/dev/null; mv $d/${NAME} $d/${NAME}-moved 2>/dev/null && echo moved; done; true`;

/** A temporary directory of this file's own, as other tests make sandboxes at the same time. */
const before = process.env.TMPDIR;
const own = mkdtempSync(join(realpathSync(tmpdir()), 'private-directories-'));
const arena = makeArena();
process.env.TMPDIR = own;
afterAll(() => {
  if (before === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = before;
  rmSync(own, { recursive: true, force: true });
});

describe.each(TIERS.filter(({ view }) => view))('reading what other sandboxes have: $name', (tier) => {
  const places = [own, '/dev/shm'];
  const placed = (sandbox: Sandbox) => [sandbox.plan.temporaryParent, sandbox.plan.memoryParent];

  it('fails, whether the place is granted or the temporary directory is that of the host', async () => {
    const other = await arena.sandbox(tier);
    const shell = await other.session();
    try {
      const written = await shell.run(WRITES);
      const { status, exitCode, signal, error, stderr, warnings } = written;
      // What became of it, as the first line of a failure is what CI keeps.
      const became = JSON.stringify({ status, exitCode, signal, error, stderr, warnings });
      expect(written.stdout, became).toContain('/dev/shm');
      for (const options of [
        { writable: places },
        { readable: places },
        { policy: { filesystem: { tmp: 'host' as const, write: ['/dev/shm'] } } },
      ]) {
        const sandbox = await arena.sandbox(tier, options);
        expect((await sandbox.run(SEARCH(places))).stdout).toBe('');
        // The place itself is what was granted.
        expect((await sandbox.run(`ls -d ${own} && ls -d /dev/shm`)).exitCode).toBe(0);
      }
      expect((await shell.run('cat /tmp/of-another')).stdout).toBe(`${SECRET}\n`);
    } finally {
      await shell.close();
    }
  });

  it('keeps them in one directory of the user alone, which each sandbox makes', async () => {
    const sandbox = await arena.sandbox(tier);
    expect(placed(sandbox)).toEqual([join(own, NAME), join('/dev/shm', NAME)]);
    expect(statSync(join(own, NAME)).mode & 0o7777).toBe(0o700);
    // Cleaners of temporary directories remove what is old.
    rmSync(join(own, NAME), { recursive: true });
    const next = await arena.sandbox(tier);
    expect((await next.run('echo x > /tmp/x && cat /tmp/x')).stdout).toBe('x\n');
    expect(readdirSync(own).filter((name) => name.startsWith('sandbox-run'))).toEqual([]);
  });

  it('takes nothing for that directory that may be somebody else’s, and says so', async () => {
    const forged = mkdtempSync(join(own, 'forged-'));
    const elsewhere = join(forged, 'elsewhere');
    onTestFinished(() => {
      process.env.TMPDIR = own;
    });
    process.env.TMPDIR = forged;
    mkdirSync(elsewhere, { mode: 0o700 });
    symlinkSync(elsewhere, join(forged, NAME));
    const linked = await arena.sandbox(tier);
    expect(linked.plan.temporaryParent).toBe(forged);
    const result = await linked.run('echo x > /tmp/x && cat /tmp/x');
    expect(result.stdout).toBe('x\n');
    expect(result.warnings.join()).toContain(join(forged, NAME));
    expect(readdirSync(elsewhere)).toEqual([]);
    rmSync(join(forged, NAME));
    mkdirSync(join(forged, NAME));
    chmodSync(join(forged, NAME), 0o777);
    const open = await arena.sandbox(tier);
    expect(open.plan.temporaryParent).toBe(forged);
    expect(readdirSync(join(forged, NAME))).toEqual([]);
    rmSync(join(forged, NAME), { recursive: true });
    expect((await arena.sandbox(tier)).plan.temporaryParent).toBe(join(forged, NAME));
  });

  it('removes what launchers of this and of older versions left there', async () => {
    const fresh = mkdtempSync(join(own, 'left-'));
    onTestFinished(() => {
      process.env.TMPDIR = own;
    });
    process.env.TMPDIR = fresh;
    const left = [join(fresh, 'sandbox-run-slot-aaaaaa'), join(fresh, NAME, 'sandbox-run-slot-bbbbbb')];
    for (const path of left) {
      mkdirSync(path, { recursive: true, mode: 0o700 });
      chmodSync(path, 0o700);
    }
    chmodSync(join(fresh, NAME), 0o700);
    await (await arena.sandbox(tier)).run('true');
    expect(left.filter(existsSync)).toEqual([]);
  });
});
