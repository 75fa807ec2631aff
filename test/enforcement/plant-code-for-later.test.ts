import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import type { ExecutionResult, Sandbox } from '../../src/index.ts';
import { OBEYED_FILES, PROTECTED_PATHS } from '../../src/policy/index.ts';
import { warningsOf } from '../../src/run/index.ts';
import { makeArena, snapshot } from '../support/arena.ts';
import { lacks } from '../support/programs.ts';
import { HOST, sandboxIn, stateOf, TIERS, WITH_VIEW, WITHOUT_VIEW } from '../support/tiers.ts';

/** What was set aside or put back after a command. */
const shutBy = ({ leftBehind }: ExecutionResult) =>
  leftBehind.filter(({ done }) => done !== 'told').map(({ path }) => path);

let template: string | undefined;

/** Makes a repository with what a user has in one, the first with git and the others as copies of it. */
function makeRepository(directory: string): string {
  if (template !== undefined) {
    cpSync(template, directory, { recursive: true, preserveTimestamps: true });
    return directory;
  }
  template = `${directory}.template`;
  initRepository(template);
  return makeRepository(directory);
}

function initRepository(directory: string): void {
  mkdirSync(directory, { recursive: true });
  const git = (...args: string[]) => execFileSync('git', ['-C', directory, ...args], { stdio: 'pipe' });
  git('init', '-q');
  git('config', 'user.name', 'nobody');
  git('config', 'user.email', 'nobody@localhost');
  writeFileSync(join(directory, '.git/hooks/pre-commit'), '#!/bin/sh\n', { mode: 0o755 });
  writeFileSync(join(directory, '.envrc'), 'export A=1\n');
  mkdirSync(join(directory, '.vscode'));
  writeFileSync(join(directory, '.vscode/tasks.json'), '{}\n');
  writeFileSync(join(directory, 'file'), 'x\n');
  git('add', 'file');
  git('-c', 'core.hooksPath=/dev/null', 'commit', '-q', '-m', 'first');
}

const guarded = (repository: string) =>
  ['.git/hooks', '.git/config', '.envrc', '.vscode'].map((path) => snapshot(join(repository, path)));

/** One shell line each; all of them try to change what the user's tools run later. */
const ATTACKS: Readonly<Record<string, string>> = {
  'write a hook': 'echo evil > .git/hooks/pre-commit',
  'add a hook': 'echo evil > .git/hooks/post-checkout',
  'make a hook executable': 'chmod 777 .git/hooks/pre-commit; chmod 777 .git/hooks',
  'remove a hook': 'rm -f .git/hooks/pre-commit',
  'rename the hooks': 'mv .git/hooks .git/hooks.old; mkdir .git/hooks; echo evil > .git/hooks/pre-commit',
  'rename the repository': 'mv .git .git.old; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit',
  'remove the repository': 'rm -rf .git',
  'replace the hooks by a link': 'rm -rf .git/hooks; ln -sfn /tmp .git/hooks; ln -sfT /tmp .git/hooks',
  'write the configuration': 'echo "[core] fsmonitor = evil" >> .git/config',
  'let git write it': 'git config core.hooksPath evil; git config --file .git/config core.fsmonitor evil',
  'replace the configuration':
    'echo evil > evil; mv -f evil .git/config; cp --remove-destination evil .git/config',
  'by a hard link':
    'ln .git/config alias; echo evil >> alias; ln .git/hooks/pre-commit alias2; echo evil >> alias2',
  'through /proc': 'echo evil >> /proc/self/cwd/.git/config; echo evil >> "/proc/self/root$PWD/.git/config"',
  'through a link': 'ln -s .git/config link; echo evil >> link; ln -s .git g; echo evil > g/hooks/pre-commit',
  'unmount it': 'umount .git/config; umount .git/hooks; umount .git; umount -l .',
  'write an agent or editor file':
    'echo evil > .envrc; echo evil > .vscode/tasks.json; rm -rf .vscode .envrc',
  'move the editor directory': 'mv .vscode v; mkdir .vscode; echo evil > .vscode/tasks.json',
  ...(lacks('python3')
    ? {}
    : {
        'exchange the repository': `mkdir evil.git; python3 -c 'import ctypes; print(ctypes.CDLL(None).renameat2(-100, b"evil.git", -100, b".git", 2))'`,
        'through an open directory': `python3 -c 'import os; d = os.open(".git", 0); os.write(os.open("config", os.O_WRONLY, dir_fd=d), b"evil")'`,
      }),
};

describe('planting code that the user runs later', () => {
  const arena = makeArena();

  it('works without a sandbox', () => {
    const failed = Object.entries(ATTACKS).filter(([name, attack], index) => {
      if (name === 'unmount it') return false;
      const repository = makeRepository(join(arena.root, `free-${index}`));
      const before = JSON.stringify(guarded(repository));
      execFileSync('bash', ['-c', `${attack}; true`], { cwd: repository, stdio: 'pipe' });
      try {
        return JSON.stringify(guarded(repository)) === before;
      } catch {
        return false;
      }
    });
    expect(failed).toEqual([]);
  });

  describe.each(TIERS.filter((tier) => tier.view))('$name', (tier) => {
    const root = join(arena.root, tier.name.replaceAll(' ', '-'));
    mkdirSync(root);
    it.each(Object.entries(ATTACKS))('fails: %s', async (name, attack) => {
      const repository = makeRepository(join(root, name.replaceAll(' ', '-').replaceAll('/', '')));
      const before = guarded(repository);
      await using sandbox = await sandboxIn(tier, { workspace: repository });
      expect(stateOf(sandbox, 'protected-paths')).toBe('enforced');
      const result = await sandbox.run(`${attack}; true`);
      expect(result.status).toBe('exited');
      expect(guarded(repository)).toEqual(before);
    });

    it('fails when the writable path is an ancestor of the workspace', async () => {
      const parent = join(root, 'writable-parent');
      const repository = makeRepository(join(parent, 'repository'));
      const before = guarded(repository);
      await using sandbox = await sandboxIn(tier, { workspace: repository, writable: [parent] });
      const result = await sandbox.run(
        `cd "${parent}"; echo evil >> repository/.git/config; mv repository moved; mkdir -p repository/.git/hooks; echo evil > repository/.git/hooks/pre-commit; true`,
      );
      expect(result.status).toBe('exited');
      expect(guarded(repository)).toEqual(before);
    });

    it('fails for everything in the list that is there, and is told for what is not', async () => {
      const repository = makeRepository(join(root, 'listed'));
      // What is git's is attacked above, and what appears there is taken away again.
      const paths = PROTECTED_PATHS.filter(
        (path) => !path.startsWith('.git/') && !existsSync(join(repository, path)),
      );
      // The attempt is one: in the same way what honest work writes is written.
      const free = OBEYED_FILES.filter(
        ({ treatment, path }) =>
          treatment === 'told' &&
          !path.startsWith('*') &&
          // In a directory that is shut at the top.
          !PROTECTED_PATHS.some((shut) => path.startsWith(`${shut}/`)),
      );
      const open = free.map(({ path }) => path);
      const absent = paths.filter((_, at) => at % 2 === 1);
      for (const path of [...paths, ...open].filter((name) => !absent.includes(name))) {
        mkdirSync(dirname(join(repository, path)), { recursive: true });
        writeFileSync(join(repository, path), '# mine\n');
      }
      await using sandbox = await sandboxIn(tier, { workspace: repository });
      const result = await sandbox.run(
        [...paths, ...open]
          .map(
            (path) =>
              `mkdir -p '${dirname(path)}'; rm -f '${path}'; mv '${path}' moved; echo evil > '${path}'`,
          )
          .join('\n'),
        // Some 600 programs, which a slow machine takes long for.
        { timeout: 0 },
      );
      expect(result.status).toBe('exited');
      const content = (path: string) => readFileSync(join(repository, path), 'utf8');
      for (const path of paths)
        expect([path, existsSync(join(repository, path)) && content(path)]).toEqual([
          path,
          absent.includes(path) ? false : '# mine\n',
        ]);
      for (const path of open) expect([path, content(path)]).toEqual([path, 'evil\n']);
      expect(shutBy(result)).toEqual(expect.arrayContaining(absent.map((path) => join(repository, path))));
    });

    describe('by making what does not exist', () => {
      let repository = '';
      let sandbox: Sandbox;
      beforeAll(async () => {
        repository = makeRepository(join(root, 'missing'));
        sandbox = await arena.sandbox(tier, { workspace: repository });
      });

      it.each(['once', 'again'])('is set aside: %s', async () => {
        const result = await sandbox.run('mkdir .husky; echo evil > .husky/pre-commit; echo evil > .bashrc');
        expect(shutBy(result)).toEqual([join(repository, '.bashrc'), join(repository, '.husky')]);
        expect(existsSync(join(repository, '.husky'))).toBe(false);
        expect(existsSync(join(repository, '.bashrc'))).toBe(false);
        expect((await sandbox.run('true')).leftBehind).toEqual([]);
      });

      it('inside .git is taken out of git’s way', async () => {
        const evil = join(repository, 'evil');
        const result = await sandbox.run(
          `mkdir -p evil/hooks; cp -r .git/refs .git/objects evil/; cp .git/HEAD .git/config evil/; echo "${evil}" > .git/commondir; echo evil > .git/config.worktree`,
        );
        expect(shutBy(result)).toEqual(expect.arrayContaining([join(repository, '.git/commondir')]));
        expect(existsSync(join(repository, '.git/commondir'))).toBe(false);
        expect(readFileSync(join(repository, '.git/config.worktree'), 'utf8')).not.toContain('evil');
        expect(warningsOf(result).join()).toContain('commondir');
      });
    });

    /** What the first command does to have the second one's view built without what protects a submodule. */
    const PREPARED: Readonly<Record<string, readonly [prepare: string, back: string]>> = {
      'no HEAD': [
        'mv .git/modules/sub/HEAD .git/modules/sub/H',
        'mv .git/modules/sub/H .git/modules/sub/HEAD',
      ],
      'a HEAD above it': ['touch .git/modules/HEAD', 'rm .git/modules/HEAD'],
      'a configuration above it': ['touch .git/modules/config', 'true'],
      'more directories than are looked at': [
        'mkdir .git/worktrees; cd .git/worktrees; for ((i = 0; i < 2100; i++)); do echo d$i; done | xargs mkdir',
        'true',
      ],
      nothing: ['true', 'true'],
    };
    it.each(Object.entries(PREPARED))(
      'fails for a submodule after a command made: %s',
      async (name, [prepare, back]) => {
        const repository = makeRepository(join(root, `prepared-${name.replaceAll(' ', '-')}`));
        const modules = [join(repository, '.git/modules/sub'), join(repository, '.git/elsewhere')];
        for (const path of modules) {
          mkdirSync(join(path, 'hooks'), { recursive: true });
          writeFileSync(join(path, 'HEAD'), 'ref: refs/heads/main\n');
          writeFileSync(join(path, 'config'), '[core]\n');
        }
        // Git follows it.
        symlinkSync('../elsewhere', join(repository, '.git/modules/linked'));
        await using first = await sandboxIn(tier, { workspace: repository });
        await first.run(`${prepare}; true`);
        await using second = await sandboxIn(tier, { workspace: repository });
        for (const sandbox of [first, second]) {
          await sandbox.run(
            `cd .git/modules; for m in sub linked; do echo evil >> $m/config; echo evil > $m/hooks/post-checkout; done; cd ../..; ${back}`,
          );
        }
        for (const path of modules) {
          expect(readFileSync(join(path, 'config'), 'utf8')).toBe('[core]\n');
          expect(readdirSync(join(path, 'hooks'))).toEqual([]);
        }
      },
    );

    it.runIf(!HOST.root)('fails by shutting the repository for a later command (not root)', async () => {
      const repository = makeRepository(join(root, 'shut'));
      const before = guarded(repository);
      const open = `${JSON.stringify(process.execPath)} -e 'require("fs").chmodSync(".git", 0o755)'; echo evil > .git/hooks/pre-commit; echo evil >> .git/config`;
      await using sandbox = await sandboxIn(tier, { workspace: repository });
      expect((await sandbox.run('chmod 0 .git')).status).toBe('exited');
      const later = await sandbox.run(open);
      expect(later.status).toBe('setup-failed');
      expect(later.error?.message).toContain('.git');
      await expect(sandboxIn(tier, { workspace: repository })).rejects.toMatchObject({
        code: 'confinement.failed',
      });
      chmodSync(join(repository, '.git'), 0o755);
      expect(guarded(repository)).toEqual(before);
    });

    it('says so where a link in the workspace leads to a protected path', async () => {
      const repository = makeRepository(join(root, 'linked'));
      mkdirSync(join(repository, 'elsewhere'));
      symlinkSync('elsewhere', join(repository, '.cursor'));
      await using sandbox = await sandboxIn(tier, { workspace: repository });
      expect(stateOf(sandbox, 'protected-paths')).toBe('degraded');
      await sandbox.run('echo evil > .cursor/rules; true');
      expect(readdirSync(join(repository, 'elsewhere'))).toEqual([]);
    });

    it.each(['.git/hooks', '.husky'])('says so where %s is a link that a command replaces', async (name) => {
      const repository = makeRepository(join(root, `replaced-${name.replace('/', '-')}`));
      const link = join(repository, name);
      rmSync(link, { recursive: true, force: true });
      mkdirSync(join(repository, 'elsewhere'));
      symlinkSync(join(repository, 'elsewhere'), link);
      await using sandbox = await sandboxIn(tier, { workspace: repository });
      expect(stateOf(sandbox, 'protected-paths')).toBe('degraded');
      const result = await sandbox.run(`mv ${name} old; mkdir ${name}; echo evil > ${name}/pre-commit`);
      expect(result.leftBehind).toMatchObject([
        { path: link, done: 'restored' },
        { path: join(repository, 'old'), done: 'told' },
      ]);
      expect(lstatSync(link).isSymbolicLink()).toBe(true);
      expect((await sandbox.run('true')).leftBehind).toEqual([]);
    });

    it('fails for the .git file of a worktree', async () => {
      const main = makeRepository(join(root, 'main'));
      const worktree = join(root, 'worktree');
      execFileSync('git', ['-C', main, 'worktree', 'add', '-q', worktree], { stdio: 'pipe' });
      const before = snapshot(join(worktree, '.git'));
      await using sandbox = await sandboxIn(tier, { workspace: worktree });
      await sandbox.run('echo "gitdir: /tmp/evil" > .git; mv .git x; rm -f .git; mkdir .git; true');
      expect(snapshot(join(worktree, '.git'))).toEqual(before);
    });

    it('fails for the configuration and hooks of a submodule, which git obeys as well', async () => {
      const inner = makeRepository(join(root, 'inner'));
      const outer = makeRepository(join(root, 'outer'));
      execFileSync(
        'git',
        ['-C', outer, '-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', inner, 'sub'],
        { stdio: 'pipe' },
      );
      const config = join(outer, '.git/modules/sub/config');
      const before = readFileSync(config, 'utf8');
      await using sandbox = await sandboxIn(tier, { workspace: outer });
      const result = await sandbox.run(
        'git -C sub config core.fsmonitor evil; echo evil > .git/modules/sub/hooks/post-checkout; true',
      );
      expect(readFileSync(config, 'utf8')).toBe(before);
      expect(result.leftBehind).toMatchObject([
        { path: config, done: 'shut', settings: ['core.fsmonitor=evil'] },
      ]);
    });

    it('leaves git at work', async () => {
      const repository = makeRepository(join(root, 'working'));
      await using sandbox = await sandboxIn(tier, { workspace: repository });
      const result = await sandbox.run(
        'echo y > other && git add other && git commit -q -m second && git log --oneline | wc -l && git branch b && git status --short -uno',
      );
      expect([result.stderr, result.stdout]).toEqual(['', '2\n']);
      expect(result.leftBehind).toEqual([]);
    });
  });

  it('works without a view, and the report says so', async () => {
    const repository = makeRepository(join(arena.root, 'without-view'));
    if (HOST.landlockAbi === 0) {
      // There is no Landlock either.
      await expect(sandboxIn(WITHOUT_VIEW, { workspace: repository })).rejects.toMatchObject({
        code: 'enforcement.unavailable',
      });
      return;
    }
    await using sandbox = await sandboxIn(WITHOUT_VIEW, { workspace: repository });
    const contentOf = (directory: string) =>
      ['config', 'hooks/pre-commit'].map((name) => readFileSync(join(directory, '.git', name), 'utf8'));
    const before = contentOf(repository);
    const result = await sandbox.run(
      'git config core.fsmonitor ./evil; echo evil > .git/hooks/pre-commit; cat .git/hooks/pre-commit',
    );
    expect(stateOf(sandbox, 'protected-paths')).toBe('degraded');
    // It works while the command runs, and is undone when it ends.
    expect(result.stdout).toBe('evil\n');
    expect(contentOf(repository)).toEqual(before);
    expect(result.leftBehind.map(({ done }) => done).sort()).toEqual(['restored', 'shut']);
    expect(lstatSync(join(repository, '.git/config')).isFile()).toBe(true);
  });

  it('a policy that demands protection does not run without it', async () => {
    const repository = makeRepository(join(arena.root, 'demanded'));
    const policy = { demand: { 'protected-paths': 'required' } } as const;
    await expect(sandboxIn(WITHOUT_VIEW, { workspace: repository, policy })).rejects.toMatchObject({
      code: 'enforcement.unavailable',
    });
    if (TIERS.includes(WITH_VIEW))
      await (await sandboxIn(WITH_VIEW, { workspace: repository, policy })).close();
  });
});
