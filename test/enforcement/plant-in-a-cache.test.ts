import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadAddon } from '../../src/confine/native/index.ts';
import { CACHE_PLACES } from '../../src/policy/index.ts';
import {
  CACHE_LIMITS,
  type CacheEntry,
  cacheDirectoryOf,
  clearCache,
  listCaches,
  sizeOfCache,
  trimCaches,
} from '../../src/run/index.ts';
import { makeArena, SECRET, snapshot } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';
import { HOST_TIERS, sandboxIn, TIERS } from '../support/tiers.ts';

const addon = loadAddon();
/** Without the tool chains and caches of the user who runs this: commands see those in their home. */
const realHome = process.env.HOME;
const home = mkdtempSync(join(tmpdir(), 'planted-home-'));
process.env.HOME = home;
afterAll(() => {
  rmSync(home, { recursive: true, force: true });
  if (realHome === undefined) delete process.env.HOME;
  else process.env.HOME = realHome;
});
/** Whatever it is, it must be gone for the next command: it would say what that means. */
const SETTINGS = [
  '.npmrc',
  '.profile',
  '.bashrc',
  '.gitconfig.d',
  'bin/ls',
  '.config/git/config',
  '.cargo/config.toml',
  '.cargo/bin/cargo',
  '.gradle/init.d/x.gradle',
  '.gradle/gradle.properties',
  '.m2/settings.xml',
  '.nuget/NuGet/NuGet.Config',
  '.yarn/bin/yarn',
  '.bun/bin/bun',
  '.local/share/pnpm/pnpm',
  '.local/bin/npm',
  'go/bin/gofmt',
];
const DIRECTORIES = CACHE_PLACES.filter(({ kind }) => kind === undefined).map(({ path }) => path);

describe.each(TIERS)('what commands of a workspace keep for each other, $name', (tier) => {
  const arena = makeArena();
  const before = process.env.XDG_STATE_HOME;
  let state: string;
  beforeAll(() => {
    state = mkdtempSync(join(arena.root, 'state-'));
    process.env.XDG_STATE_HOME = state;
  });
  afterAll(() => {
    if (before === undefined) delete process.env.XDG_STATE_HOME;
    else process.env.XDG_STATE_HOME = before;
  });

  const freshWorkspace = () => mkdtempSync(join(arena.root, 'workspace-'));
  const once = async (workspace: string, command: string, options: Parameters<typeof sandboxIn>[1] = {}) => {
    await using sandbox = await sandboxIn(tier, { workspace, ...options });
    return await sandbox.run(command);
  };
  const cacheOf = (workspace: string): CacheEntry => {
    const found = listCaches(addon).find((entry) => entry.workspace === workspace);
    if (found === undefined) throw new Error(`no cache of ${workspace}`);
    return found;
  };

  it('is there for the next command, of the same sandbox and of another', async () => {
    const workspace = freshWorkspace();
    const write = DIRECTORIES.map((path) => `echo ${path} > ~/${path}/kept`).join(' && ');
    const read = DIRECTORIES.map((path) => `cat ~/${path}/kept`).join('; ');
    await using sandbox = await sandboxIn(tier, { workspace });
    expect(await sandbox.run(write)).toMatchObject({ exitCode: 0, stderr: '' });
    const all = `${DIRECTORIES.join('\n')}\n`;
    expect((await sandbox.run(read)).stdout).toBe(all);
    expect((await once(workspace, read)).stdout).toBe(all);
    const locks = '~/.cargo/.package-cache ~/.cargo/.package-cache-mutate';
    expect(await sandbox.run(`for f in ${locks}; do flock -x $f true || exit 1; done`)).toMatchObject({
      exitCode: 0,
    });
  });

  it('is no setting and no program', async () => {
    const workspace = freshWorkspace();
    const plant = SETTINGS.map((path) => `mkdir -p ~/$(dirname ${path}); echo x > ~/${path}`).join('; ');
    // The user's own settings may be there.
    const look = SETTINGS.map((path) => `[ "$(cat ~/${path} 2>&1)" = x ] && echo ${path}`).join('; ');
    await using sandbox = await sandboxIn(tier, { workspace });
    const planted = await sandbox.run(`${plant}; echo x > ~/.cache/kept; ${look}; true`);
    expect(planted.stdout).toBe(`${SETTINGS.join('\n')}\n`);
    expect((await sandbox.run(`${look}; cat ~/.cache/kept`)).stdout).toBe('x\n');
    expect((await once(workspace, `${look}; cat ~/.cache/kept`)).stdout).toBe('x\n');
  });

  it.each([
    ['another directory in its place', 'rm -rf ~/.cache ~/.cargo; mkdir -p ~/.cache ~/.cargo/registry'],
    ['other links', 'rm ~/.cache; ln -s /tmp ~/.cache; rm -r ~/go; ln -s "$PWD" ~/go'],
    [
      'what leads there under another name',
      'mv ~/.cargo ~/c; mv ~/.gradle ~/.m2/g; mkdir ~/.cargo; chmod 0 ~/.m2',
    ],
    [
      'links of the right kind and more',
      'echo x > ~/.cargo/config.toml; chmod 711 ~/.local; ln -s x ~/.yarn/y',
    ],
  ])('is what it was for the next command after %s', async (_, attack) => {
    const workspace = freshWorkspace();
    await using sandbox = await sandboxIn(tier, { workspace });
    const shape =
      'cd ~; for p in .cache .cargo go .gradle .m2 .local .yarn; do stat -c "%n %a" $p; find $p; done';
    const first = await sandbox.run(`echo kept > ~/.cache/kept; ${shape}`);
    const attacked = await sandbox.run(`${attack}; ${shape}`);
    expect(attacked.stdout).not.toBe(first.stdout);
    // More than once: what is untouched for a while is not looked at as closely.
    for (let i = 0; i < 3; i++) {
      expect((await sandbox.run(shape)).stdout).toBe(first.stdout);
      await new Promise((done) => setTimeout(done, 30));
      expect((await sandbox.run(`${attack}; ${shape}`)).stdout).toBe(attacked.stdout);
    }
    expect((await sandbox.run('cat ~/.cache/kept')).stdout).toBe('kept\n');
  });

  it('is nothing for commands of another workspace, of a read-only one, or where the policy says so', async () => {
    const [workspace, other] = [freshWorkspace(), freshWorkspace()];
    await once(workspace, `echo ${SECRET} > ~/.cache/kept`);
    const { directory } = cacheOf(workspace);
    expect(readFileSync(join(directory, 'places/cache/kept'), 'utf8')).toContain(SECRET);
    const look = `cat ~/.cache/kept; cat ${directory}/places/cache/kept; ls ${directory}/..; echo x > ${directory}/places/cache/kept; true`;
    for (const [place, options] of [
      [other, {}],
      [workspace, { profile: 'read-only' }],
      [workspace, { policy: { filesystem: { cache: 'private' as const } } }],
    ] as const) {
      expect((await once(place, `mkdir -p ~/.cache && ${look}`, options)).stdout).toBe('');
    }
    expect((await once(workspace, 'cat ~/.cache/kept')).stdout).toBe(`${SECRET}\n`);
    // And nothing comes from there.
    await once(workspace, 'mkdir -p ~/.cache; echo planted > ~/.cache/planted', { profile: 'read-only' });
    expect((await once(workspace, 'cat ~/.cache/planted')).stdout).toBe('');
  });

  it('shows nothing else of the state directory', async () => {
    const workspace = freshWorkspace();
    mkdirSync(join(state, 'sandbox-run'), { recursive: true, mode: 0o700 });
    writeFileSync(join(state, 'sandbox-run/gate'), SECRET);
    await once(workspace, 'echo kept > ~/.cache/kept');
    const { directory } = cacheOf(workspace);
    const known = readdirSync(directory).sort();
    const result = await once(
      workspace,
      `cat ~/.cache/kept; cd ~/.cache; p=$(pwd -P); for d in $p/../.. $p/../../.. ${directory} ${state}/sandbox-run; do ls $d; cat $d/gate $d/about.json; echo x > $d/lock; rm $d/about.json; echo x > $d/planted; mv $d/places $d/p; done; true`,
    );
    expect(
      result.stdout.replace(
        /^(bin|dev|etc|home|lib|lib64|proc|root|sbin|sys|tmp|usr|var|work|opt|run)\n/gm,
        '',
      ),
    ).toMatch(/^kept\n/);
    expect(result.stdout).not.toContain(SECRET);
    expect(result.stdout).not.toContain('about.json');
    expect(readdirSync(directory).sort()).toEqual(known);
    expect(statSync(join(directory, 'lock')).size).toBe(0);
    expect(existsSync(join(state, 'sandbox-run/planted'))).toBe(false);
    for (const path of [directory, join(directory, 'places')])
      expect(statSync(path).mode & 0o777, path).toBe(0o700);
  });

  it('cannot be linked with files outside', async () => {
    const workspace = freshWorkspace();
    const victims = arena.freshVictims();
    const before = snapshot(victims);
    await once(
      workspace,
      `echo x > ~/.cache/x; ln ${victims}/file ~/.cache/hard; ln ~/.cache/x ${victims}/hard; mv ~/.cache/x ${victims}/moved; ln -s ${victims}/file ~/.cache/soft; echo x >> ~/.cache/soft; mknod ~/.cache/d c 1 3; chmod u+s ~/.cache/x; true`,
      { readable: [victims] },
    );
    expect(snapshot(victims)).toEqual(before);
    const kept = join(cacheOf(workspace).directory, 'places/cache');
    expect(readdirSync(kept).sort()).toEqual(['soft', 'x']);
    expect(statSync(join(kept, 'x')).mode & 0o6000).toBe(0);
  });

  it.each([
    ['links in it', (v: string) => `ln -s ${v} ~/.cache/l; ln -s ${v}/full ~/.npm/l; ln -s / ~/.cache/root`],
    [
      'links in place of its parts',
      (v: string) =>
        `cd ~/.npm && p=$(pwd -P)/..; cd "$p"; rm -rf npm cache go; ln -s ${v} npm; ln -s ${v} cache; ln -s ${v}/full go`,
    ],
    [
      'directories that are shut',
      () =>
        'mkdir -p ~/.cache/a/b/c; echo x > ~/.cache/a/b/c/d; chmod 0 ~/.cache/a/b ~/.cache/a; chmod 0 ~/.cache/ ~/.npm',
    ],
    ['a tree that is deep', () => 'cd ~/.cache; for i in $(seq 150); do mkdir d && cd d; done; true'],
    ['everything shut', () => 'cd ~/.npm && p=$(pwd -P)/..; cd "$p"; echo x > stray; mkfifo fifo; chmod 0 .'],
  ])('goes when it is cleared, and nothing else: %s', async (_, attack) => {
    const workspace = freshWorkspace();
    const victims = arena.freshVictims();
    const before = snapshot(victims);
    const planted = await once(
      workspace,
      `echo kept > ~/.cache/kept; echo kept > ~/.npm/kept; ${attack(victims)}`,
    );
    expect(planted.exitCode, planted.stderr).toBe(0);
    const entry = cacheOf(workspace);
    expect((await sizeOfCache(addon, entry)).bytes).toBeGreaterThan(0);
    expect(await clearCache(addon, entry)).toBe('cleared');
    expect(existsSync(entry.directory)).toBe(false);
    expect(snapshot(victims)).toEqual(before);
    expect(
      (await once(workspace, 'ls -A ~/.cache ~/.npm; echo new > ~/.cache/new && cat ~/.cache/new')).stdout,
    ).toMatch(/new\n$/);
  });

  it('is not cleared under a command, and can be under a sandbox', async () => {
    const workspace = freshWorkspace();
    await using sandbox = await sandboxIn(tier, { workspace });
    const running = sandbox.start('echo kept > ~/.cache/kept; sleep 1000');
    const kept = join(cacheDirectoryOf(workspace, join(state, 'sandbox-run')), 'places/cache/kept');
    await eventually(() => expect(existsSync(kept)).toBe(true));
    expect(cacheOf(workspace).inUse).toBe(true);
    expect(await clearCache(addon, cacheOf(workspace))).toBe('in-use');
    running.cancel();
    await running.result;
    expect((await sandbox.run('cat ~/.cache/kept')).stdout).toBe('kept\n');
    expect(await clearCache(addon, cacheOf(workspace), 5_000)).toBe('cleared');
    expect(await sandbox.run('ls -A ~/.cache; echo new > ~/.cache/new')).toMatchObject({
      stdout: '',
      exitCode: 0,
    });
    expect((await once(workspace, 'cat ~/.cache/new')).stdout).toBe('new\n');
  });

  it('is waited for by commands while it is cleared', async () => {
    const workspace = freshWorkspace();
    await using sandbox = await sandboxIn(tier, { workspace });
    await sandbox.run('echo kept > ~/.cache/kept');
    const lock = openSync(join(cacheOf(workspace).directory, 'lock'), 'r');
    await eventually(() => expect(addon.tryLock(lock)).toBe(true));
    let ended = false;
    const run = sandbox.run('cat ~/.cache/kept').then((result) => {
      ended = true;
      return result;
    });
    // Commands of another workspace, which wait for nothing, run to their end meanwhile.
    for (let i = 0; i < 5; i++) await once(freshWorkspace(), 'true');
    expect(ended).toBe(false);
    closeSync(lock);
    expect((await run).stdout).toBe('kept\n');
  });

  it('is no more than it may be, however it is hidden', async () => {
    const MIB = 1024 ** 2;
    const limits = { ...CACHE_LIMITS, workspaceBytes: 4 * MIB, everyMs: 0 };
    const fill = (path: string, mib: number) => `head -c ${mib * MIB} /dev/zero > ${path}`;
    const size = async (workspace: string) => (await sizeOfCache(addon, cacheOf(workspace))).bytes;
    const [large, hidden, small] = [freshWorkspace(), freshWorkspace(), freshWorkspace()];
    await once(large, `${fill('~/.cache/large', 6)}; ${fill('~/.npm/small', 1)}`);
    await once(hidden, `mkdir -p ~/.npm/a/b; ${fill('~/.npm/a/b/large', 6)}; chmod 0 ~/.npm/a`);
    await once(small, fill('~/.cache/small', 1));
    expect(await size(large)).toBeGreaterThan(7 * MIB);
    await trimCaches(addon, limits);
    expect(await size(large)).toBeLessThan(2 * MIB);
    expect((await once(large, 'cd ~; ls .npm .cache; echo x > .cache/x')).stdout).toBe(
      '.cache:\n\n.npm:\nsmall\n',
    );
    expect(existsSync(join(cacheOf(hidden).directory, 'places/npm/a'))).toBe(false);
    expect(await size(small)).toBeGreaterThan(MIB);
    // Those used least lately go first, where all of them are too many.
    await once(small, 'true');
    await trimCaches(addon, { ...limits, totalBytes: 1.5 * MIB });
    expect(listCaches(addon).map(({ workspace }) => workspace)).toContain(small);
    expect(listCaches(addon).map(({ workspace }) => workspace)).not.toContain(large);
    // What is in use stays.
    await using sandbox = await sandboxIn(tier, { workspace: small });
    const running = sandbox.start('sleep 60');
    await eventually(() => expect(cacheOf(small).inUse).toBe(true));
    await trimCaches(addon, { ...limits, workspaceBytes: 1, totalBytes: 1, unusedMs: 0 });
    expect(await size(small)).toBeGreaterThan(MIB);
    running.cancel();
    await running.result;
  });

  it('does not come back with another directory of that name', async () => {
    const workspace = freshWorkspace();
    await once(workspace, 'echo kept > ~/.cache/kept');
    rmSync(workspace, { recursive: true });
    mkdirSync(join(arena.root, 'in-between'), { recursive: true });
    mkdirSync(workspace);
    expect((await once(workspace, 'cat ~/.cache/kept')).stdout).toBe('');
    const known = listCaches(addon).filter((entry) => entry.workspace === workspace);
    expect(known.map(({ isThere }) => isThere).sort()).toEqual([false, true]);
  });

  it('leaves nothing for long where nothing was cached', async () => {
    const workspace = freshWorkspace();
    const known = () => listCaches(addon).filter((entry) => entry.workspace === workspace).length;
    await once(workspace, 'echo x > ~/.npmrc');
    expect(known()).toBe(1);
    await trimCaches(addon);
    expect(known()).toBe(1);
    // As if an hour had gone by.
    await trimCaches(addon, { ...CACHE_LIMITS, everyMs: -1 });
    expect(known()).toBe(0);
  });
});

it('goes with the command where there is no place for it, and the plan says why', async () => {
  const arena = makeArena();
  const before = process.env.XDG_STATE_HOME;
  process.env.XDG_STATE_HOME = arena.secret;
  try {
    for (const tier of HOST_TIERS) {
      await using sandbox = await sandboxIn(tier, { workspace: arena.workspace });
      expect(sandbox.plan.cache).toMatchObject({ kind: 'private', reason: /^there is no place for them/ });
      expect((await sandbox.run('mkdir -p ~/.cache; echo x > ~/.cache/x; cat ~/.cache/x')).stdout).toBe(
        'x\n',
      );
    }
  } finally {
    process.env.XDG_STATE_HOME = before;
  }
});
