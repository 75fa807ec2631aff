import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { loadAddon, type NativeAddon } from '../../src/confine/native/index.ts';
import { ChangeSets, type PreparedSandbox, stateDirectory } from '../../src/run/index.ts';
import { makeArena } from '../support/arena.ts';
import { HOST, WITH_VIEW } from '../support/tiers.ts';

// Apply and undo look at what is in a place, and put something else there: what somebody does between the two stays.

const arena = makeArena();
const describe_ = describe.skipIf(!HOST.namespaces);
const shared = process.env.XDG_STATE_HOME;
beforeEach(() => {
  process.env.XDG_STATE_HOME = arena.freshCorner();
});
afterAll(() => {
  process.env.XDG_STATE_HOME = shared;
});

/** What is called before, or has done its work when, somebody does something. */
type Moment = 'copyContent' | 'hasWriter' | 'walkTree' | 'exchangeNames' | 'renameVacant';

type Act = () => void;

/** The addon, with which somebody does something in the middle: once, or one thing each time. */
function interrupted(
  moment: Moment,
  acts: readonly Act[],
  whole: NativeAddon,
): { readonly addon: NativeAddon; isDone(): boolean } {
  const left = [...acts];
  const once = () => left.shift()?.();
  const addon = new Proxy(whole, {
    get(target, name) {
      const real = Reflect.get(target, name);
      if (name !== moment) return real;
      return (...words: unknown[]) => {
        const done = words.at(-1);
        if (moment !== 'walkTree' || typeof done !== 'function') once();
        else
          return real(...words.slice(0, -1), (...found: unknown[]) => {
            once();
            done(...found);
          });
        return real(...words);
      };
    },
  });
  return { addon, isDone: () => left.length === 0 };
}

/** The addon on a file system that has only the plain rename(2), as NFS. `errors`: what an exchange fails with first. */
const withoutExchange = (errors: number[] = []) =>
  new Proxy(loadAddon(), {
    get(target, name) {
      const fails = (errno = constants.errno.EINVAL) => ({ stage: 'rename', errno, path: '' });
      if (name === 'exchangeNames') return () => fails(errors.shift());
      return name === 'renameVacant' ? () => fails() : Reflect.get(target, name);
    },
  });

/** A workspace, and a command that has run and waits to be applied there. */
async function waiting(command: string, whole = loadAddon()) {
  const root = arena.freshCorner();
  for (const name of ['f', 'd/in/x', 'other/x']) {
    mkdirSync(join(root, name, '..'), { recursive: true });
    writeFileSync(join(root, name), 'old');
  }
  symlinkSync('f', join(root, 'l'));
  const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root });
  const { changes } = await sandbox.run(command, { effect: 'preview' });
  const prepared = { plan: { workspace: root }, settle: () => [] } as unknown as PreparedSandbox;
  const id = changes?.id ?? '';
  const read = (name: string) => readFileSync(join(root, name), 'utf8');
  const does = async (doing: 'apply' | 'applyAll' | 'undo', moment?: Moment, ...acts: Act[]) => {
    const { addon, isDone } = interrupted(moment ?? 'walkTree', acts, whole);
    const { notDone } = await new ChangeSets(addon, stateDirectory())[doing](prepared, id);
    expect(isDone()).toBe(true);
    expect(readdirSync(root).filter((name) => name.startsWith('.sandbox-run'))).toEqual([]);
    return Object.fromEntries(notDone.map(({ path, why }) => [path, why]));
  };
  return { root, read, does, id };
}

/** Different ways to change a file. */
const EDITS: readonly (readonly [string, (at: string) => void])[] = [
  ['writes to it', (at) => writeFileSync(at, 'mine')],
  [
    'puts another one in its place',
    (at) => {
      writeFileSync(`${at}.new`, 'mine');
      renameSync(`${at}.new`, at);
    },
  ],
];

describe_('a file that apply is about to replace (needs namespaces)', () => {
  describe.each([
    ['apply', 'copyContent'],
    ['apply', 'exchangeNames'],
    ['applyAll', 'hasWriter'],
    ['applyAll', 'exchangeNames'],
  ] as const)('%s, at %s', (doing, moment) => {
    it.each(EDITS)('stays when somebody %s', async (_, edit) => {
      const { root, read, does } = await waiting('echo theirs > f');
      expect(await does(doing, moment, () => edit(join(root, 'f')))).toEqual({ f: 'it changed' });
      expect(read('f')).toBe('mine');
      // What the command left is not lost.
      rmSync(join(root, 'f'));
      expect(await does(doing)).toEqual({ f: 'it is not there any more' });
    });

    it('stays away when somebody removes it', async () => {
      const { root, does } = await waiting('echo theirs > f');
      expect(await does(doing, moment, () => rmSync(join(root, 'f')))).toEqual({
        f: expect.stringMatching(/^it (changed|is not there any more)$/),
      });
      expect(existsSync(join(root, 'f'))).toBe(false);
    });

    it('keeps its permissions when somebody changes them', async () => {
      const { root, read, does } = await waiting('echo theirs > f');
      expect(await does(doing, moment, () => chmodSync(join(root, 'f'), 0o600))).toEqual({ f: 'it changed' });
      expect(read('f')).toBe('old');
    });
  });

  it.each(['apply', 'applyAll'] as const)(
    '%s: is back when somebody changed it, and then takes away what came in its place',
    async (doing) => {
      const { root, read, does } = await waiting('echo theirs > f');
      const at = join(root, 'f');
      const change = () => writeFileSync(at, 'mine');
      expect(await does(doing, 'exchangeNames', change, () => rmSync(at))).toEqual({ f: 'it changed' });
      expect(read('f')).toBe('mine');
    },
  );

  it('can be shown and applied later when what somebody did is gone again', async () => {
    const { root, read, does, id } = await waiting('echo theirs > new');
    expect(await does('applyAll', 'renameVacant', () => writeFileSync(join(root, 'new'), 'mine'))).toEqual({
      new: 'something is there that was not',
    });
    expect(read('new')).toBe('mine');
    rmSync(join(root, 'new'));
    expect(new ChangeSets().diff(id)).toContain('+theirs');
    expect([await does('apply'), read('new')]).toEqual([{}, 'theirs\n']);
  });
});

describe_('a name that apply is about to give (needs namespaces)', () => {
  it.each([
    ['apply', 'copyContent', 'echo theirs > new'],
    ['apply', 'renameVacant', 'echo theirs > new'],
    ['applyAll', 'hasWriter', 'echo theirs > new'],
    ['apply', 'renameVacant', 'ln -s f new'],
  ] as const)('%s, at %s: %s: is somebody else’s who takes it', async (doing, moment, command) => {
    const { root, read, does } = await waiting(command);
    expect(await does(doing, moment, () => writeFileSync(join(root, 'new'), 'mine'))).toEqual({
      new: 'something is there that was not',
    });
    expect(read('new')).toBe('mine');
    expect(await does('undo').catch(({ code }) => code)).toBe('changes.state');
    expect(read('new')).toBe('mine');
  });
});

describe_('a directory that apply is about to take away (needs namespaces)', () => {
  it('stays when somebody makes a file in it', async () => {
    const { root, read, does } = await waiting('rm -r d');
    const make = () => writeFileSync(join(root, 'd/in/mine'), 'mine');
    expect(await does('apply', 'walkTree', make)).toEqual({ d: 'something in it changed' });
    expect([read('d/in/mine'), read('d/in/x')]).toEqual(['mine', 'old']);
  });

  it('stays when somebody changed a file in it since the command ended, also with applyAll', async () => {
    const { root, read, does } = await waiting('rm -r d');
    writeFileSync(join(root, 'd/in/x'), 'mine');
    expect(await does('applyAll')).toEqual({ d: 'something in it changed' });
    expect(read('d/in/x')).toBe('mine');
  });

  it('stays when a file was to come in its place', async () => {
    const { root, read, does } = await waiting('rm -r d; echo theirs > d');
    const make = () => writeFileSync(join(root, 'd/in/mine'), 'mine');
    expect(await does('apply', 'copyContent', make)).toEqual({ d: 'something in it changed' });
    expect([read('d/in/mine'), read('d/in/x')]).toEqual(['mine', 'old']);
  });
});

describe_('a link that apply is about to replace (needs namespaces)', () => {
  it('is back when somebody puts something else there, which stays', async () => {
    const { root, read, does } = await waiting('rm l; echo theirs > l');
    const replace = () => {
      rmSync(join(root, 'l'));
      writeFileSync(join(root, 'l'), 'mine');
    };
    expect([await does('apply', 'exchangeNames', replace), read('l')]).toEqual([{ l: 'it changed' }, 'mine']);
  });

  it.each(['mkdir l', 'echo theirs > l'])(
    'is named where names cannot be exchanged, and the name is taken by the time the other one is to come: %s',
    async (make) => {
      const isVacant = make.startsWith('mkdir');
      const { root, read, does } = await waiting(`rm l; ${make}`, withoutExchange());
      const take = () => {
        rmSync(join(root, 'l'), { force: true });
        writeFileSync(join(root, 'l'), 'mine');
      };
      const notDone = await does('apply', isVacant ? 'renameVacant' : 'exchangeNames', take);
      const why = isVacant
        ? /something is there that was not; what was there before is .*kept/
        : /it changed/;
      expect([notDone, read('l')]).toEqual([{ l: expect.stringMatching(why) }, 'mine']);
    },
  );
});

describe_('what undo is about to take back (needs namespaces)', () => {
  it.each(['apply', 'applyAll'] as const)('after %s: stays when somebody changes it', async (doing) => {
    for (const [, edit] of EDITS) {
      const { root, read, does } = await waiting('echo theirs > f');
      await does(doing);
      expect(await does('undo', 'exchangeNames', () => edit(join(root, 'f')))).toEqual({
        f: 'it changed since it was applied',
      });
      expect(read('f')).toBe('mine');
    }
  });

  it.each(['apply', 'applyAll'] as const)('after %s: is back when somebody removes it', async (doing) => {
    const { root, read, does } = await waiting('echo theirs > f');
    await does(doing);
    expect(await does('undo', 'exchangeNames', () => rmSync(join(root, 'f')))).toEqual({});
    expect(read('f')).toBe('old');
  });

  it('stays when somebody makes again what the command took away', async () => {
    const { root, read, does } = await waiting('rm f; rm -r d');
    await does('apply');
    const make = () => {
      writeFileSync(join(root, 'f'), 'mine');
      mkdirSync(join(root, 'd'));
    };
    expect(await does('undo', 'renameVacant', make)).toEqual({
      f: 'it changed since it was applied',
      d: 'it changed since it was applied',
    });
    expect([read('f'), readdirSync(join(root, 'd'))]).toEqual(['mine', []]);
  });
});

describe_('undo that ends when a copy from another file system is in its place (needs namespaces)', () => {
  it.each(['rm f', 'rm l', 'rm l; echo theirs > l', 'echo theirs > f'])(
    '%s: is finished',
    async (command) => {
      const { root, does, read, id } = await waiting(command);
      await does('apply');
      let calls = 0;
      const fails = (name: string) => Object.assign(new Error(name), { code: 'EIO' });
      const addon = new Proxy(loadAddon(), {
        get(target, name) {
          const real = Reflect.get(target, name);
          if (name !== 'renameVacant' && name !== 'exchangeNames') return real;
          return (...words: unknown[]) => {
            if (calls++ === 0) return { stage: 'rename', errno: constants.errno.EXDEV, path: '' };
            real(...words);
            throw fails(name);
          };
        },
      });
      const prepared = { plan: { workspace: root }, settle: () => [] } as unknown as PreparedSandbox;
      await expect(new ChangeSets(addon, stateDirectory()).undo(prepared, id)).rejects.toMatchObject({
        code: 'changes.incomplete',
      });
      expect(await does('undo')).toEqual({});
      expect([read('f'), read('l'), lstatSync(join(root, 'l')).isSymbolicLink()]).toEqual([
        'old',
        'old',
        true,
      ]);
    },
  );
});

describe_('where names cannot be exchanged (needs namespaces)', () => {
  const command = 'echo theirs > f; echo theirs > new; ln -s new m; rm -r d; mv other another; rm l; mkdir l';

  it.each(['apply', 'applyAll'] as const)('%s puts all in place, and undo takes it back', async (doing) => {
    const { root, read, does } = await waiting(command, withoutExchange());
    expect(await does(doing)).toEqual({});
    expect([read('f'), read('new'), read('another/x')]).toEqual(['theirs\n', 'theirs\n', 'old']);
    expect(readdirSync(root)).toEqual(['another', 'f', 'l', 'm', 'new']);
    expect(await does('undo')).toEqual({});
    expect([read('f'), read('d/in/x'), read('other/x'), read('l')]).toEqual(['old', 'old', 'old', 'old']);
    expect(readdirSync(root)).toEqual(['d', 'f', 'l', 'other']);
  });

  it.each(['apply', 'applyAll'] as const)('%s leaves what somebody changes just before', async (doing) => {
    const { root, read, does } = await waiting('echo theirs > f; echo theirs > new', withoutExchange());
    const change = () => {
      writeFileSync(join(root, 'f'), 'mine');
      writeFileSync(join(root, 'new'), 'mine');
    };
    expect(await does(doing, 'exchangeNames', change)).toEqual({
      f: 'it changed',
      new: 'something is there that was not',
    });
    expect([read('f'), read('new')]).toEqual(['mine', 'mine']);
  });

  it.each(['EINVAL', 'EXDEV'] as const)('undo leaves it, too, after %s', async (first) => {
    const errors = [constants.errno.EINVAL, constants.errno[first]];
    const { root, read, does } = await waiting('echo theirs > f', withoutExchange(errors));
    await does('apply');
    const change = () => writeFileSync(join(root, 'f'), 'mine');
    expect(await does('undo', 'exchangeNames', change)).toEqual({ f: 'it changed since it was applied' });
    expect(read('f')).toBe('mine');
  });
});
