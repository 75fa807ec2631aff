import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { openToRead } from '../../src/run/index.ts';
import { makeArena, snapshot } from '../support/arena.ts';
import { until } from '../support/bystander.ts';
import { HOST, WITH_VIEW } from '../support/tiers.ts';
import { useOwnState } from './support/own-state.ts';
import { runUntilSpare } from './support/spare-layers.ts';

const it_ = it.skipIf(!HOST.namespaces);
const describe_ = describe.skipIf(!HOST.namespaces);
const arena = makeArena();
useOwnState(arena);
/** Races are run by how often something was tried. On a machine that does other things that takes longer, but not so long. */
const AT_MOST_MS = 100_000;
const LONG = 2 * AT_MOST_MS;

const running: ChildProcess[] = [];
async function endAll(): Promise<void> {
  for (const child of running.splice(0)) {
    child.kill('SIGKILL');
    await new Promise((done) => child.once('close', done));
  }
}
afterEach(endAll);

/** Starts what disturbs; it has begun when it has printed something. */
async function startPython(script: string): Promise<void> {
  const child = spawn('/usr/bin/python3', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  running.push(child);
  await once(child.stdout, 'data');
}

/** Exchanges two names all the time, as fast as it can: renameat2(RENAME_EXCHANGE). */
function swapping(root: string, one: string, other: string): Promise<void> {
  const script = `
import ctypes, os
c = ctypes.CDLL(None); one, other = os.fsencode(${JSON.stringify(join(root, one))}), os.fsencode(${JSON.stringify(join(root, other))})
print('swaps', flush=True)
while True: c.syscall(316 if os.uname().machine == 'x86_64' else 276, -100, one, -100, other, 2)
`;
  return startPython(script);
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
  it(
    'a writer that knows nothing of it writes outside',
    async () => {
      const { root, victims } = battlefield();
      symlinkSync(victims, join(root, 'link'));
      const before = snapshot(victims);
      await swapping(root, 'd', 'link');
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
      expect(await until(isOutside)).toBe(true);
      expect(snapshot(victims)).not.toEqual(before);
    },
    LONG,
  );

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
      await swapping(root, 'd', 'link');
      const end = performance.now() + AT_MOST_MS;
      let [placed, refused] = [0, 0];
      const isTried = () => placed > 20 && refused > 20;
      for (let round = 0; round < 20 || (!isTried() && performance.now() < end); round++) {
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
      // What stopped in the middle has to be finished first, which is possible once nothing is exchanged any more.
      const isGone = await changes.discard(id).then(
        () => true,
        (error: unknown) => {
          expect(error).toMatchObject({ code: 'changes.state' });
          return false;
        },
      );
      await endAll();
      if (!isGone) {
        await changes.undo(id).catch((error) => expect(error).toMatchObject({ code: 'changes.state' }));
        await changes.discard(id);
      }
      // Whichever of them has which name now.
      rmSync(join(root, 'd'), { recursive: true });
      rmSync(join(root, 'link'), { force: true, recursive: true });
      expect(snapshot(victims)).toEqual(before);
      mkdirSync(join(root, 'd'));
      id = (await sandbox.run('echo 1 > d/a', { effect: 'preview' })).changes?.id ?? '';
      expect((await changes.apply(id)).notDone).toEqual([]);
    },
    LONG,
  );
});

// Root may read everything.
describe.skipIf(process.getuid?.() === 0)(
  'a file that its owner may not read, while it and a link to the outside are exchanged',
  () => {
    /** By its name, which may be another object's by then. */
    const opensByName = (path: Buffer): number => {
      const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
      try {
        return openSync(path, flags);
      } catch {
        chmodSync(path, 0o400);
        const file = openSync(path, flags);
        chmodSync(path, 0);
        return file;
      }
    };
    /** Whether the permissions of what is outside changed. */
    async function attacked(opens: (path: Buffer) => number, times: number): Promise<boolean> {
      const root = arena.freshCorner();
      const victims = arena.freshVictims();
      writeFileSync(join(root, 'f'), 'own', { mode: 0 });
      chmodSync(join(root, 'f'), 0);
      symlinkSync(join(victims, 'file'), join(root, 'link'));
      const before = snapshot(victims);
      await swapping(root, 'f', 'link');
      const end = performance.now() + AT_MOST_MS;
      let [opened, refused] = [0, 0];
      const isTried = () => opened > times && refused > times;
      const isChanged = () => JSON.stringify(snapshot(victims)) !== JSON.stringify(before);
      while (performance.now() < end && !isTried() && !isChanged())
        for (let round = 0; round < 200; round++)
          try {
            closeSync(opens(Buffer.from(join(root, 'f'))));
            opened++;
          } catch {
            refused++;
          }
      expect(isChanged() || isTried(), `${opened} opened, ${refused} refused`).toBe(true);
      return isChanged();
    }

    it(
      'has the permissions of something outside changed by who opens it by its name',
      async () => {
        expect(await attacked(opensByName, Number.MAX_SAFE_INTEGER)).toBe(true);
      },
      LONG,
    );

    it(
      'is read, and nothing outside is changed',
      async () => {
        expect(await attacked(openToRead, 5_000)).toBe(false);
      },
      LONG,
    );
  },
);

describe('while another process takes the names of what is being made', () => {
  it_(
    'apply and undo change nothing outside, and are finished when it has ended',
    async () => {
      const root = arena.freshCorner();
      const victims = arena.freshVictims();
      const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root });
      const changes = await sandbox.changes();
      writeFileSync(join(root, 'old'), 'old');
      const command = 'for i in $(seq 100); do echo $i > many$i; done; rm old; mkdir old; ln -s x l';
      const id = (await sandbox.run(command, { effect: 'preview' })).changes?.id ?? '';
      const before = snapshot(victims);
      // It sees one name, and takes the next ones: with links to the outside, directories and FIFOs.
      const script = `
import os, re
os.chdir(${JSON.stringify(root)}); print('takes', flush=True)
while True:
    for name in os.listdir('.'):
        found = re.match(r'(\\.sandbox-run-[0-9a-f]{24}-)(\\d+)', name)
        if not found: continue
        for at in range(int(found[2]), int(found[2]) + 40):
            for end in ['', '-new']:
                try:
                    path = '%s%d%s' % (found[1], at, end)
                    if at % 3 == 0: os.symlink(${JSON.stringify(join(victims, 'file'))}, path)
                    elif at % 3 == 1: os.makedirs(path + '/in')
                    else: os.mkfifo(path)
                except OSError: pass
`;
      await startPython(script);
      for (let round = 0; round < 3; round++)
        for (const doing of ['apply', 'undo'] as const)
          await changes[doing](id).catch((error) =>
            expect(error).toMatchObject({ code: expect.stringMatching(/^changes\.(state|incomplete)$/) }),
          );
      expect(snapshot(victims)).toEqual(before);
      await endAll();
      await changes.undo(id).catch((error) => expect(error).toMatchObject({ code: 'changes.state' }));
      expect(snapshot(victims)).toEqual(before);
      for (const name of readdirSync(root))
        if (name.startsWith('.sandbox-run-') || name.startsWith('many') || name === 'l')
          rmSync(join(root, name), { recursive: true });
      expect(readFileSync(join(root, 'old'), 'utf8')).toBe('old');
    },
    LONG,
  );
});

describe_(
  'a file that somebody changes at about the moment at which a command begins (needs namespaces)',
  () => {
    const begun = async () => {
      const root = arena.freshCorner();
      const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root, undo: 'always' });
      // The layer of the next one is ready then.
      const prepared = () => runUntilSpare(sandbox, 'echo >> other');
      return { file: join(root, 'f'), sandbox, prepared };
    };

    it('just after it is in conflict', async () => {
      const { file, sandbox, prepared } = await begun();
      const left: string[] = [];
      for (let round = 0; round < 12; round++) {
        writeFileSync(file, 'old\n');
        await prepared();
        let isChanged = false;
        const onOutput = () => {
          if (!isChanged) writeFileSync(file, 'mine\n');
          isChanged = true;
        };
        // What nobody reads yet holds the command back.
        const command = 'echo; head -c 8000000 /dev/zero; echo command >> f';
        const { warnings } = await sandbox.run(command, { onOutput, maxOutput: 10 });
        left.push(`${readFileSync(file, 'utf8')}${warnings[0]}`);
      }
      expect(new Set(left)).toEqual(
        new Set(['mine\nf is not in the workspace: it changed in the workspace while the command ran']),
      );
    });

    it('just before it is not', async () => {
      const { file, sandbox, prepared } = await begun();
      for (let round = 0; round < 12; round++) {
        await prepared();
        writeFileSync(file, 'mine\n');
        const { warnings } = await sandbox.run('echo command >> f');
        expect([readFileSync(file, 'utf8'), warnings]).toEqual(['mine\ncommand\n', []]);
      }
    });
  },
);
