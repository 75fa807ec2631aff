import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { CLI, makePlace } from '../cli/support.ts';
import { makeArena } from '../support/arena.ts';
import { makeHold } from '../support/hold.ts';
import { lacks } from '../support/programs.ts';
import { HOST, WITH_VIEW } from '../support/tiers.ts';
import { useOwnState } from './support/own-state.ts';

// What somebody does in the workspace while a command runs there is never overwritten, and is named.

const arena = makeArena();
useOwnState(arena);
const describe_ = describe.skipIf(!HOST.namespaces);

/** What is there when a command begins that makes `out/x` and `d/x`, and takes `gone` away. */
async function workspaceOf(make: (root: string) => void) {
  const root = arena.freshCorner();
  make(root);
  const beside = arena.freshCorner();
  const sandbox = await arena.sandbox(WITH_VIEW, { workspace: root, readable: [beside] });
  return { root, beside, sandbox, changes: await sandbox.changes() };
}

type World = Awaited<ReturnType<typeof workspaceOf>>;

/** Runs a command, and something else when it has done its work; then applies what it left. */
async function meanwhile(world: World, command: string, other: (root: string) => void) {
  const { root, beside, sandbox, changes } = world;
  const hold = makeHold(beside);
  const started = sandbox.start(`${command}; echo ready; ${hold.words}`, { effect: 'preview' });
  for await (const line of started.outputText()) if (line.text.includes('ready')) break;
  other(root);
  hold.letGo();
  const { changes: found } = await started.result;
  const applied = await changes.apply(found?.id ?? '');
  return Object.fromEntries(applied.notDone.map(({ path, why }) => [path, why]));
}

const CHANGED = 'it changed in the workspace while the command ran';

function tree(root: string, names: Readonly<Record<string, string>>): void {
  for (const [name, content] of Object.entries(names)) {
    mkdirSync(join(root, name, '..'), { recursive: true });
    writeFileSync(join(root, name), content);
  }
}

describe_('a directory that somebody moves to its place while a command runs (needs namespaces)', () => {
  it.each([
    ['makes files there', 'mkdir d; echo theirs > d/x; echo new > d/y', ['d/x']],
    ['makes files further down', 'mkdir -p d/in; echo theirs > d/in/x', ['d/in/x']],
  ])('keeps what is in it when the command %s', async (_, command, named) => {
    const world = await workspaceOf((root) => tree(root, { 'aside/x': 'mine', 'aside/in/x': 'mine' }));
    const notDone = await meanwhile(world, command, (root) =>
      renameSync(join(root, 'aside'), join(root, 'd')),
    );
    expect(notDone).toEqual(Object.fromEntries(named.map((path) => [path, CHANGED])));
    for (const path of ['d/x', 'd/in/x']) expect(readFileSync(join(world.root, path), 'utf8')).toBe('mine');
  });

  it('keeps what is in it when the command changed files of the one that was there', async () => {
    const world = await workspaceOf((root) =>
      tree(root, { 'd/x': 'old', 'd/gone': 'old', 'aside/x': 'mine', 'aside/gone': 'mine' }),
    );
    const notDone = await meanwhile(world, 'echo theirs > d/x; rm d/gone', (root) => {
      renameSync(join(root, 'd'), join(root, 'before'));
      renameSync(join(root, 'aside'), join(root, 'd'));
    });
    expect(notDone).toEqual({ 'd/x': CHANGED, 'd/gone': CHANGED });
    expect(readFileSync(join(world.root, 'd/x'), 'utf8')).toBe('mine');
  });

  it.each([
    ['takes away the one that was there', 'rm -r d'],
    ['puts a file in its place', 'rm -r d; echo > d'],
    ['makes another one', 'rm -r d; mkdir d'],
  ])('stays when the command %s', async (_, command) => {
    const world = await workspaceOf((root) => tree(root, { 'd/x': 'old', 'aside/x': 'mine' }));
    await meanwhile(world, command, (root) => {
      renameSync(join(root, 'd'), join(root, 'before'));
      renameSync(join(root, 'aside'), join(root, 'd'));
    });
    expect(readFileSync(join(world.root, 'd/x'), 'utf8')).toBe('mine');
  });

  it('stays when the command makes a file of its name, also if it is empty', async () => {
    const world = await workspaceOf((root) => tree(root, { 'aside/x': 'mine' }));
    const notDone = await meanwhile(world, 'echo > d; echo > e', (root) => {
      renameSync(join(root, 'aside'), join(root, 'd'));
      mkdirSync(join(root, 'e'));
    });
    expect(notDone).toEqual({ d: CHANGED, e: CHANGED });
    expect([readFileSync(join(world.root, 'd/x'), 'utf8'), readdirSync(join(world.root, 'e'))]).toEqual([
      'mine',
      [],
    ]);
  });

  it('is no reason to keep a file that the command makes there', async () => {
    const world = await workspaceOf((root) => tree(root, { 'aside/z': 'mine', 'other/f': 'old' }));
    const notDone = await meanwhile(world, 'mkdir d; echo > d/x; echo > other/f', (root) => {
      renameSync(join(root, 'aside'), join(root, 'd'));
      // Another file beside it is none either.
      writeFileSync(join(root, 'other/mine'), '');
    });
    expect([notDone, existsSync(join(world.root, 'd/x'))]).toEqual([{}, true]);
  });
});

describe_('what somebody removes while a command runs (needs namespaces)', () => {
  it('stays away, and is named, if the command changes it in place', async () => {
    const world = await workspaceOf((root) => tree(root, { f: 'old', 'd/in/f': 'old', 'gone/f': 'old' }));
    const command = 'echo >> f; echo >> d/in/f; echo >> gone/f; echo > gone/new; echo > d/new';
    const notDone = await meanwhile(world, command, (root) => {
      rmSync(join(root, 'f'));
      rmSync(join(root, 'd/in/f'));
      rmSync(join(root, 'gone'), { recursive: true });
    });
    const why = 'it was removed from the workspace while the command ran';
    expect(notDone).toMatchObject({ f: why, 'd/in/f': why, gone: why, 'gone/f': why });
    expect(Object.keys(notDone)).toHaveLength(5);
    expect(['f', 'd/in/f', 'gone', 'd/new'].map((name) => existsSync(join(world.root, name)))).toEqual([
      ...[false, false, false, true],
    ]);
  });

  it('is no reason to keep what the command makes, or moves from elsewhere', async () => {
    const world = await workspaceOf((root) =>
      tree(root, { a: 'one', b: 'three', c: 'four', 'd/x': 'seven' }),
    );
    const command = 'mv a a2; mkdir new; mv b new/b; mv d/x x; rm -r d; echo > made; rm c; echo anew > c';
    const notDone = await meanwhile(world, command, (root) => {
      writeFileSync(join(root, 'other'), '');
      rmSync(join(root, 'other'));
    });
    expect(notDone).toEqual({});
    expect(readdirSync(world.root).toSorted()).toEqual(['a2', 'c', 'made', 'new', 'x']);
  });

  it.each([
    ['and changes then', { a: 'one\n' }, 'mv a b; echo more >> b', { b: 'one\nmore\n' }],
    ['out of what it removes', { 'd/a': 'one\n' }, 'mv d/a b; rm -r d; echo two > b', { b: 'two\n' }],
    ['and makes anew', { a: 'one\n' }, 'mv a b; echo > b; echo new > a', { a: 'new\n', b: '\n' }],
    ['to where it moved another', { a: '1', b: 'two' }, 'mv b c; mv a b', { b: '1', c: 'two' }],
  ])('is no reason to keep what the command moves %s', async (_, made, command, left) => {
    const world = await workspaceOf((root) => tree(root, made));
    const notDone = await meanwhile(world, command, (root) => {
      writeFileSync(join(root, 'other'), '');
      rmSync(join(root, 'other'));
    });
    expect(notDone).toEqual({});
    const read = (name: string) => [name, readFileSync(join(world.root, name), 'utf8')];
    expect(Object.fromEntries(readdirSync(world.root).map(read))).toEqual(left);
  });
});

describe_('a file that the command renames (needs namespaces)', () => {
  const inPlace = 'content that is moved';

  it('stays where it is if somebody makes another one in its new place', async () => {
    const world = await workspaceOf((root) => tree(root, { a: inPlace, z: inPlace.toUpperCase() }));
    const notDone = await meanwhile(world, 'mv a b; mv z y', (root) => tree(root, { b: 'mine', y: 'mine' }));
    expect(notDone).toEqual({
      ...{ b: CHANGED, a: 'it was renamed to b, which is not in its place' },
      ...{ y: CHANGED, z: 'it was renamed to y, which is not in its place' },
    });
    const read = (name: string) => readFileSync(join(world.root, name), 'utf8');
    expect(['a', 'b', 'z', 'y'].map(read)).toEqual([inPlace, 'mine', inPlace.toUpperCase(), 'mine']);
  });

  it('stays there when that is taken back, if somebody makes another one in its old place', async () => {
    const { root, sandbox, changes } = await workspaceOf((at) => tree(at, { a: inPlace, z: 'and another' }));
    const result = await sandbox.run('mv a b; mv z y', { effect: 'preview' });
    const id = result.changes?.id ?? '';
    expect((await changes.apply(id)).notDone).toEqual([]);
    tree(root, { a: 'mine' });
    expect((await changes.undo(id)).notDone).toEqual([
      { path: 'a', why: expect.stringContaining('it changed since') },
      { path: 'b', why: 'it was renamed from a, which does not come back' },
    ]);
    expect(['a', 'b', 'z'].map((name) => readFileSync(join(root, name), 'utf8'))).toEqual([
      ...['mine', inPlace, 'and another'],
    ]);
    rmSync(join(root, 'a'));
    expect((await changes.undo(id)).notDone).toEqual([]);
    expect(readdirSync(root).toSorted()).toEqual(['a', 'z']);
  });
});

describe_('permissions of a directory that somebody changes while a command runs (needs namespaces)', () => {
  it.each(['echo > d/y', 'chmod 755 d; echo > d/y', 'rm -r d; mkdir d; echo > d/y'])(
    'stay as they are: %s',
    async (command) => {
      const world = await workspaceOf((root) => tree(root, { 'd/x': 'old' }));
      const notDone = await meanwhile(world, command, (root) => {
        chmodSync(join(root, 'd'), 0o700);
        writeFileSync(join(root, 'd/secret'), 'mine');
      });
      expect(notDone).toMatchObject({ d: CHANGED });
      expect(statSync(join(world.root, 'd')).mode & 0o777).toBe(0o700);
      expect([existsSync(join(world.root, 'd/y')), existsSync(join(world.root, 'd/secret'))]).toEqual([
        true,
        true,
      ]);
    },
  );
});

describe_(
  'the workspace itself, if somebody puts another one in its place meanwhile (needs namespaces)',
  () => {
    it('is not changed', async () => {
      const world = await workspaceOf((root) => tree(root, { x: 'old' }));
      tree(world.root, { '../another/x': 'mine' });
      const notDone = await meanwhile(world, 'echo theirs > x', (root) => {
        renameSync(root, `${root}.before`);
        renameSync(join(root, '../another'), root);
      });
      expect([notDone, readFileSync(join(world.root, 'x'), 'utf8')]).toEqual([{ x: CHANGED }, 'mine']);
      rmSync(`${world.root}.before`, { recursive: true });
    });
  },
);

// In a mount namespace of its own, which goes with the last process.
describe.runIf(process.getuid?.() === 0 && HOST.namespaces && !lacks('mkfs.ext4', '/dev/loop-control'))(
  'a workspace on another file system (needs namespaces, root)',
  () => {
    // A command that ends once somebody has changed a file outside.
    const run = `"$@" --ro "$PWD/../beside" -c 'echo begun; until [ -e ../beside/go ]; do sleep 0.02; done; echo theirs > f; echo theirs > other'`;
    const meanwhileOutside = '{ read; echo mine > f; : > ../beside/go; cat > /dev/null; }';

    it('that counts in whole seconds: keeps what somebody changes in the second in which a command begins', {
      timeout: 60_000,
    }, async () => {
      const place = makePlace();
      const policy = join(place.env.XDG_CONFIG_HOME ?? '', 'sandbox-run/policy.toml');
      appendFileSync(policy, '\n[workspace]\nundo = "always"\n');
      const script = `
{ mkdir ../beside && truncate -s 32M ../image && mkfs.ext4 -q -I 128 ../image && mount -o loop ../image . && cd "$PWD"; } > /dev/null 2>&1 || exit 125
echo old > f; echo old > mine; stat -c %z f | cut -d. -f2 | cut -d' ' -f1
${run} | ${meanwhileOutside}
cat f other`;
      const { stdout, stderr } = await execa(
        'unshare',
        ['-m', 'bash', '-c', script, 'bash', process.execPath, CLI],
        { cwd: place.workspace, env: place.env, extendEnv: false, reject: false },
      );
      place.dispose();
      expect(stdout).toBe('000000000\nmine\ntheirs');
      expect(stderr).toContain(`f is not in the workspace: ${CHANGED}`);
    });

    it('that is somebody else’s, and counts in whole seconds: the same', async () => {
      const place = makePlace();
      const policy = join(place.env.XDG_CONFIG_HOME ?? '', 'sandbox-run/policy.toml');
      appendFileSync(policy, '\n[workspace]\nundo = "always"\n');
      const script = `
{ mkdir ../beside && truncate -s 32M ../image && mkfs.ext4 -q -I 128 ../image && mount -o loop ../image . && cd "$PWD"; } > /dev/null 2>&1 || exit 125
umask 0; chmod 777 .; echo old > f; chown -R 1000:1000 .. ; chown root .; chmod 755 ..
setpriv --reuid=1000 --regid=1000 --clear-groups ${run} | ${meanwhileOutside}
cat f other`;
      const { stdout, stderr } = await execa(
        'unshare',
        ['-m', 'bash', '-c', script, 'bash', process.execPath, CLI],
        { cwd: place.workspace, env: place.env, extendEnv: false, reject: false },
      );
      place.dispose();
      expect(stdout).toBe('mine\ntheirs');
      expect(stderr).toContain(`f is not in the workspace: ${CHANGED}`);
      expect(stderr).not.toContain('clock');
    });

    it('whose clock cannot be told: that is said', async () => {
      const place = makePlace();
      const script = `
mount -t tmpfs none . && cd "$PWD" && mkdir d && chown -R 1000:1000 .. && chown root . && chmod 755 . .. || exit 125
setpriv --reuid=1000 --regid=1000 --clear-groups "$@" --preview -c 'echo > d/f'`;
      const { stderr } = await execa('unshare', ['-m', 'bash', '-c', script, 'bash', process.execPath, CLI], {
        cwd: place.workspace,
        env: place.env,
        extendEnv: false,
        reject: false,
      });
      place.dispose();
      expect(stderr).toMatch(/warning: the clock of the workspace.*while the command ran.*1 created/s);
    });

    it('keeps its set-group-ID bit where its owner is not of the group', async () => {
      const place = makePlace();
      const script = `
mount -t tmpfs none . && cd "$PWD" && chown 1000:2000 . && chmod 2775 . && chown -R 1000 .. || exit 125
chmod 755 .. && setpriv --reuid=1000 --regid=1000 --clear-groups "$@" --preview -c 'echo > f' 2>&1; stat -c %a .`;
      const { stdout } = await execa('unshare', ['-m', 'bash', '-c', script, 'bash', process.execPath, CLI], {
        cwd: place.workspace,
        env: place.env,
        extendEnv: false,
        reject: false,
      });
      place.dispose();
      expect(stdout).toMatch(/1 created.*\n2775$/s);
    });
  },
);
