import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { CACHE_PLACES } from '../../src/policy/index.ts';
import { makeArena, SECRET } from '../support/arena.ts';
import { until } from '../support/bystander.ts';
import { leftIn } from '../support/leftovers.ts';
import { sandboxIn, stateOf, TIERS } from '../support/tiers.ts';

/** What leads to what lasts, for grep. */
const CACHES = [...new Set(CACHE_PLACES.map(({ path }) => path.split('/')[0]))]
  .map((name) => `-e '^${name}$'`)
  .join(' ');

/** The private directories of this process's sandboxes have a parent of their own, so that none is overlooked. */
const arena = makeArena('/var/tmp');
const temporary = mkdtempSync(join(arena.root, 'tmp-'));
const realTemporary = process.env.TMPDIR;
process.env.TMPDIR = temporary;
// Without tool chains, which commands see in their home.
const realHome = process.env.HOME;
process.env.HOME = mkdtempSync(join(arena.root, 'home-'));
// Settings that are taken along, whoever runs the tests.
const realSettings = process.env.GIT_CONFIG_GLOBAL;
process.env.GIT_CONFIG_GLOBAL = join(arena.root, 'gitconfig');
writeFileSync(process.env.GIT_CONFIG_GLOBAL, '[user]\n\tname = Somebody\n');
const hostFile = join('/tmp', `enforcement-host-file-${process.pid}`);
const hostMemory = join('/dev/shm', `enforcement-host-memory-${process.pid}`);
for (const file of [hostFile, hostMemory]) writeFileSync(file, SECRET);
afterAll(() => {
  if (realTemporary === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = realTemporary;
  if (realHome === undefined) delete process.env.HOME;
  else process.env.HOME = realHome;
  if (realSettings === undefined) delete process.env.GIT_CONFIG_GLOBAL;
  else process.env.GIT_CONFIG_GLOBAL = realSettings;
  for (const file of [hostFile, hostMemory]) rmSync(file, { force: true });
});

/** Prints the host's name of the directory that a command in a view sees as /dev/shm. */
const MEMORY_NAME = `sed -n 's,^[0-9]* [0-9]* [0-9:]* /\\([.]*sandbox-run-[^ ]*\\) /dev/shm .*,/dev/shm/\\1,p' /proc/self/mountinfo`;

/** Fills TMPDIR, HOME and /dev/shm with what is hard to remove. */
const LITTER = `
for d in "$TMPDIR" "$HOME"; do
  cd "$d" || exit 1
  echo x > plain; ln -s /etc link; mkfifo fifo; mkdir -p a/b/c; echo x > a/b/c/d; chmod 0 a/b/c a/b a
  mkdir locked; echo x > locked/file; chmod 500 locked; printf x > "$(printf 'new\\nline')"; : > .hidden; mkdir .gitconfig
  python3 -c '
import os
for i in range(150):
    os.mkdir("deep"); os.chdir("deep")
open("bottom", "w").close()'
  cd "$d"; chmod 0 .
done
`;

describe('leaving things in temporary directories, or finding them there', () => {
  it('the temporary directory of this test is the one in use', () => {
    expect(tmpdir()).toBe(temporary);
  });

  describe.each(TIERS)('$name', (tier) => {
    it('a note in the mode, the time or the attributes of a private directory does not reach the next command', async () => {
      const sandbox = await arena.sandbox(tier);
      // tmpfs has attributes of the user's since Linux 6.6.
      const note = `import errno, os
for d in (os.environ["TMPDIR"], os.environ["HOME"]):
    try: os.setxattr(d, "user.note", b"x")
    except OSError as e: assert e.errno == errno.ENOTSUP
    os.utime(d, (1, 1)); os.chmod(d, 0o1777)`;
      const look = `import os
for d in (os.environ["TMPDIR"], os.environ["HOME"]):
    s = os.stat(d); print(oct(s.st_mode), s.st_mtime > 1, os.listxattr(d))`;
      expect((await sandbox.run(['python3', '-c', `${note}\n${look}`])).stdout).toMatch(
        /^(0o41777 False \[('user.note')?\]\n){2}$/,
      );
      expect((await sandbox.run(['python3', '-c', look])).stdout).toBe('0o40700 True []\n'.repeat(2));
    });

    it('a note in the attributes of a settings file does not reach the next command', async () => {
      const sandbox = await arena.sandbox(tier);
      const files = `import errno, os
files = [os.path.join(d, f) for d, _, names in os.walk(os.environ["HOME"]) for f in names]
files = [f for f in files if not os.path.islink(f)]
`;
      const note = `${files}
for f in files:
    try: os.setxattr(f, "user.note", b"x")
    except OSError as e: assert e.errno == errno.ENOTSUP
    os.utime(f)`;
      const look = `${files}
print(len(files), [os.listxattr(f) for f in files if os.listxattr(f)], [os.stat(f).st_mode for f in files])`;
      const before = await sandbox.run(['python3', '-c', look]);
      expect(before.stdout).toMatch(/^[1-9]\d* \[\] /);
      expect((await sandbox.run(['python3', '-c', note])).exitCode).toBe(0);
      expect((await sandbox.run(['python3', '-c', look])).stdout).toBe(before.stdout);
    });

    it('a file of the host in /tmp cannot be read', async () => {
      const sandbox = await arena.sandbox(tier);
      const result = await sandbox.run(`cat "${hostFile}"; ls /tmp; true`);
      // What the policy grants is mounted there.
      expect(result.stdout.split('\n').filter((name) => !name.startsWith('enforcement-programs-'))).toEqual([
        '',
      ]);
      expect(result.stderr).toContain(tier.view ? 'No such file' : 'Permission denied');
    });

    it('/tmp and /dev/shm are of the command’s own, or the report says that they are not', async () => {
      const sandbox = await arena.sandbox(tier);
      const result = await sandbox.run(`cat "${hostMemory}"; echo x > /tmp/x && echo made; true`);
      expect(stateOf(sandbox, 'private-tmp')).toBe(tier.view ? 'enforced' : 'degraded');
      expect(result.stdout).toBe(tier.view ? 'made\n' : SECRET);
    });

    it('two runs at the same time do not see each other’s files', async () => {
      const sandbox = await arena.sandbox(tier);
      const look =
        'echo mine > "$TMPDIR/f$$"; echo mine > "$HOME/f$$"; sleep 0.3; ls "$TMPDIR" "$HOME" | grep -c ^f';
      const results = await Promise.all([1, 2, 3].map(() => sandbox.run(look)));
      expect(results.map((result) => result.stdout)).toEqual(['2\n', '2\n', '2\n']);
    });

    it('a run does not find what the one before it left, whatever it did to keep it', async () => {
      await using sandbox = await sandboxIn(tier, { workspace: arena.workspace });
      // Without a view it is the host's, with what others have there.
      const memory = tier.view ? '/dev/shm' : '';
      for (let round = 0; round < 3; round++) {
        const result = await sandbox.run(
          `ls -A "$TMPDIR" "$HOME" ${memory} | grep -v -e : -e '^$' -e gitconfig -e '^\\.\\(npmrc\\|config\\|cargo\\|pip\\|yarnrc.*\\)$' -e '^enforcement' -e '^sandbox-run' ${CACHES}; ${LITTER} echo done`,
        );
        expect([result.status, result.stdout, result.error]).toEqual(['exited', 'done\n', undefined]);
      }
    });

    it('nothing is left on the host after close', async () => {
      const before = leftIn(temporary);
      const memory: string[] = [];
      {
        await using sandbox = await sandboxIn(tier, { workspace: arena.workspace });
        const results = await Promise.all([1, 2, 3].map(() => sandbox.run(`${MEMORY_NAME}; ${LITTER}`)));
        memory.push(...results.flatMap((result) => result.stdout.split('\n').filter(Boolean)));
        expect(memory).toHaveLength(tier.view ? 3 : 0);
        expect(memory.filter((path) => !existsSync(path))).toEqual([]);
        await sandbox.run(['/bin/sleep', '10'], { timeout: 50 });
        await sandbox.run(['/nonexistent']);
      }
      await until(() => leftIn(temporary).length === before.length);
      expect(leftIn(temporary)).toEqual(before);
      expect(memory.filter((path) => existsSync(path))).toEqual([]);
    });
  });

  describe.each(TIERS.filter((tier) => tier.view))('$name', (tier) => {
    it.each(['read', 'write'] as const)(
      'the host’s /tmp is shown where the policy says so (%s), and $TMPDIR is private all the same',
      async (access) => {
        const shown = mkdtempSync('/tmp/enforcement-shown-');
        try {
          writeFileSync(join(shown, 'file'), 'of the host');
          await using sandbox = await sandboxIn(tier, {
            workspace: arena.workspace,
            policy: { filesystem: { [access]: ['/tmp'] } },
          });
          const mark = basename(shown);
          const command = `cat "${shown}/file"; echo x > "${shown}/new"; file=$(mktemp) && echo " $TMPDIR"; echo x > "$TMPDIR/${mark}-private"`;
          const first = await sandbox.run(command, { approved: true });
          expect([first.stdout, existsSync(join(shown, 'new'))]).toEqual([
            'of the host /.sandbox-tmp\n',
            access === 'write',
          ]);
          const second = await sandbox.run('ls -A "$TMPDIR"');
          expect([second.stdout, existsSync(`/tmp/${mark}-private`)]).toEqual(['', false]);
        } finally {
          rmSync(shown, { recursive: true });
        }
      },
    );

    it.each(['read', 'write'] as const)(
      'the host’s /home is shown where the policy says so (%s), and $HOME is private all the same',
      async (access) => {
        const before = readdirSync('/home');
        // A home that is shown; what this program would keep in it lies elsewhere.
        const { HOME, XDG_STATE_HOME, XDG_CONFIG_HOME } = process.env;
        const own = mkdtempSync(join(arena.root, 'own-'));
        Object.assign(process.env, { HOME: '/home/nobody-here', XDG_STATE_HOME: own, XDG_CONFIG_HOME: own });
        await using sandbox = await sandboxIn(tier, {
          workspace: arena.workspace,
          policy: { filesystem: { [access]: ['/home'] } },
        });
        for (const [name, value] of Object.entries({ HOME, XDG_STATE_HOME, XDG_CONFIG_HOME })) {
          if (value === undefined) delete process.env[name];
          else process.env[name] = value;
        }
        const command = 'ls -A /home; echo x > "$HOME/private" && cat "$HOME/private"; echo "$HOME"';
        const { stdout } = await sandbox.run(command, { approved: true });
        expect(stdout.split('\n').slice(0, -1).sort()).toEqual([...before, 'x', '/.sandbox-home'].sort());
        expect([(await sandbox.run('cat $HOME/private')).stdout, readdirSync('/home')]).toEqual(['', before]);
      },
    );

    it('a command that moves the mount point of the workspace away does not catch the next one', async () => {
      // The workspace lies beneath /tmp, which the command may rename in.
      const root = mkdtempSync('/tmp/enforcement-nested-');
      try {
        const workspace = join(root, 'outer/inner/workspace');
        mkdirSync(workspace, { recursive: true });
        writeFileSync(join(workspace, 'real'), '');
        await using sandbox = await sandboxIn(tier, { workspace });
        await sandbox.run(
          `cd /tmp; mv "${root}/outer" "${root}/moved"; mv "${root}" /tmp/moved-too; test -e "${workspace}/real" || { mkdir -p "${workspace}"; echo evil > "${workspace}/planted"; }; true`,
        );
        const next = await sandbox.run('ls; : > made-by-next');
        expect([next.status, next.stdout]).toEqual(['exited', 'real\n']);
        expect(existsSync(join(workspace, 'made-by-next'))).toBe(true);
      } finally {
        rmSync(root, { recursive: true, force: true });
      }
    });
  });
});
