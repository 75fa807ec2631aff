import { spawn } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tryCommand } from '../../src/confine/index.ts';
import { createSandbox, type Sandbox } from '../../src/index.ts';
import { probeFirejail } from '../../src/run/index.ts';
import { eventually } from '../support/eventually.ts';

/** SANDBOX_RUN_EXPECT_FIREJAIL=1: this host has it, so that nothing here may be left out. */
const found = await probeFirejail(tryCommand);
const usable = !('reason' in found);

it.runIf(process.env.SANDBOX_RUN_EXPECT_FIREJAIL === '1')('Firejail can be used here, as declared', () => {
  expect(found).toMatchObject({ path: expect.any(String) });
});

describe.runIf(usable)('under Firejail', () => {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'firejail-'));
  const workspace = join(root, 'work space');
  let sandbox: Sandbox;
  beforeAll(async () => {
    mkdirSync(join(workspace, '.git/hooks'), { recursive: true });
    writeFileSync(join(root, 'secret'), 'the-secret');
    sandbox = await createSandbox({
      workspace,
      backend: 'firejail',
      policyFiles: false,
      policy: { unsafe: { unjudged_commands: true } },
    });
  });
  afterAll(async () => {
    await sandbox.close();
    rmSync(root, { recursive: true, force: true });
  });
  const sh = (script: string) => sandbox.run(['sh', '-c', script], { timeout: 20_000 });
  const out = async (script: string) => (await sh(script)).stdout.trim();

  it.each([
    '/etc/shadow',
    '/etc/firejail/firejail.config',
    '/run/user',
    '/sys/kernel',
    '/proc/1/root/etc',
    '/proc/1/fd/4',
  ])('nothing is read in %s', async (path) => {
    expect(await out(`cat '${path}' 2>/dev/null; ls -A '${path}/' 2>/dev/null`)).toBe('');
  });

  it('directories in / that are not granted are empty and shut', async () => {
    expect(await out('for d in /boot /home /mnt /opt /srv /sys; do ls -A $d 2>/dev/null; done')).toBe('');
    // What leads to granted paths, and nothing beside them.
    const leading = sandbox.plan.paths.flatMap(({ path }) => /^\/var\/([^/]+)/.exec(path)?.[1] ?? []);
    expect(await out('ls -A /var 2>/dev/null')).toBe([...new Set(leading)].sort().join('\n'));
    expect(await out(`cat '${root}/secret' 2>/dev/null; ls -A '${root}'`)).toBe('work space');
  });

  it.each(['/usr/x', '/x', '/var/x', '/proc/sys/kernel/panic', '/etc/hosts', '/etc/passwd', '/usr/bin/true'])(
    'nothing is written at %s',
    async (path) => {
      expect(await out(`(printf '' >> ${path}) 2>/dev/null && echo written`)).toBe('');
    },
  );

  it.each(['/etc/x', '/dev/x', '/run/x', '/root/x'])(
    'what root writes at %s is the command’s own, and gone with it',
    async (path) => {
      await sh(`echo 0 > ${path}`);
      expect(existsSync(path)).toBe(false);
      expect(await out(`cat ${path} 2>/dev/null`)).toBe('');
    },
  );

  it('what is protected can neither be written nor moved away', async () => {
    expect(
      await out(
        'touch .git/hooks/x 2>/dev/null && echo written; mv .git moved 2>/dev/null && echo moved; touch .git/y && echo ok',
      ),
    ).toBe('ok');
    const made = await sh('echo x > .envrc');
    expect(made.leftBehind).toMatchObject([{ path: join(workspace, '.envrc'), done: 'shut' }]);
  });

  it('what filesystem.hide hides cannot be read, moved away or put in place of', async () => {
    for (const file of ['.env', 'app/deep/key.pem', 'secrets/token']) {
      mkdirSync(join(workspace, file, '..'), { recursive: true });
      writeFileSync(join(workspace, file), 'hidden-7d1f');
    }
    const script =
      'cat .env; grep -rs 7d1f .; mv app a2; grep -rs 7d1f a2; mv secrets s2; cat s2/token; rm -f .env; cp -r . /tmp/all; grep -rs 7d1f /tmp/all; cat /proc/*/cwd/.env';
    expect((await sh(script)).stdout).toContain('hidden-7d1f');
    for (const name of ['a2', 's2']) rmSync(join(workspace, name), { recursive: true });
    const hiding = await createSandbox({
      ...{ workspace, backend: 'firejail', policyFiles: false, hide: ['.env', '**/*.pem', 'secrets/'] },
      policy: { unsafe: { unjudged_commands: true } },
    });
    try {
      for (const file of ['.env', 'app/deep/key.pem', 'secrets/token', 'later.pem']) {
        mkdirSync(join(workspace, file, '..'), { recursive: true });
        writeFileSync(join(workspace, file), 'hidden-7d1f');
      }
      const { stdout, exitCode } = await hiding.run(`${script}; cat later.pem; echo done; exit 3`, {
        timeout: 30_000,
      });
      expect({ stdout, exitCode }).toEqual({ stdout: 'done\n', exitCode: 3 });
      expect(readFileSync(join(workspace, '.env'), 'utf8')).toBe('hidden-7d1f');
    } finally {
      await hiding.close();
      for (const name of ['.env', 'app', 'a2', 'secrets', 's2', 'later.pem'])
        rmSync(join(workspace, name), { recursive: true, force: true });
    }
  });

  it('what the user made since is protected for the next command', async () => {
    writeFileSync(join(workspace, '.envrc'), 'x\n');
    expect(await out('(echo y > .envrc) 2>/dev/null && echo written')).toBe('');
  });

  it('Firejail gives it nothing more, and no way into other sandboxes', async () => {
    // Inside a sandbox it starts things as they are.
    const status = 'grep -hE "^(CapEff|NoNewPrivs)" /proc/self/status';
    for (const options of ['--noprofile', '--join=1'])
      expect(await out(`firejail --quiet ${options} -- ${status} 2>/dev/null | sort -u`)).toMatch(
        /^(CapEff:\s0+\nNoNewPrivs:\s1)?$/,
      );
    expect(
      await out(
        'unshare -U true 2>/dev/null && echo unshared; mount -t tmpfs x /tmp 2>/dev/null && echo mounted',
      ),
    ).toBe('');
  });

  it('private places are private and empty', async () => {
    expect(
      await out(
        'ls -A "$HOME" "$TMPDIR" /dev/shm | grep -vE ":|^.(gitconfig.*|npmrc|config|pip|yarnrc.*)$|^(.cache|.npm|.cargo|go|.gradle|.m2|.local|.yarn|.bun|.nuget)$" ; echo x > /tmp/witness-of-firejail; echo y > /dev/shm/witness',
      ),
    ).toBe('');
    expect([existsSync('/tmp/witness-of-firejail'), existsSync('/dev/shm/witness')]).toEqual([false, false]);
  });

  it('Firejail’s own variables and words are not the command’s', async () => {
    const result = await sh('env | grep -iE "^(FIREJAIL|container=|.*_BUS_ADDRESS)" ; exit 0');
    expect([result.stdout, result.stderr]).toEqual(['', '']);
  });

  it('ends as it ends: statuses, signals, and what takes longer than a launcher would', async () => {
    expect(await sh('exit 1')).toMatchObject({ status: 'exited', exitCode: 1 });
    expect(await sh('kill -9 $$')).toMatchObject({ status: 'signaled', signal: 'SIGKILL' });
    const trapped = await sandbox.run('trap "echo asked; exit 5" TERM; sleep 20 & wait', { timeout: 1500 });
    expect(trapped).toMatchObject({ status: 'timed-out', exitCode: 5, stdout: 'asked\n', treeEnded: true });
  });

  it('no process beside the command is there to be taken over', async () => {
    expect(
      await out(
        'for p in /proc/[0-9]*; do [ "$p" = "/proc/$$" ] || (: 3<"$p/mem") 2>/dev/null && cat "$p/comm"; done',
      ),
    ).toBe('sh');
    // Nor a shell of Firejail's, whichever the user has.
    expect(
      (await out('for c in /proc/[0-9]*/comm; do read name < "$c" && echo "$name"; done')).split('\n').sort(),
    ).toEqual(['5', 'firejail', 'sh']);
  });

  it('takes arguments that Firejail would not', async () => {
    const many = Array.from({ length: 3000 }, (_, index) => `--net=${index}`);
    expect(await sandbox.run(['sh', '-c', 'echo $# $1', 'sh', ...many])).toMatchObject({
      stdout: '3000 --net=0\n',
    });
    const long = 'x'.repeat(90_000);
    expect((await sandbox.run(['sh', '-c', 'printf %s "$1" | wc -c', 'sh', long])).stdout).toBe('90000\n');
  });
});

describe.runIf(usable)('a workspace', () => {
  it('whose name means something to Firejail is refused, with the reason', async () => {
    const place = mkdtempSync(join(realpathSync(tmpdir()), 'firejail,$-'));
    try {
      await expect(
        createSandbox({ workspace: place, backend: 'firejail', policyFiles: false }),
      ).rejects.toMatchObject({
        code: 'backend.unavailable',
        message: expect.stringContaining('Firejail cannot be told of'),
      });
    } finally {
      rmSync(place, { recursive: true, force: true });
    }
  });
});

describe.runIf(usable)('the command line under Firejail', () => {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'firejail-'));
  afterAll(() => rmSync(root, { recursive: true, force: true }));
  const cli = (...command: string[]) =>
    spawn(
      process.execPath,
      [
        fileURLToPath(new URL('../../dist/cli.cjs', import.meta.url)),
        ...['-q', '--backend', 'firejail', '--autonomy', 'autonomous', '--approved', '--', ...command],
      ],
      { cwd: root, stdio: ['ignore', 'pipe', 'ignore'] },
    );

  it('loses nothing when its reader is slow', async () => {
    // A pipe of the shell's: what Node makes are sockets.
    const script = fileURLToPath(new URL('../../dist/cli.cjs', import.meta.url));
    const shell = spawn(
      'sh',
      [
        '-c',
        '"$0" "$1" -q --backend firejail --autonomy autonomous --approved -- head -c 300000 /dev/zero | (sleep 2; wc -c)',
        process.execPath,
        script,
      ],
      { cwd: root, stdio: ['ignore', 'pipe', 'inherit'] },
    );
    let text = '';
    for await (const chunk of shell.stdout.setEncoding('utf8')) text += chunk;
    expect(text.trim()).toBe('300000');
  });

  it('leaves nothing behind when it is killed', async () => {
    const mark = `300.${process.pid}`;
    const running = cli('sh', '-c', `setsid sleep ${mark} & sleep ${mark}`);
    try {
      await eventually(() => expect(marked(mark).length).toBeGreaterThanOrEqual(2));
      running.kill('SIGKILL');
      await eventually(() => expect(marked(mark)).toEqual([]));
    } finally {
      running.kill('SIGKILL');
      for (const pid of marked(mark)) process.kill(pid, 'SIGKILL');
    }
  });
});

/** The processes that are `sleep` for so long. */
function marked(mark: string): readonly number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        return pid !== process.pid && readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`sleep\0${mark}`);
      } catch {
        return false;
      }
    });
}
