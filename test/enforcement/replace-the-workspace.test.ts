import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { makeArena, SECRET } from '../support/arena.ts';
import { sandboxIn, TIERS } from '../support/tiers.ts';

describe('replacing what the policy names, between two commands', () => {
  const arena = makeArena();
  const fresh = (name: string) => {
    const workspace = join(arena.root, name);
    mkdirSync(workspace);
    writeFileSync(join(workspace, 'old'), '');
    return workspace;
  };

  describe.each(TIERS)('$name', (tier) => {
    const suffix = tier.name.replaceAll(' ', '-');

    it('a directory in place of the workspace: the command works in the new one, and not in the old', async () => {
      const workspace = fresh(`replaced-${suffix}`);
      await using sandbox = await sandboxIn(tier, { workspace });
      expect((await sandbox.run('ls')).stdout).toBe('old\n');
      renameSync(workspace, `${workspace}.moved`);
      mkdirSync(workspace);
      const result = await sandbox.run(': > new; ls; ls ../*.moved; : > ../replaced-*.moved/stray; true');
      expect(result.stdout).toBe('new\n');
      expect(readdirSync(workspace)).toEqual(['new']);
      expect(readdirSync(`${workspace}.moved`)).toEqual(['old']);
    });

    it('a directory in place of the workspace: eight commands at a time work in the new one', async () => {
      const workspace = fresh(`crowded-${suffix}`);
      await using sandbox = await sandboxIn(tier, { workspace });
      const eight = (command: string) =>
        Promise.all(Array.from({ length: 8 }, async () => (await sandbox.run(command)).stdout));
      expect(await eight('sleep 0.2; ls')).toEqual(Array(8).fill('old\n'));
      renameSync(workspace, `${workspace}.moved`);
      mkdirSync(workspace);
      writeFileSync(join(workspace, 'new'), '');
      expect(await eight('ls')).toEqual(Array(8).fill('new\n'));
    });

    it('a link in place of the workspace: the command does not run where it leads', async () => {
      const workspace = fresh(`linked-${suffix}`);
      await using sandbox = await sandboxIn(tier, { workspace });
      await sandbox.run(['/bin/true']);
      renameSync(workspace, `${workspace}.moved`);
      symlinkSync(arena.outside, workspace);
      const result = await sandbox.run('cat secret.txt; : > planted; true');
      expect(result.stdout).not.toContain(SECRET);
      expect(existsSync(join(arena.outside, 'planted'))).toBe(false);
      expect(result.status).toBe('setup-failed');
    });

    it('nothing in place of the workspace: the command does not run', async () => {
      const workspace = fresh(`gone-${suffix}`);
      await using sandbox = await sandboxIn(tier, { workspace });
      await sandbox.run(['/bin/true']);
      rmSync(workspace, { recursive: true });
      const result = await sandbox.run('echo ran');
      expect([result.status, result.stdout]).toEqual(['setup-failed', '']);
      expect(result.error?.path ?? result.error?.message).toContain(workspace);
    });

    it('another inode for a readable file: the command reads the new one', async () => {
      const workspace = fresh(`file-${suffix}`);
      const file = join(arena.root, `settings-${suffix}`);
      writeFileSync(file, 'first');
      await using sandbox = await sandboxIn(tier, { workspace, readable: [file] });
      expect((await sandbox.run(['/bin/cat', file])).stdout).toBe('first');
      writeFileSync(`${file}.new`, 'second');
      renameSync(`${file}.new`, file);
      expect((await sandbox.run(['/bin/cat', file])).stdout).toBe('second');
    });

    it('by the command itself: a workspace inside a writable directory cannot be made a link to elsewhere', async () => {
      const parent = join(arena.root, `parent-${suffix}`);
      const workspace = join(parent, 'workspace');
      mkdirSync(workspace, { recursive: true });
      await using sandbox = await sandboxIn(tier, { workspace, writable: [parent] });
      await sandbox.run(`cd "${parent}" && mv workspace moved && ln -s "${arena.outside}" workspace; true`);
      const result = await sandbox.run('cat secret.txt; : > planted; true');
      expect(result.stdout).not.toContain(SECRET);
      expect(existsSync(join(arena.outside, 'planted'))).toBe(false);
    });
  });
});
