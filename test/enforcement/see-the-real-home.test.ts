import { execFileSync } from 'node:child_process';
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
  writeFileSync,
} from 'node:fs';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { PolicyFile } from '../../src/index.ts';
import { messageForModel, warningsOf } from '../../src/run/index.ts';
import { homeInDatabase } from '../../src/workspace/index.ts';
import { SECRET, snapshot } from '../support/arena.ts';
import { HOST, sandboxIn, TIERS, WITHOUT_VIEW } from '../support/tiers.ts';

const { HOME, PATH, XDG_STATE_HOME, XDG_CONFIG_HOME } = process.env;
const real = { HOME, PATH, XDG_STATE_HOME, XDG_CONFIG_HOME };
const made: string[] = [];
afterAll(() => {
  for (const [name, value] of Object.entries(real)) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  for (const path of made) rmSync(path, { recursive: true, force: true });
});

interface World {
  readonly root: string;
  readonly home: string;
}

/** A home of a user as HOME names it, with what a command must not see, on another file system if that is asked for. */
function makeHome(parent = '/var/tmp'): World {
  const root = mkdtempSync(join(realpathSync(parent), 'real-home-'));
  made.push(root);
  const home = join(root, 'user');
  mkdirSync(home);
  writeFileSync(join(home, '.secret'), SECRET);
  writeFileSync(join(home, 'notes'), SECRET);
  mkdirSync(join(home, 'other/project'), { recursive: true });
  writeFileSync(join(home, 'other/project/file'), SECRET);
  process.env.HOME = home;
  // What this program keeps would be made wherever HOME leads.
  process.env.XDG_STATE_HOME = join(root, 'state');
  process.env.XDG_CONFIG_HOME = join(root, 'config');
  // Without programs in the home of the user who runs this: those are granted.
  process.env.PATH = '/usr/bin:/bin';
  return { root, home };
}

/** A workspace beneath it. */
function workspaceIn({ home }: World, path: string): string {
  const workspace = join(home, path);
  mkdirSync(workspace, { recursive: true });
  writeFileSync(join(workspace, 'mine'), 'mine');
  return workspace;
}

/** Everything that a command finds in its home, without what leads to the workspace and what is put there. */
const LIST = 'find "$HOME" 2>/dev/null; cat "$HOME/.secret" "$HOME/notes" "$HOME/other/project/file"; true';

const VIEWS = TIERS.filter((tier) => tier.view);

async function runIn(
  tier: (typeof VIEWS)[number],
  workspace: string,
  command: string,
  policy: PolicyFile = {},
) {
  await using sandbox = await sandboxIn(tier, { workspace, policy });
  const result = await sandbox.run(command);
  expect([result.status, result.error]).toEqual(['exited', undefined]);
  return result;
}

describe.each(VIEWS)('seeing the real home through the private one over it, $name', (tier) => {
  it.each([
    ['a directory of the home', 'project'],
    ['several levels below it', 'work/of/mine/project'],
    ['in a directory that tools keep caches in', '.cache/agent/project'],
    ['beside a cache that lasts', 'go/src/project'],
  ])('the workspace is %s', async (_, path) => {
    const world = makeHome();
    const workspace = workspaceIn(world, path);
    const before = snapshot(world.home);
    const { stdout } = await runIn(tier, workspace, `echo "$HOME"; cat mine; ${LIST}`);
    expect(stdout).toMatch(new RegExp(`^${world.home}\nmine`));
    expect(stdout).not.toContain(SECRET);
    expect(stdout).not.toMatch(/notes|other/);
    expect(stdout).toContain(`${workspace}/mine\n`);
    expect(snapshot(world.home)).toEqual(before);
  });

  it('the directories on the way to the workspace are empty, and what is written into them fails and is told', async () => {
    const world = makeHome();
    const workspace = workspaceIn(world, 'a/b/project');
    writeFileSync(join(world.home, 'a/beside'), SECRET);
    await using sandbox = await sandboxIn(tier, { workspace });
    const script =
      'ls -A ~/a ~/a/b; echo x > ~/a/planted; mkdir ../out; cp mine ..; rmdir ../../b; chmod 777 ..; echo y > kept; exit 3';
    writeFileSync(join(workspace, 'script'), script);
    for (let round = 0; round < 2; round++) {
      const { stdout, exitCode, denials, notKept } = await sandbox.run('sh script');
      expect([stdout, exitCode]).toEqual([`${world.home}/a:\nb\n\n${world.home}/a/b:\nproject\n`, 3]);
      expect(notKept).toBeUndefined();
      const told = (name: string) => denials?.find(({ object }) => object === join(world.home, 'a/b', name));
      expect(told('mine')?.allow).toMatchObject({ value: join(world.home, 'a/b/mine'), absent: 'path' });
      // `mkdir` fails where somebody made its target first, and the directory around it holds the workspace.
      expect(told('out')).toMatchObject({ notProposed: expect.stringContaining('the workspace lies in it') });
      expect(told('out')).not.toHaveProperty('allow');
    }
    expect(readdirSync(join(world.home, 'a')).sort()).toEqual(['b', 'beside']);
    expect(readdirSync(join(world.home, 'a/b'))).toEqual(['project']);
    expect(readdirSync(workspace).sort()).toEqual(['kept', 'mine', 'script']);
  });

  it('what no command touched is not made anew for the next one, and what one leaves in it is gone', async () => {
    const world = makeHome();
    mkdirSync(join(world.home, '.cargo/bin'), { recursive: true });
    writeFileSync(join(world.home, '.cargo/bin/tool'), '#!/bin/sh\necho of the user\n', { mode: 0o755 });
    process.env.PATH = `${world.home}/.cargo/bin:/usr/bin:/bin`;
    await using sandbox = await sandboxIn(tier, { workspace: workspaceIn(world, 'project') });
    /** Each name in a directory that has a mount point and links in it, with what changes if it is made anew. */
    const look = async () => {
      const { stdout } = await sandbox.run("tool; stat -c '%n|%i %z' ~/.cargo/*");
      const [said, ...lines] = stdout.trimEnd().split('\n');
      expect(said).toBe('of the user');
      return new Map(lines.map((line) => line.split('|', 2) as [string, string]));
    };
    const first = await look();
    const link = join(world.home, '.cargo/registry');
    expect([...first.keys()]).toContain(link);
    expect(await look()).toEqual(first);
    await sandbox.run('echo x > ~/.cargo/note; rm ~/.cargo/registry; mkdir ~/.cargo/registry');
    const after = await look();
    expect([...after.keys()]).toEqual([...first.keys()]);
    // The control of the comparison.
    expect(after.get(link)).not.toBe(first.get(link));
  });

  it('what a command makes beside a workspace in the home is told once, and what tools keep there is not', async () => {
    const world = makeHome();
    const workspace = workspaceIn(world, 'project');
    const script = [
      'echo x > ../notes.txt; mkdir -p ../out/in ~/.config/tool ~/.npm/_cacache ~/.new ~/.local/share/x ~/go/pkg/mod',
      'mkdir -p ~/.local/bin ~/.cargo/bin; echo x > ~/.cargo/bin/tool; ln -s /etc/passwd ~/linked',
    ].join('\n');
    writeFileSync(join(workspace, 'script'), script);
    await using sandbox = await sandboxIn(tier, { workspace });
    const told = { path: expect.any(String), allow: expect.any(String) };
    for (let round = 0; round < 2; round++) {
      const { ok, notKept = [] } = await sandbox.run('sh script');
      expect(ok).toBe(true);
      const byName = [...notKept].sort((one, other) => (one.path < other.path ? -1 : 1));
      expect(byName).toEqual([
        { path: join(world.home, '.cargo/bin/tool') },
        ...['linked', 'notes.txt', 'out'].map((name) => ({ ...told, path: join(world.home, name) })),
      ]);
      expect((await sandbox.run('ls ~')).notKept).toBeUndefined();
    }
    await using session = await sandbox.session();
    expect((await session.run('sh script')).notKept).toHaveLength(4);
    expect((await session.run('ls ..')).notKept).toBeUndefined();
    const again = await session.run('sh script; mkdir ../later');
    expect(again.notKept?.map(({ path }) => path)).toEqual([join(world.home, 'later')]);
  });

  it('a granted path beside the workspace is written, and told of nothing', async () => {
    const world = makeHome();
    const workspace = workspaceIn(world, 'project');
    const out = join(world.home, 'out');
    mkdirSync(out);
    writeFileSync(join(workspace, 'script'), 'echo x > ../out/file');
    const { notKept } = await runIn(tier, workspace, 'sh script', { filesystem: { write: [out] } });
    expect([notKept, readdirSync(out)]).toEqual([undefined, ['file']]);
  });

  it('an installation among programs of the user fails, and is told where it works', async () => {
    const world = makeHome();
    const workspace = workspaceIn(world, 'project');
    const place = join(world.home, '.cargo/bin');
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, 'mine'), '#!/bin/sh\n', { mode: 0o755 });
    process.env.PATH = `${place}:/usr/bin:/bin`;
    await using sandbox = await sandboxIn(tier, { workspace });
    writeFileSync(join(workspace, 'script'), 'cp mine ~/.cargo/bin/tool && echo installed');
    const result = await sandbox.run('sh script');
    expect([result.stdout, readdirSync(place)]).toEqual(['', ['mine']]);
    const denial = result.denials?.find(({ object }) => object === join(place, 'tool'));
    expect(denial).toMatchObject({ notProposed: expect.stringContaining('install it into the workspace') });
    expect(messageForModel(result, sandbox.plan)).toContain('install it into the workspace');
  });

  it('what is told cannot be led elsewhere by a link, and its names are no text of a terminal', async () => {
    const world = makeHome();
    const workspace = workspaceIn(world, 'project');
    mkdirSync(join(world.root, 'outside'));
    writeFileSync(join(world.root, 'outside/of-the-user'), '');
    const script = [
      'rm -rf ~/.cargo ~/go; ln -s "$1" ~/.cargo; mkdir "$2"; ln -s "$1" ~/go/bin 2>/dev/null; ln -s "$2" ~/.bun',
      `mkdir ~/"$(printf 'a\\033[31m\\nb')"`,
    ].join('\n');
    writeFileSync(join(workspace, 'script'), script);
    mkdirSync(join(world.root, 'outside/bin'));
    writeFileSync(join(world.root, 'outside/bin/of-the-user'), '');
    await using sandbox = await sandboxIn(tier, { workspace });
    const result = await sandbox.run(`sh script ${world.root}/outside ~/made`);
    expect(result.notKept?.map(({ path }) => path).sort()).toEqual([
      `${world.home}/a\u001b[31m\nb`,
      join(world.home, 'made'),
    ]);
    for (const said of [...warningsOf(result), messageForModel(result, sandbox.plan) ?? ''])
      expect(['\u001b', '\n', 'of-the-user'].filter((part) => said.includes(part))).toEqual([]);
  });

  it('what a command leaves in the home does not reach the real one, nor the next command', async () => {
    const world = makeHome();
    const workspace = workspaceIn(world, 'a/project');
    mkdirSync(join(world.home, '.local/bin'), { recursive: true });
    mkdirSync(join(world.home, '.cargo/bin'), { recursive: true });
    const before = snapshot(world.home);
    await using sandbox = await sandboxIn(tier, { workspace });
    const litter = [
      'for d in ~ ~/a ~/.local ~/.local/share ~/.local/share/pnpm ~/.cargo; do echo note > $d/note; done',
      'echo "alias ls=evil" > ~/.bashrc',
      'ln -sfn / ~/.config; ln -s /etc ~/.local/link; mv ~/.cargo/registry ~/.cargo/gone',
      'echo x > ~/.local/bin/planted; echo x > ~/.cargo/bin/planted',
      'rmdir ~/a/project ~/.local/bin ~/.cargo/bin; mv ~/a ~/b; ln -s ~/b ~/a; mv ~/.local ~/moved; ln -s /etc ~/.local',
      'true',
    ].join('\n');
    for (let round = 0; round < 3; round++) {
      const { stdout } = await sandbox.run(
        `ls -A ~/a ~/.local/bin; cat ~/.bashrc ~/note ~/a/note ~/.local/note ~/.local/share/note ~/.cargo/note; readlink ~/.cargo/registry ~/.config ~/.local; ls -A ~ | grep -e moved -e '^b$'; cat "${workspace}/mine"\n${litter}`,
      );
      expect(stdout).toBe(
        `${world.home}/.local/bin:\n\n${world.home}/a:\nproject\n/.sandbox-cache/cargo-registry\nmine`,
      );
    }
    expect(snapshot(world.home)).toEqual(before);
  });

  it('a granted directory of the home lies at its path, and what it can do there is what was granted', async () => {
    const world = makeHome();
    const workspace = workspaceIn(world, 'project');
    for (const name of ['seen', 'shared']) {
      mkdirSync(join(world.home, name));
      writeFileSync(join(world.home, name, 'file'), name);
    }
    const { stdout } = await runIn(
      tier,
      workspace,
      'cat ~/seen/file ~/shared/file; echo x > ~/seen/new; echo x > ~/shared/new; echo x > ~/seen/file',
      { filesystem: { read: ['~/seen'], write: ['~/shared'] } },
    );
    expect(stdout).toBe('seenshared');
    expect(readdirSync(join(world.home, 'seen'))).toEqual(['file']);
    expect(readdirSync(join(world.home, 'shared'))).toEqual(['file', 'new']);
  });

  it.each([
    ['the whole of a cache', '.cargo', 'registry/x'],
    ['a file where settings are put', '.gitconfig', undefined],
    ['something in a cache', '.cache/browsers', 'x'],
  ])('a granted path is there in place of what is put there: %s', async (_, path, inner) => {
    const world = makeHome();
    const workspace = workspaceIn(world, 'project');
    const file = join(world.home, path, inner ?? '.');
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, '[user]\n\tname = granted\n');
    const { stdout } = await runIn(
      tier,
      workspace,
      `cat "${file}"; echo x > "${file}"; echo x > ~/free && cat ~/free`,
      {
        filesystem: { read: [`~/${path}`] },
      },
    );
    expect(stdout).toBe('[user]\n\tname = granted\nx\n');
  });

  it('a granted path that is a link, or lies behind one in the home, opens what it leads to and no more', async () => {
    const world = makeHome();
    const workspace = workspaceIn(world, 'project');
    const elsewhere = join(world.root, 'elsewhere');
    mkdirSync(join(elsewhere, 'bin'), { recursive: true });
    writeFileSync(join(elsewhere, 'bin/tool'), 'tool');
    writeFileSync(join(elsewhere, 'credentials'), SECRET);
    // What is put into the home, by way of the link, would land outside.
    symlinkSync(elsewhere, join(world.home, '.cargo'));
    symlinkSync(elsewhere, join(world.home, 'linked'));
    const before = snapshot(elsewhere);
    for (const path of ['~/.cargo/bin', '~/linked/bin']) {
      const { stdout } = await runIn(
        tier,
        workspace,
        `cat ${world.home}/${path.slice(2)}/tool; cat ~/.cargo/credentials ~/linked/credentials "${elsewhere}/credentials"; find ~ "${elsewhere}"; echo x > ~/.cargo/x; echo x > "${elsewhere}/x"; true`,
        { filesystem: { read: [path] } },
      );
      expect(stdout).toMatch(/^tool/);
      expect(stdout).not.toContain(SECRET);
      expect(snapshot(elsewhere)).toEqual(before);
    }
  });

  it('the home is a symbolic link', async () => {
    const world = makeHome();
    const workspace = workspaceIn(world, 'project');
    const named = join(world.root, 'home-link');
    symlinkSync('user', named);
    process.env.HOME = named;
    const { stdout } = await runIn(
      tier,
      join(named, 'project'),
      `echo "$HOME"; cat ~/project/mine "${workspace}/mine"; ${LIST} ; find "${world.root}/"`,
    );
    expect(stdout).toMatch(new RegExp(`^${named}\nminemine`));
    expect(stdout).not.toContain(SECRET);
    expect(stdout).not.toMatch(/notes|other/);
  });

  it('the home lies on another file system', async () => {
    const world = makeHome('/dev/shm');
    expect(statSync(world.home).dev).not.toBe(statSync('/var/tmp').dev);
    const workspace = workspaceIn(makeHome(), 'project');
    process.env.HOME = world.home;
    const before = snapshot(join(world.home, 'other'));
    const { stdout } = await runIn(tier, workspace, `echo "$HOME"; cat mine; ${LIST}; echo x > ~/x`);
    expect(stdout).toMatch(new RegExp(`^${world.home}\nmine`));
    expect(stdout).not.toContain(SECRET);
    expect(snapshot(join(world.home, 'other'))).toEqual(before);
    expect(existsSync(join(world.home, 'x'))).toBe(false);
  });

  it('the home does not exist, or may not be entered by others', async () => {
    const world = makeHome();
    const workspace = workspaceIn(world, 'project');
    chmodSync(world.home, 0o700);
    expect((await runIn(tier, workspace, `cat mine; ${LIST}`)).stdout).not.toContain(SECRET);
    process.env.HOME = join(world.root, 'nobody/here');
    const { stdout } = await runIn(tier, workspace, 'echo x > ~/x && cat ~/x && echo "$HOME"');
    expect(stdout).toBe(`x\n${world.root}/nobody/here\n`);
    expect(existsSync(join(world.root, 'nobody'))).toBe(false);
  });

  it('programs that ask the user database find the directory that HOME names', async () => {
    const known = homeInDatabase();
    expect(known).toBe(userInfo().homedir);
    const world = makeHome();
    const workspace = workspaceIn(world, 'project');
    const { stdout } = await runIn(
      tier,
      workspace,
      `echo same > ~/file; cat "${known}/file"; ls -A "${known}/.ssh"`,
    );
    // What is there for everybody, such as a home that is the root directory, is no place for a private one.
    const isShown = known !== undefined && existsSync(known) && known !== '/';
    expect(stdout).toBe(isShown ? 'same\n' : '');
    expect(existsSync(`${known}/file`)).toBe(false);
  });

  it.each(['/', '/tmp', '/etc', '/dev', '/usr', '/proc'])('HOME is %s, which is not a home', async (home) => {
    const world = makeHome();
    const workspace = workspaceIn(world, 'project');
    process.env.HOME = home;
    const { stdout } = await runIn(tier, workspace, 'echo "$HOME"; echo x > ~/x && cat ~/x; ls /usr/bin/env');
    expect(stdout).toBe('/home/sandbox\nx\n/usr/bin/env\n');
  });

  it('the home is the workspace, or lies in it', async () => {
    const world = makeHome();
    for (const workspace of [world.home, world.root])
      await expect(sandboxIn(tier, { workspace })).rejects.toMatchObject({ code: 'workspace.unsafe' });
  });

  it('outside, the same commands do see it', () => {
    const world = makeHome();
    const listed = execFileSync('sh', ['-c', LIST], { env: { HOME: world.home }, encoding: 'utf8' });
    expect(listed).toContain(SECRET);
    expect(listed).toMatch(/notes/);
  });
});

// Without a view there is no private home over the real one: read-outside.test.ts has what Landlock refuses of it.
it.runIf(!HOST.namespaces)(
  'the real home is refused by name where it cannot be covered (no namespaces)',
  async () => {
    const world = makeHome();
    const workspace = workspaceIn(world, 'project');
    await using sandbox = await sandboxIn(WITHOUT_VIEW, { workspace });
    const { stdout } = await sandbox.run(
      `echo "$HOME"; cat mine; cd ${world.home}; cat .secret notes other/project/file; ls`,
    );
    expect(stdout).not.toContain(world.home);
    expect(stdout).not.toContain(SECRET);
    expect(stdout).toMatch(/\nmine$/);
  },
);
