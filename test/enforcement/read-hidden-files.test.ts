import {
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { PolicyFile } from '../../src/index.ts';
import { introduceBoundaries } from '../../src/run/index.ts';
import { makeArena, SECRET } from '../support/arena.ts';
import { confined, unconfined } from '../support/sandboxee.ts';
import { HOST, OLDEST_TIERS, rowsFor, stateOf, TIERS, WITH_VIEW, WITHOUT_VIEW } from '../support/tiers.ts';

const HIDE = ['.env', '**/*.pem', 'secrets/'];

/** A project with secrets in it. `others`: what else is to be there, by path. */
function project(root: string, others: Readonly<Record<string, string>> = {}): string {
  const files = {
    '.env': SECRET,
    'app/.env': SECRET,
    'app/config/deep/key.pem': SECRET,
    'secrets/inner/token': SECRET,
    'app/index.js': 'ordinary',
    ...others,
  };
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(root, path, '..'), { recursive: true });
    writeFileSync(join(root, path), content);
  }
  return root;
}

/** Each prints what it can get of the secret. */
const WAYS: Readonly<Record<string, string>> = {
  'by its name': 'cat .env app/.env app/config/deep/key.pem secrets/inner/token',
  'by all names': 'grep -rs . .',
  'by a pattern': 'cat app/*/*/*.pem app/.e*',
  'by a new link': 'ln -s ../app/.env app/link; cat app/link',
  'by a new hard link': 'ln app/.env app/other; cat app/other',
  'by a copy': 'cp -r app app2; grep -rs . app2; cp -al secrets s2; grep -rs . s2',
  'after moving it': 'mv .env moved; cat moved',
  'after moving what it is in': 'mv app moved; cat moved/.env; mv app/config/deep d; cat d/key.pem',
  'after moving the directory itself': 'mv secrets moved; cat moved/inner/token',
  'after deleting what lies over it': 'rm -f .env; rmdir secrets; cat .env secrets/inner/token',
  'after putting another in its place': 'ln .env kept; echo x > new; mv -f new .env; cat .env kept',
  'by unmounting it': 'umount .env; umount -l app/.env; cat .env app/.env',
  'in a namespace of its own':
    'unshare -Urm sh -c "umount .env; umount -l secrets; cat .env secrets/inner/token"; unshare -m sh -c "umount .env; cat .env"',
  'by a mount of its surroundings':
    'mkdir m; mount --bind . m && cat m/.env; mount --rbind app m && cat m/.env',
  'from its own root': 'cat /proc/self/root/$PWD/.env /proc/self/cwd/.env /proc/$$/cwd/app/.env',
  'from the root of others':
    'for p in /proc/[0-9]*; do echo $p/root$PWD/.env $p/cwd/.env $p/fd/*/.env; done | xargs cat',
  'by a descriptor of a directory': 'exec 7<. 8<app; cat /proc/self/fd/7/.env /proc/self/fd/8/.env',
  'by archiving': 'tar cf - . ; find . -type f -exec cat {} +',
  'by changing its mode': 'chmod 777 .env secrets app/.env; cat .env',
};

describe.runIf(HOST.namespaces).each([...TIERS, ...OLDEST_TIERS].filter(({ view }) => view))(
  'reading what filesystem.hide hides, $name',
  (tier) => {
    const arena = makeArena();
    const rows = rowsFor(tier, Object.entries(WAYS), ([name]) => /mount|namespace|root|moving/.test(name));
    // Before anything runs: a command waits until what is hidden from it was not changed for two seconds.
    const attacked = new Map(rows.map(([name]) => [name, project(arena.freshCorner())]));
    const shown = project(arena.freshCorner());

    it.each(rows)('cannot be done %s', async (name, script) => {
      const workspace = attacked.get(name) ?? '';
      const argv = ['bash', '-c', script] as const;
      const sandbox = await arena.sandbox(tier, { workspace, hide: HIDE });
      expect(stateOf(sandbox, 'hidden-paths')).toBe('enforced');
      const { stdout, stderr } = await confined(sandbox, argv);
      expect(stdout + stderr).not.toContain(SECRET);
      for (const path of ['.env', 'app/.env', 'app/config/deep/key.pem', 'secrets/inner/token'])
        expect(readFileSync(join(workspace, path), 'utf8')).toBe(SECRET);
    });

    it('can be done without it, so that the ways are some', async () => {
      const workspace = project(arena.freshCorner());
      const sandbox = await arena.sandbox(tier, { workspace });
      expect(stateOf(sandbox, 'hidden-paths')).toBe('off');
      const impossible = ['by unmounting it', 'in a namespace of its own', 'by a mount of its surroundings'];
      for (const [name, script] of rows) {
        if (impossible.includes(name)) continue;
        const corner = project(arena.freshCorner());
        const open = await arena.sandbox(tier, { workspace: corner });
        const { stdout } = await confined(open, ['bash', '-c', script]);
        // What a hard link or a rename needs is there, and the file was read.
        expect([name, stdout.includes(SECRET)]).toEqual([name, true]);
      }
      expect((await unconfined(['cat', join(workspace, '.env')])).stdout).toBe(SECRET);
    });

    it('no commit records an empty file in the place of a hidden one that git tracks', async () => {
      const workspace = project(arena.freshCorner());
      const git = ['git', '-C', workspace, '-c', 'user.name=n', '-c', 'user.email=e'] as const;
      await unconfined([...git, 'init', '-q']);
      await unconfined([...git, 'add', '-f', '.env', 'app/index.js', 'app/config/deep/key.pem']);
      await unconfined([...git, 'commit', '-qm', 'one']);
      writeFileSync(join(workspace, 'app/index.js'), 'changed');
      const sandbox = await arena.sandbox(tier, { workspace, hide: HIDE });
      const commit = 'git -c user.name=n -c user.email=e commit -q';
      for (const line of [`${commit} -am all`, `git add -u && ${commit} -m added`, 'git stash']) {
        const { exitCode, stderr } = await confined(sandbox, ['bash', '-c', line], { env: { LC_ALL: 'C' } });
        expect([line, exitCode === 0, /Permission denied|unable to/.test(stderr)]).toEqual([
          line,
          false,
          true,
        ]);
      }
      expect((await confined(sandbox, ['bash', '-c', `${commit} -m two app/index.js`])).exitCode).toBe(0);
      const { stdout } = await unconfined([
        ...git,
        'show',
        'HEAD:.env',
        'HEAD:app/config/deep/key.pem',
        'HEAD:app/index.js',
      ]);
      expect(stdout).toBe(`${SECRET}${SECRET}changed`);
      // What git does not track is empty as before.
      expect((await confined(sandbox, ['bash', '-c', 'cat app/.env && echo $?'])).stdout).toBe('0\n');
    });

    it('shows empty files and directories that cannot be written, and everything else', async () => {
      const workspace = shown;
      const sandbox = await arena.sandbox(tier, { workspace, hide: HIDE });
      const script =
        'cat app/index.js; wc -c < .env; ls -A secrets | wc -l; (echo x > .env) 2>&1; (echo x > secrets/new) 2>&1; echo new > b.pem; cat b.pem';
      const { stdout } = await confined(sandbox, ['bash', '-c', script], { env: { LC_ALL: 'C' } });
      expect(stdout).toMatch(/^ordinary0\n0\n.*Read-only file system\n.*Read-only file system\nnew\n$/);
      // It is the command's own, and stays.
      expect(readFileSync(join(workspace, 'b.pem'), 'utf8')).toBe('new\n');
    });
  },
);

// What is hidden is found in the same way on every host that can hide it.
describe.runIf(HOST.namespaces).each([TIERS.find(({ view }) => view) ?? WITH_VIEW])(
  'finding what filesystem.hide hides, $name',
  // At once: each waits until what it hides was not changed for two seconds.
  { concurrent: true },
  (tier) => {
    const arena = makeArena();

    it('is told to a model once, without a name', async () => {
      const workspace = project(arena.freshCorner());
      const hiding = await arena.sandbox(tier, { workspace, hide: HIDE });
      const open = await arena.sandbox(tier, { workspace });
      expect(introduceBoundaries(hiding.plan, 0)).toContain('Some files are hidden from you');
      expect(introduceBoundaries(hiding.plan, 0)).not.toMatch(/\.env|\.pem|secrets/);
      expect(introduceBoundaries(open.plan, 0)).not.toContain('hidden');
    });

    it('hides from the next command what came in between, whoever made it', async () => {
      const workspace = project(arena.freshCorner());
      const sandbox = await arena.sandbox(tier, { workspace, hide: HIDE });
      await confined(sandbox, ['true']);
      project(workspace, { 'new/place/.env': SECRET, 'app/other.pem': SECRET });
      const script = 'cat new/place/.env app/other.pem; echo made > mine.pem; cat mine.pem';
      const { stdout, report } = await sandbox.run(['bash', '-c', script]);
      expect(stdout).toBe('made\n');
      expect(report.controls.find(({ id }) => id === 'hidden-paths')?.reason).toMatch(/^6 paths are empty/);
      expect((await confined(sandbox, ['cat', 'mine.pem', 'new/place/.env'])).stdout).toBe('');
      expect(sandbox.plan.emptied).toContain(join(workspace, 'mine.pem'));
    });

    it('hides what took the place of a hidden file between two commands', async () => {
      const workspace = project(arena.freshCorner());
      const sandbox = await arena.sandbox(tier, { workspace, hide: HIDE });
      expect((await confined(sandbox, ['cat', '.env'])).stdout).toBe('');
      writeFileSync(join(workspace, 'saved'), SECRET);
      renameSync(join(workspace, 'saved'), join(workspace, '.env'));
      rmSync(join(workspace, 'secrets'), { recursive: true });
      project(workspace);
      expect((await confined(sandbox, ['bash', '-c', 'cat .env; grep -rs . secrets'])).stdout).toBe('');
      // A directory in place of a file, and the other way round.
      rmSync(join(workspace, '.env'));
      mkdirSync(join(workspace, '.env'));
      writeFileSync(join(workspace, '.env/local'), SECRET);
      expect((await confined(sandbox, ['cat', '.env/local'])).stdout).toBe('');
    });

    it('does not see what a link leads to that stands for a hidden name', async () => {
      const workspace = project(arena.freshCorner(), { 'real/values': SECRET, 'real/d/inner': SECRET });
      rmSync(join(workspace, '.env'));
      symlinkSync('real/values', join(workspace, '.env'));
      rmSync(join(workspace, 'secrets'), { recursive: true });
      symlinkSync('real/d', join(workspace, 'secrets'));
      const sandbox = await arena.sandbox(tier, { workspace, hide: HIDE });
      const { stdout } = await confined(sandbox, [
        'bash',
        '-c',
        'cat .env real/values secrets/inner real/d/inner',
      ]);
      expect(stdout).toBe('');
    });

    it('cannot plant a link so that what comes by it lies where nobody looks', async () => {
      const workspace = project(arena.freshCorner());
      const sandbox = await arena.sandbox(tier, { workspace, hide: [...HIDE, 'conf/*.key'] });
      await confined(sandbox, [
        'bash',
        '-c',
        'mkdir -p node_modules/x plain; ln -s node_modules/x config; ln -s plain conf',
      ]);
      // The user, outside, takes them for directories.
      writeFileSync(join(workspace, 'config/.env'), SECRET);
      writeFileSync(join(workspace, 'conf/a.key'), SECRET);
      const script = 'cat config/.env node_modules/x/.env conf/a.key plain/a.key';
      expect((await confined(sandbox, ['bash', '-c', script])).stdout).toBe('');
      const open = await arena.sandbox(tier, { workspace });
      expect((await confined(open, ['bash', '-c', script])).stdout).toBe(SECRET.repeat(4));
    });

    it('does not read a hidden file by another name that it had before', async () => {
      const workspace = project(arena.freshCorner(), { 'notes.txt': 'x' });
      mkdirSync(join(workspace, 'node_modules'));
      linkSync(join(workspace, '.env'), join(workspace, 'app/readme.txt'));
      linkSync(join(workspace, '.env'), join(workspace, 'node_modules/readme.txt'));
      const sandbox = await arena.sandbox(tier, { workspace, hide: HIDE });
      const script = 'cat app/readme.txt node_modules/readme.txt';
      expect((await confined(sandbox, ['bash', '-c', script])).stdout).toBe('');
      // A name that is not found may be one that can be read.
      linkSync(join(workspace, '.env'), join(arena.outside, `name-${Date.now()}`));
      const refused = await sandbox.run(['true']);
      expect(refused.error).toMatchObject({ code: 'enforcement.unavailable' });
      expect(refused.error?.message).toMatch(/hidden-paths .* has other names \(hard links\)/);
    });

    it('does not read what is in a hidden directory by another name that it had before', async () => {
      const workspace = project(arena.freshCorner(), { 'notes.txt': 'x' });
      mkdirSync(join(workspace, 'backup'));
      const odd = Buffer.from(`${workspace}/secrets/inner/k\xff`, 'latin1');
      writeFileSync(odd, SECRET);
      linkSync(odd, join(workspace, 'app/odd'));
      linkSync(join(workspace, 'secrets/inner/token'), join(workspace, 'backup/key2'));
      linkSync(join(workspace, 'secrets/inner/token'), join(workspace, 'secrets/same'));
      const script = 'cat backup/key2 app/odd';
      const open = await arena.sandbox(tier, { workspace });
      expect((await confined(open, ['bash', '-c', script])).stdout).toBe(SECRET.repeat(2));
      const sandbox = await arena.sandbox(tier, { workspace, hide: HIDE });
      expect((await confined(sandbox, ['bash', '-c', script])).stdout).toBe('');
      linkSync(join(workspace, 'secrets/inner/token'), join(arena.outside, `name-${Date.now()}`));
      const refused = await sandbox.run(['true']);
      expect(refused.error?.message).toMatch(/hidden-paths .* has other names \(hard links\)/);
    });

    it('does not read what an earlier preview made, or another name of that', async () => {
      const workspace = project(arena.freshCorner());
      const made =
        'mkdir -p new/secrets d; echo $0 > d/.env; ln d/.env d/other; echo $0 > new/secrets/k; ln -s plain x.pem; echo $0 > plain; rm -r app; echo $0 > seen';
      const open = await arena.sandbox(tier, { workspace });
      const first = await open.run(['bash', '-c', made, SECRET], { effect: 'preview', approved: true });
      const on = first.changes?.id ?? '';
      const script = 'cat d/.env d/other new/secrets/k x.pem plain .env app/.env; cat seen';
      const before = await open.run(['bash', '-c', script], { on, approved: true });
      expect(before.stdout.split(SECRET).length - 1).toBe(7);
      const sandbox = await arena.sandbox(tier, { workspace, hide: HIDE });
      const after = await sandbox.run(['bash', '-c', script], { on, approved: true });
      expect([after.stdout, after.error]).toEqual([`${SECRET}\n`, undefined]);
    });

    it('is not told by a workspace what may be seen', async () => {
      const workspace = project(arena.freshCorner(), {
        '.gitignore': '!.env\n!*.pem\nsecrets/\napp/\n',
        '.ignore': '!.env',
        '.sandbox-run.toml': '[filesystem]\nhide = ["app/index.js"]\n',
      });
      const sandbox = await arena.sandbox(tier, { workspace, hide: HIDE, policyFiles: true });
      expect((await confined(sandbox, ['bash', '-c', 'cat app/index.js; grep -rs 7d1f .'])).stdout).toBe('');
      writeFileSync(join(workspace, '.sandbox-run.toml'), '[filesystem]\nhide = ["!.env"]\n');
      await expect(arena.sandbox(tier, { workspace, hide: HIDE, policyFiles: true })).rejects.toMatchObject({
        code: 'policy.invalid',
        message: expect.stringContaining('nothing shows again what is hidden'),
      });
    });

    it('does not read what cannot be looked through', async ({ onTestFinished }) => {
      const workspace = project(arena.freshCorner());
      const shut = join(workspace, 'app/config');
      chmodSync(shut, 0o311);
      onTestFinished(() => chmodSync(shut, 0o755));
      const sandbox = await arena.sandbox(tier, { workspace, hide: HIDE });
      const { stdout } = await confined(sandbox, ['cat', 'app/config/deep/key.pem']);
      expect(stdout).toBe('');
    });

    it.each([
      'line\nbreak.pem',
      ' blank .PEM',
      'u\u0308ber.pem',
      'quote".pem',
      '-rf.pem',
      '*.pem',
      'a\\b.pem',
    ])('hides a file called %j', async (name) => {
      const workspace = project(arena.freshCorner(), { [name]: SECRET });
      const sandbox = await arena.sandbox(tier, { workspace, hide: HIDE });
      expect((await confined(sandbox, ['cat', '--', name])).stdout).toBe('');
    });

    it('hides what has a name that is not UTF-8, or lies beneath one, and nothing that only looks like it', async () => {
      const workspace = project(arena.freshCorner());
      const at = (path: string) => Buffer.concat([Buffer.from(`${workspace}/`), Buffer.from(path, 'latin1')]);
      mkdirSync(at('d\xfe'));
      for (const path of ['k\xff.pem', 'd\xfe/deep.pem', 'd\xfe/\xff.pem']) writeFileSync(at(path), SECRET);
      linkSync(at('k\xff.pem'), at('d\xfe/other\xff'));
      symlinkSync(Buffer.from('k\xff.pem', 'latin1'), at('link.pem'));
      writeFileSync(at('k\xff.txt'), 'shown');
      writeFileSync(join(workspace, 'k\ufffd.txt'), 'twin');
      const sandbox = await arena.sandbox(tier, { workspace, hide: HIDE });
      const { stdout } = await confined(sandbox, [
        'bash',
        '-c',
        'cat k*.txt; cat k*.pem d*/* link.pem 2>/dev/null',
      ]);
      expect(stdout).toContain('shown');
      expect(stdout).toContain('twin');
      expect(stdout).not.toContain(SECRET);
    });

    it('runs nothing where too much is to be hidden', async () => {
      const workspace = project(arena.freshCorner());
      for (let at = 0; at < 1001; at++) writeFileSync(join(workspace, `${at}.pem`), SECRET);
      await expect(arena.sandbox(tier, { workspace, hide: HIDE })).rejects.toMatchObject({
        code: 'confinement.failed',
        message: expect.stringContaining('at most 1,000 can be hidden'),
      });
    });

    it('hides in what else is granted, and what is granted itself', async () => {
      const workspace = project(arena.freshCorner());
      const data = project(join(arena.outside, `data-${Date.now()}-${Math.random()}`), { 'one.pem': SECRET });
      const sandbox = await arena.sandbox(tier, {
        workspace,
        hide: HIDE,
        readable: [data, join(data, 'one.pem'), join(data, 'secrets/inner')],
      });
      const script = `cd ${data}; cat app/index.js; grep -rs 7d1f .; cat one.pem secrets/inner/token`;
      expect((await confined(sandbox, ['bash', '-c', script])).stdout).toBe('ordinary');
      const named = await arena.sandbox(tier, { workspace, hide: [`${data}/app`], readable: [data] });
      expect((await confined(named, ['bash', '-c', `cat ${data}/one.pem; ls -A ${data}/app`])).stdout).toBe(
        SECRET,
      );
    });

    it('refuses to hide the workspace itself', async () => {
      const workspace = project(arena.freshCorner());
      for (const hide of [[workspace], [`${arena.workspace}/**`]])
        await expect(arena.sandbox(tier, { workspace, hide })).rejects.toMatchObject({
          code: 'policy.invalid',
          message: expect.stringContaining('would hide the workspace itself'),
        });
    });
  },
);

describe.runIf(HOST.namespaces)('a shell session that must not see what filesystem.hide hides', () => {
  const arena = makeArena();

  it('does not see it, and keeps what it makes itself', async () => {
    const workspace = project(arena.freshCorner());
    const sandbox = await arena.sandbox(WITH_VIEW, { workspace, hide: HIDE });
    await using shell = await sandbox.session();
    expect((await shell.run('cat .env; grep -rs 7d1f .')).stdout).toBe('');
    await shell.run('mine=1; echo own > own.pem');
    expect(await shell.run('cat own.pem; echo $mine')).toMatchObject({
      stdout: 'own\n1\n',
      restarted: false,
    });
  });

  it('does not see what came, or took a place, between two commands', async () => {
    const workspace = project(arena.freshCorner());
    const sandbox = await arena.sandbox(WITH_VIEW, { workspace, hide: HIDE });
    await using shell = await sandbox.session();
    await shell.run('export kept=yes; lost=yes; cd app');
    writeFileSync(join(workspace, 'app/new.pem'), SECRET);
    const first = await shell.run('cat new.pem; echo $kept$lost $PWD');
    expect(first).toMatchObject({ stdout: `yes ${workspace}/app\n`, restarted: true });
    expect(first.warnings.join()).toContain('started anew');
    writeFileSync(join(workspace, 'saved'), SECRET);
    renameSync(join(workspace, 'saved'), join(workspace, '.env'));
    expect(await shell.run('cat ../.env')).toMatchObject({ stdout: '', restarted: true });
    expect(await shell.run('echo on')).toMatchObject({ stdout: 'on\n', restarted: false });
  });
});

describe.runIf(HOST.landlockAbi > 0)('filesystem.hide where nothing can be hidden', () => {
  const arena = makeArena();
  const accepting: PolicyFile = { demand: { 'hidden-paths': 'best-effort' } };

  it('runs nothing', async () => {
    const workspace = project(arena.freshCorner());
    await expect(arena.sandbox(WITHOUT_VIEW, { workspace, hide: HIDE })).rejects.toMatchObject({
      code: 'enforcement.unavailable',
      message: expect.stringMatching(/hidden-paths cannot be enforced here: .*\.env.* can be read/),
    });
  });

  it('runs, and the report says so, if the policy accepts that', async () => {
    const workspace = project(arena.freshCorner());
    const sandbox = await arena.sandbox(WITHOUT_VIEW, {
      workspace,
      hide: HIDE,
      policy: { ...UNJUDGED, ...accepting },
    });
    expect(stateOf(sandbox, 'hidden-paths')).toBe('unsupported');
    expect((await confined(sandbox, ['cat', '.env'])).stdout).toBe(SECRET);
  });

  it('runs as long as nothing matches', async () => {
    const workspace = arena.freshCorner();
    const sandbox = await arena.sandbox(WITHOUT_VIEW, { workspace, hide: HIDE });
    expect(stateOf(sandbox, 'hidden-paths')).toBe('enforced');
    await confined(sandbox, ['true']);
    writeFileSync(join(workspace, '.env'), SECRET);
    const refused = await sandbox.run(['cat', '.env']);
    expect(refused).toMatchObject({ status: 'setup-failed', stdout: '' });
    expect(refused.error).toMatchObject({ code: 'enforcement.unavailable' });
    rmSync(join(workspace, '.env'));
    expect(existsSync(join(workspace, '.env'))).toBe(false);
    await confined(sandbox, ['true']);
  });
});

const UNJUDGED: PolicyFile = { unsafe: { unjudged_commands: true }, sandbox: { minimum: 'namespaces' } };
