import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { makeArena, snapshot } from '../support/arena.ts';
import { until } from '../support/bystander.ts';
import { HOST, WITH_VIEW } from '../support/tiers.ts';

const it_ = it.skipIf(!HOST.namespaces);
const arena = makeArena();
const LASTS_MS = 4_000;

const running: ChildProcess[] = [];
afterEach(async () => {
  for (const child of running.splice(0)) {
    child.kill('SIGKILL');
    await new Promise((done) => child.once('close', done));
  }
});

/** Exchanges two names all the time, as fast as it can: renameat2(RENAME_EXCHANGE). */
function swapping(root: string, one: string, other: string): void {
  const script = `
import ctypes, os
c = ctypes.CDLL(None); one, other = os.fsencode(${JSON.stringify(join(root, one))}), os.fsencode(${JSON.stringify(join(root, other))})
print('swaps', flush=True)
while True: c.syscall(316 if os.uname().machine == 'x86_64' else 276, -100, one, -100, other, 2)
`;
  running.push(spawn('/usr/bin/python3', ['-c', script], { stdio: 'ignore' }));
}

/** A directory with files, and beside it a link that leads outside, to a directory with the same names. */
function battlefield() {
  const root = arena.freshCorner();
  const victims = join(arena.freshVictims(), 'd');
  for (const place of [join(root, 'd'), victims]) {
    mkdirSync(join(place, 'tree/in'), { recursive: true });
    for (const name of ['changed', 'doomed', 'tree/in/f', 'moved']) writeFileSync(join(place, name), 'old');
  }
  return { root, victims };
}

describe('while a directory and a link to the outside are exchanged all the time', () => {
  it('a writer that knows nothing of it writes outside', async () => {
    const { root, victims } = battlefield();
    symlinkSync(victims, join(root, 'link'));
    const before = snapshot(victims);
    swapping(root, 'd', 'link');
    const write = () => {
      try {
        writeFileSync(join(root, 'd/made.new'), 'evil');
        renameSync(join(root, 'd/made.new'), join(root, 'd/made'));
      } catch {
        // They were exchanged between the two.
      }
    };
    const isOutside = () => {
      for (let round = 0; round < 200; round++) write();
      return ['made', 'made.new'].some((name) => existsSync(join(victims, name)));
    };
    expect(await until(isOutside, 20_000)).toBe(true);
    expect(snapshot(victims)).not.toEqual(before);
  }, 60_000);

  it_(
    'apply, undo and discard change nothing outside, and do their work again afterwards',
    async () => {
      const { root, victims } = battlefield();
      const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root });
      const changes = await sandbox.changes();
      const command =
        'cd d; echo new > changed; echo made > made; rm doomed; rm -r tree; mkdir -p fresh/er; echo 1 > fresh/er/f; mv moved fresh; ln -s x l; for i in $(seq 40); do echo $i > many$i; done';
      const preview = async () => (await sandbox.run(command, { effect: 'preview' })).changes?.id ?? '';
      let id = await preview();
      symlinkSync(victims, join(root, 'link'));
      const before = snapshot(victims);
      swapping(root, 'd', 'link');
      const end = performance.now() + LASTS_MS;
      let [placed, refused] = [0, 0];
      const isTried = () => placed > 20 && refused > 20;
      while (performance.now() < end || (!isTried() && performance.now() < end + 20_000)) {
        for (const doing of ['apply', 'undo'] as const) {
          try {
            const { done, notDone } = await changes[doing](id);
            placed += done;
            refused += notDone.length;
          } catch (error) {
            // Nothing was there to be taken back, or it goes on with the next one.
            expect(error).toMatchObject({ code: expect.stringMatching(/^changes\.(state|incomplete)$/) });
          }
          await changes.diff(id).catch(() => '');
        }
        expect(snapshot(victims)).toEqual(before);
      }
      expect(isTried()).toBe(true);
      await changes.discard(id);
      for (const child of running.splice(0)) {
        child.kill('SIGKILL');
        await new Promise((done) => child.once('close', done));
      }
      // Whichever of them has which name now.
      rmSync(join(root, 'd'), { recursive: true });
      rmSync(join(root, 'link'), { force: true, recursive: true });
      expect(snapshot(victims)).toEqual(before);
      mkdirSync(join(root, 'd'));
      id = (await sandbox.run('echo 1 > d/a', { effect: 'preview' })).changes?.id ?? '';
      expect((await changes.apply(id)).notDone).toEqual([]);
    },
    60_000,
  );
});
