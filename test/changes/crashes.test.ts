import { execFileSync } from 'node:child_process';
import fs, { lstatSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { constants } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { loadAddon, type NativeAddon } from '../../src/confine/native/index.ts';
import { ChangeSets, type PreparedSandbox, stateDirectory } from '../../src/run/index.ts';
import { makeArena } from '../support/arena.ts';
import { HOST, WITH_VIEW } from '../support/tiers.ts';

// A process that applies changes, or takes them back, may end at any call that changes something: what is done from then on fails
// here. The next process finishes it, or takes it back, and nothing is lost.

/** How many calls a process has left. From then on each fails. */
let left = Number.POSITIVE_INFINITY;
const hasEnded = () => left < 0;
const ended = () => Object.assign(new Error('the process has ended'), { code: 'EIO' });
/** Counts a call. `lastWords`: what is still done by the last one. */
function counted(lastWords: () => unknown = () => {}): void {
  if (hasEnded()) throw ended();
  if (--left >= 0) return;
  lastWords();
  throw ended();
}

const CHANGING = [
  ...['chmodSync', 'fchmodSync', 'linkSync', 'lutimesSync', 'mkdirSync', 'renameSync', 'rmdirSync', 'rmSync'],
  ...['symlinkSync', 'truncateSync', 'unlinkSync', 'utimesSync', 'writeFileSync'],
] as const;

const whole = { ...fs };
beforeAll(() => {
  for (const name of CHANGING) {
    const real: (...words: never[]) => unknown = whole[name];
    const counts = (...words: never[]) => {
      const [file, text] = words as unknown[];
      // A line may be written in part.
      const isLine = name === 'writeFileSync' && typeof file === 'number' && typeof text === 'string';
      counted(() => isLine && whole.writeFileSync(file, text.slice(0, text.length / 2)));
      return real(...words);
    };
    Object.assign(fs, { [name]: counts });
  }
  syncBuiltinESMExports();
});
afterAll(() => {
  Object.assign(fs, Object.fromEntries(CHANGING.map((name) => [name, whole[name]])));
  syncBuiltinESMExports();
});

const arena = makeArena();
const elsewhere = mkdtempSync('/dev/shm/sandbox-run-');
const shared = process.env.XDG_STATE_HOME;
beforeEach(() => {
  process.env.XDG_STATE_HOME = arena.freshCorner();
});
afterAll(() => {
  process.env.XDG_STATE_HOME = shared;
  // Directories that are kept may be shut for an ordinary user.
  execFileSync('chmod', ['-R', 'u+rwX', elsewhere]);
  rmSync(elsewhere, { recursive: true });
});

/** The addon, as a process has it that may end. `exchanges`: the file system can exchange two names at once. */
function mortal(exchanges: boolean): NativeAddon {
  const changing = ['exchangeNames', 'renameVacant', 'removeLayerMarks', 'copyContent', 'emptyDirectory'];
  return new Proxy(loadAddon(), {
    get(target, name) {
      const real = Reflect.get(target, name);
      if (!changing.includes(String(name))) return real;
      return (...words: unknown[]) => {
        if (!exchanges && (name === 'exchangeNames' || name === 'renameVacant'))
          return { stage: 'rename', errno: constants.errno.EINVAL, path: '' };
        counted();
        return real(...words);
      };
    },
  });
}

const MAKE = `echo 1 > changed; echo 2 > gone; echo 3 > linked; ln linked other; ln -s gone link; mkdir -p tree/in full; echo 4 > tree/in/f
echo 5 > tree/g; echo 6 > becomes-link; echo 7 > becomes-directory; mkdir becomes-file; echo 8 > becomes-file/f; echo 9 > moved; ln -s x becomes-plain
echo 10 > full/f; chmod 500 tree/in; chmod 640 changed`;
const CHANGE = `echo new >> changed; rm gone linked link; chmod 700 tree/in; rm -r tree; ln -sf t becomes-link; rm becomes-directory; mkdir becomes-directory
echo in > becomes-directory/f; rm -r becomes-file; echo file > becomes-file; mv moved to; mkdir -p made/in; echo made > made/in/f; ln made/in/f made/g
rm becomes-plain; echo plain > becomes-plain; chmod 750 full; echo > full/g; ln -s made/g new-link`;

/** All that is in a tree: names, kinds, permissions, targets, contents; and numbers of names, which copies do not have. */
function picture(root: string, isWithNames: boolean): string {
  const lines = readdirSync(root, { recursive: true, encoding: 'utf8' }).map((path) => {
    const at = join(root, path);
    const info = lstatSync(at);
    const content = info.isFile() ? readFileSync(at, 'utf8') : info.isSymbolicLink() ? readlinkSync(at) : '';
    return [path, info.mode, ...(isWithNames ? [info.nlink] : []), content].join(' ');
  });
  return lines.toSorted().join('\n');
}

async function waiting() {
  const root = arena.freshCorner();
  execFileSync('bash', ['-c', MAKE], { cwd: root });
  const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root });
  const { changes, warnings } = await sandbox.run(`umask 022; ${CHANGE}`, { effect: 'preview' });
  expect(warnings).toEqual([]);
  await sandbox.close();
  const prepared = { plan: { workspace: root }, settle: () => [] } as unknown as PreparedSandbox;
  return { root, prepared, id: changes?.id ?? '' };
}

type Doing = 'apply' | 'applyAll' | 'undo';

describe.skipIf(!HOST.namespaces).each<readonly ['apply' | 'applyAll', string, boolean]>([
  ['apply', 'here', true],
  ['applyAll', 'here', true],
  ['apply', 'on another file system', true],
  ['applyAll', 'here', false],
])(
  '%s with the change set %s, names are exchanged at once: %s (needs namespaces)',
  (forth, where, exchanges) => {
    const prepare = async () => {
      if (where !== 'here') process.env.XDG_STATE_HOME = mkdtempSync(join(elsewhere, 'state-'));
      const { root, prepared, id } = await waiting();
      const addon = mortal(exchanges);
      /** Does it as a new process, which may end. Returns whether it did. */
      const does = async (doing: Doing, calls = Number.POSITIVE_INFINITY): Promise<boolean> => {
        left = calls;
        let isCutShort = false;
        try {
          const { notDone } = await new ChangeSets(addon, stateDirectory())[doing](prepared, id);
          expect(notDone).toEqual([]);
        } catch (error) {
          if (!hasEnded()) throw error;
        } finally {
          isCutShort = hasEnded();
          left = Number.POSITIVE_INFINITY;
        }
        return isCutShort;
      };
      /** As the next one: what had been done by then is nothing to take back. */
      const finishes = (doing: Doing) =>
        does(doing).catch((error) => expect(error).toMatchObject({ code: 'changes.state' }));
      const isAs = (wanted: string, what: string) => {
        expect(picture(root, where === 'here'), what).toBe(wanted);
        expect(readdirSync(root).filter((name) => name.startsWith('.sandbox-run'))).toEqual([]);
      };
      const before = picture(root, where === 'here');
      await does(forth);
      const after = picture(root, where === 'here');
      expect(after).not.toBe(before);
      await does('undo');
      isAs(before, 'taken back');
      return { does, finishes, isAs, before, after };
    };

    it('is finished wherever it ends, and taken back', { timeout: 300_000 }, async () => {
      const { does, finishes, isAs, before, after } = await prepare();
      let calls = 0;
      for (; await does(forth, calls); calls++) {
        await finishes(forth);
        isAs(after, `ended with call ${calls}`);
        await does('undo');
        isAs(before, `ended with call ${calls}, and taken back`);
      }
      expect(calls).toBeGreaterThan(50);
    });

    it('is taken back wherever it ends, also if that ends', { timeout: 300_000 }, async () => {
      const { does, finishes, isAs, before } = await prepare();
      for (let calls = 0; await does(forth, calls); calls++) {
        await does('undo', calls % 11).catch((error) =>
          expect(error).toMatchObject({ code: 'changes.state' }),
        );
        await finishes('undo');
        isAs(before, `ended with call ${calls}`);
      }
      await does('undo');
    });

    it('is taken back wherever taking back ends, and can be applied again', {
      timeout: 300_000,
    }, async () => {
      const { does, finishes, isAs, before, after } = await prepare();
      await does(forth);
      let calls = 0;
      for (; await does('undo', calls); calls++) {
        await does('undo', calls % 7);
        await finishes('undo');
        isAs(before, `ended with call ${calls}`);
        await does(forth);
        isAs(after, `ended with call ${calls}, and applied again`);
      }
      expect(calls).toBeGreaterThan(50);
    });
  },
);
