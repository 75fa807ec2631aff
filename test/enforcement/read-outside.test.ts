import { mkdirSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { makeArena, SECRET } from '../support/arena.ts';
import { compile, confined, unconfined, worked } from '../support/sandboxee.ts';
import { HOST, OLDER_TIERS, stateOf, TIERS } from '../support/tiers.ts';

const reader = compile(
  'read-outside',
  `
  #include <dirent.h>
  int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
      char name[4200], buffer[64];
      struct stat info;
      int fd;
      sprintf(name, "read:%s", argv[i]);
      TRY(name, (fd = open(argv[i], O_RDONLY)) < 0 ? -1 : read(fd, buffer, 64) < 0 && errno != EISDIR ? -1 : 0);
      sprintf(name, "map:%s", argv[i]);
      TRY(name, (fd = open(argv[i], O_RDONLY)) < 0 ? -1 : 0);
      sprintf(name, "list:%s", argv[i]);
      TRY(name, (fd = open(argv[i], O_RDONLY | O_DIRECTORY)) < 0 ? -1 : syscall(SYS_getdents64, fd, buffer, 64) < 0 && errno != EINVAL ? -1 : 0);
      sprintf(name, "stat:%s", argv[i]);
      TRY(name, stat(argv[i], &info));
      sprintf(name, "enter:%s", argv[i]);
      TRY(name, chdir(argv[i]));
    }
    return 0;
  }`,
);

const contentAttacks = (names: readonly string[]) => names.filter((name) => /^(read|map|list):/.test(name));

describe('reading outside the workspace', () => {
  const arena = makeArena();
  const home = join(arena.root, 'home');
  const project = join(arena.root, 'another-project');
  mkdirSync(join(home, '.ssh'), { recursive: true });
  mkdirSync(project);
  writeFileSync(join(home, '.ssh/id_rsa'), SECRET);
  writeFileSync(join(project, 'main.c'), SECRET);
  // A name that begins like the workspace's.
  const lookalike = `${arena.workspace}-evil`;
  mkdirSync(lookalike);
  writeFileSync(join(lookalike, 'file'), SECRET);

  const realHome = process.env.HOME;
  process.env.HOME = home;
  afterAll(() => {
    process.env.HOME = realHome;
  });

  const own = [
    arena.secret,
    arena.outside,
    home,
    join(home, '.ssh'),
    join(home, '.ssh/id_rsa'),
    project,
    join(project, 'main.c'),
    lookalike,
    join(lookalike, 'file'),
    arena.root,
  ];
  const system = [
    '/etc/shadow',
    '/root',
    '/home',
    '/var',
    '/var/log',
    '/etc',
    '/run',
    '/sys',
    '/boot',
    '/opt',
  ];

  it('works without a sandbox', async () => {
    const trace = await unconfined([reader, ...own, '/etc', '/var', '/run']);
    for (const path of own) expect(trace.results[`read:${path}`]).toBe('ok');
    for (const path of ['/etc', '/var', '/run', home]) expect(trace.results[`list:${path}`]).toBe('ok');
  });

  it.runIf(HOST.root)('works for /etc/shadow without a sandbox (as root)', async () => {
    const trace = await unconfined([reader, '/etc/shadow']);
    expect(trace.results['read:/etc/shadow']).toBe('ok');
  });

  describe.each([...TIERS, ...OLDER_TIERS])('$name', (tier) => {
    it('fails', async () => {
      expect(homedir()).toBe(home);
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [reader, ...own, ...system]);
      // The directories that lead to what is mounted can be listed in the view, with nothing else in them.
      const shown = [...sandbox.plan.homes, ...sandbox.plan.paths.map(({ path }) => path)];
      // The home is the command's own, at the places of the user's: that of HOME and that of the user database.
      const leads = (path: string) =>
        [sandbox.plan.home, ...sandbox.plan.homes].includes(path) ||
        shown.some((one) => one.startsWith(`${path}/`));
      const leading = tier.view ? [...system, ...own].filter(leads).map((path) => `list:${path}`) : [];
      const alsoRead = leading.flatMap((name) => [
        name,
        name.replace('list', 'read'),
        name.replace('list', 'map'),
      ]);
      const got = contentAttacks(worked(trace)).filter((name) => !alsoRead.includes(name));
      expect(got).toEqual([]);
      expect(trace.stdout).not.toContain(SECRET);
    });

    it('finds nothing there in a view, and only names without one, as the report says', async () => {
      const sandbox = await arena.sandbox(tier);
      const trace = await confined(sandbox, [reader, ...own]);
      const visible = worked(trace).filter((name) => name.startsWith('stat:'));
      if (tier.view) {
        expect(stateOf(sandbox, 'filesystem-view')).toBe('enforced');
        expect(visible.sort()).toEqual([`stat:${arena.root}`, `stat:${home}`]);
        expect(trace.results[`read:${arena.secret}`]).toBe('ENOENT');
      } else {
        expect(stateOf(sandbox, 'filesystem-view')).toBe('unsupported');
        expect(trace.results[`read:${arena.secret}`]).toBe('EACCES');
      }
    });

    it('shows no more of the directories on the way than what leads to the workspace', async () => {
      const sandbox = await arena.sandbox(tier);
      const result = await sandbox.run(['/bin/ls', '-A', arena.root]);
      const listed = result.stdout.split('\n').filter((line) => line !== '');
      expect(listed).toEqual(tier.view ? ['home', 'workspace'] : []);
      // That home is another one.
      expect((await sandbox.run(['/bin/ls', '-A', home])).stdout).not.toContain('secret');
    });

    it('says "permission denied" about /etc/shadow', async () => {
      const sandbox = await arena.sandbox(tier);
      const result = await sandbox.run('cat /etc/shadow');
      expect(result.exitCode).toBe(1);
      expect(result.stdout).toBe('');
      expect(result.stderr).toContain('Permission denied');
    });
  });
});
