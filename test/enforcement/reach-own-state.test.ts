import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { HOST, sandboxIn, TIERS, WITHOUT_VIEW } from '../support/tiers.ts';

// Whoever writes there answers for the user: approvals, taints and the policy itself.
describe('reaching what sandbox-run itself keeps', () => {
  const arena = makeArena();
  const before = { state: process.env.XDG_STATE_HOME, config: process.env.XDG_CONFIG_HOME };
  let home: string;
  let state: string;
  let config: string;

  beforeAll(() => {
    home = mkdtempSync(join(arena.root, 'home-'));
    state = join(home, '.local/state/sandbox-run');
    config = join(home, '.config/sandbox-run');
    process.env.XDG_STATE_HOME = join(home, '.local/state');
    process.env.XDG_CONFIG_HOME = join(home, '.config');
    for (const directory of [state, config]) {
      mkdirSync(directory, { recursive: true, mode: 0o700 });
      writeFileSync(join(directory, 'kept'), 'kept');
    }
    rmSync(join(config, 'kept'));
  });
  afterAll(() => {
    for (const [name, value] of [
      ['XDG_STATE_HOME', before.state],
      ['XDG_CONFIG_HOME', before.config],
    ] as const) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  });

  const kept = () => ({
    // Of the caches a command sees its own workspace's, cf. plant-in-a-cache.test.ts.
    state: readdirSync(state).filter((name) => name !== 'caches'),
    config: readdirSync(config),
    content: readFileSync(join(state, 'kept'), 'utf8'),
    around: readdirSync(home).sort(),
  });

  it.each(TIERS)('is not possible by default, $name', async (tier) => {
    await using sandbox = await sandboxIn(tier, { workspace: arena.workspace });
    const result = await sandbox.run(
      `cat ${state}/kept; : > ${state}/planted; : > ${config}/policy.toml; true`,
    );
    expect(result.stdout).toBe('');
    expect(kept()).toMatchObject({ state: ['kept'], config: [], content: 'kept' });
  });

  describe.each(TIERS.filter((tier) => tier.view))('where all around it is granted, $name', (tier) => {
    const attacks = {
      'by their names': () =>
        `ls -A ${state} ${config}; cat ${state}/kept; : > ${state}/planted; echo x > ${config}/policy.toml; true`,
      'by making room for others of that name': () =>
        `cd ${home}; mv .local away; mv .config away2; mv .local/state .local/s; mv ${state} ${state}.old; rm -rf .local .config; mkdir -p ${state} && : > ${state}/planted; mkdir -p ${config} && : > ${config}/policy.toml; true`,
      'through links': () =>
        `cd ${home}; ln -s .local/state/sandbox-run l; cat l/kept; : > l/planted; ln .local/state/sandbox-run/kept hard && cat hard; rm -f l hard; true`,
      'through other names of the root': () =>
        `for root in /proc/self/root /proc/1/root /proc/self/cwd/../..; do cat $root${state}/kept; : > $root${state}/planted; done; true`,
      'by unmounting what hides them': () => `umount ${state}; umount -l ${config}; cat ${state}/kept; true`,
    };
    const write = async (command: string) => {
      await using sandbox = await sandboxIn(tier, { workspace: arena.workspace, writable: [home] });
      return await sandbox.run(
        `echo granted > ${home}/probe && cat ${home}/probe && rm ${home}/probe; ${command}`,
      );
    };

    it.each(Object.entries(attacks))('is not possible %s', async (_, attack) => {
      const result = await write(attack());
      // The grant holds, or the attack tried nothing.
      expect(result.stdout).toMatch(/^granted\n/);
      expect(result.stdout).not.toContain('kept\n');
      expect(
        result.stdout
          .replace('granted\n', '')
          .replace(/^\/.*:$|^\s*$/gm, '')
          .trim(),
      ).toBe('');
      expect(kept()).toMatchObject({
        state: ['kept'],
        config: [],
        content: 'kept',
        around: ['.config', '.local'],
      });
    });

    it('is not possible by reading', async () => {
      await using sandbox = await sandboxIn(tier, { workspace: arena.workspace, readable: [home] });
      const result = await sandbox.run(`find ${home} -type f; cat ${state}/kept; true`);
      expect(result.stdout).toBe('');
    });

    it('is not possible by reading where all files of the machine are granted', async () => {
      writeFileSync(join(home, 'granted'), 'granted');
      try {
        await using sandbox = await sandboxIn(tier, { workspace: arena.workspace, readable: ['/', home] });
        const result = await sandbox.run(
          `cat ${home}/granted && : > "$TMPDIR/own" && ls / && ! : > ${home}/new; cat ${state}/kept`,
        );
        expect(result.stdout).toMatch(/^granted(?:.*\n)+etc\n/);
        expect(result.stdout).not.toContain('kept');
        expect(result.stderr).toMatch(/new: Read-only file system/);
      } finally {
        rmSync(join(home, 'granted'));
      }
    });

    it('is not possible by being there first', async () => {
      const fresh = mkdtempSync(join(arena.root, 'fresh-'));
      process.env.XDG_STATE_HOME = join(fresh, 'state');
      try {
        await using sandbox = await sandboxIn(tier, { workspace: arena.workspace, writable: [fresh] });
        await sandbox.run(
          `mkdir -p ${fresh}/state/sandbox-run; : > ${fresh}/state/sandbox-run/gate.db; true`,
        );
        expect(readdirSync(join(fresh, 'state/sandbox-run'))).toEqual(['caches']);
      } finally {
        process.env.XDG_STATE_HOME = join(home, '.local/state');
      }
    });
  });

  it('is refused where nothing could hide them', async () => {
    if (HOST.landlockAbi === 0) {
      // Without Landlock and a view nothing runs at all.
      await expect(
        sandboxIn(WITHOUT_VIEW, { workspace: arena.workspace, writable: [home] }),
      ).rejects.toMatchObject({ code: 'enforcement.unavailable' });
      return;
    }
    await expect(sandboxIn(WITHOUT_VIEW, { workspace: arena.workspace, writable: [home] })).rejects.toThrow(
      /commands could reach .*\/\.local\/state\/sandbox-run.* because the policy grants .*home-.* namespaces/,
    );
  });

  describe.each(TIERS)('by way of links, $name', (tier) => {
    const linked = async (
      variable: string,
      make: (place: string) => string,
      writable: readonly string[] = [],
    ) => {
      const place = mkdtempSync(join(arena.root, 'linked-'));
      const previous = process.env[variable];
      process.env[variable] = make(place);
      try {
        const sandbox = await sandboxIn(tier, { workspace: arena.workspace, writable: [place, ...writable] });
        await sandbox.close();
      } finally {
        process.env[variable] = previous;
      }
    };
    const away = (name: string) => {
      const directory = mkdtempSync(join(arena.outside, 'away-'));
      mkdirSync(join(directory, name, 'sandbox-run'), { recursive: true, mode: 0o700 });
      return join(directory, name);
    };

    it.each(['XDG_STATE_HOME', 'XDG_CONFIG_HOME'])(
      'that a command could replace is refused: %s',
      async (name) => {
        const link = (place: string) => {
          symlinkSync(away('real'), join(place, 'link'));
          return join(place, 'link');
        };
        await expect(linked(name, link)).rejects.toMatchObject({
          code: 'state.reachable',
          message: expect.stringContaining('by way of the link'),
        });
        const inWorkspace = (place: string) => {
          const path = join(arena.workspace, `link-of-${place.slice(-6)}`);
          symlinkSync(away('real'), path);
          return path;
        };
        await expect(linked(name, inWorkspace)).rejects.toMatchObject({ code: 'state.reachable' });
      },
    );
  });

  it.each(TIERS.filter((tier) => tier.view))(
    'settings in the workspace can be seen and not changed, $name',
    async (tier) => {
      const settings = join(arena.workspace, 'dotfiles/sandbox-run');
      mkdirSync(settings, { recursive: true });
      writeFileSync(join(settings, 'notes'), 'mine', { mode: 0o600 });
      process.env.XDG_CONFIG_HOME = join(arena.workspace, 'dotfiles');
      try {
        await using sandbox = await sandboxIn(tier, { workspace: arena.workspace });
        const result = await sandbox.run(
          'cd dotfiles; cat sandbox-run/notes; echo x > sandbox-run/notes; : > sandbox-run/policy.toml; mv sandbox-run old; mv ../dotfiles ../away; rm -rf sandbox-run; true',
        );
        expect(result.stdout).toBe('mine');
        expect(readdirSync(settings)).toEqual(['notes']);
        expect(readFileSync(join(settings, 'notes'), 'utf8')).toBe('mine');
      } finally {
        process.env.XDG_CONFIG_HOME = join(home, '.config');
        rmSync(join(arena.workspace, 'dotfiles'), { recursive: true });
      }
    },
  );

  it.each(TIERS)('a policy file in the workspace is not a command’s to change, $name', async (tier) => {
    const file = join(arena.workspace, 'settings/policy.toml');
    mkdirSync(join(arena.workspace, 'settings'), { recursive: true });
    writeFileSync(file, '[unsafe]\nunjudged_commands = true\n', { mode: 0o600 });
    symlinkSync(file, join(config, 'policy.toml'));
    try {
      const made = sandboxIn(tier, { workspace: arena.workspace });
      if (!tier.view) {
        await expect(made).rejects.toMatchObject({
          code: 'state.reachable',
          message: expect.stringMatching(
            /^commands could change the policy .*; move it to where commands cannot write$/,
          ),
        });
        return;
      }
      await using sandbox = await made;
      await sandbox.run(
        'echo x > settings/policy.toml; mv settings/policy.toml settings/old; mv settings away; mkdir settings; echo y > settings/policy.toml; rm -rf settings; true',
      );
      expect(readFileSync(file, 'utf8')).toBe('[unsafe]\nunjudged_commands = true\n');
    } finally {
      rmSync(join(config, 'policy.toml'));
      rmSync(join(arena.workspace, 'settings'), { recursive: true });
    }
  });

  it.each(TIERS)('is refused as the workspace, or inside it, $name', async (tier) => {
    const inside = join(state, 'project');
    mkdirSync(inside);
    try {
      for (const workspace of [inside, state, join(home, '.local')])
        await expect(sandboxIn(tier, { workspace })).rejects.toMatchObject({ code: 'state.reachable' });
      await expect(sandboxIn(tier, { workspace: arena.workspace, readable: [inside] })).rejects.toMatchObject(
        { code: 'state.reachable' },
      );
    } finally {
      rmSync(inside, { recursive: true });
    }
    expect(existsSync(join(state, 'kept'))).toBe(true);
  });
});
