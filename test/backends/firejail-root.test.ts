import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { tryCommand } from '../../src/confine/index.ts';
import { createSandbox, type Sandbox } from '../../src/index.ts';
import { cacheDirectoryOf, probeFirejail } from '../../src/run/index.ts';

const usable = !('reason' in (await probeFirejail(tryCommand)));

/** Every way to `/` that somebody thought of. */
const WAYS = [
  '',
  '/..',
  '/../..',
  '/proc/self/root',
  '/proc/1/root',
  '/proc/self/root/..',
  '/proc/self/cwd/../../../../../../../../../../..',
  '/tmp/..',
  '/usr/../..',
  '/dev/shm/../..',
  '/run/firejail/mnt/../../../..',
];

// Root owns `/` and so needs no capability to change what is in it. Everybody else shows that nothing else is lost.
describe.runIf(usable)('what is in / under Firejail', () => {
  const root = mkdtempSync(join(realpathSync(tmpdir()), 'firejail-'));
  const workspace = join(root, 'work');
  const name = `sandbox-run-was-here-${process.pid}`;
  let sandbox: Sandbox;
  let before: string;
  beforeAll(async () => {
    mkdirSync(workspace);
    before = look();
    sandbox = await createSandbox({
      workspace,
      backend: 'firejail',
      policyFiles: false,
      policy: { unsafe: { unjudged_commands: true } },
    });
  });
  afterAll(async () => {
    await sandbox.close();
    for (const entry of readdirSync('/').filter((one) => one.startsWith('sandbox-run-was-here-')))
      rmSync(`/${entry}`, { recursive: true, force: true });
    rmSync(root, { recursive: true, force: true });
  });
  const run = (script: string, timeout = 30_000) => sandbox.run(['bash', '-c', script], { timeout });
  const out = async (script: string) => (await run(script)).stdout.trim();

  it('nothing is swallowed: what is shown in part is read-only, and the workspace is not', async () => {
    const tops = ['/etc', '/root', '/srv', '/run', '/opt', '/mnt', '/var', '/home', '/media', '/usr'];
    const there = tops.filter((top) => existsSync(top) && !workspace.startsWith(`${top}/`));
    const script = `for d in ${there.join(' ')} "$PWD" "$HOME" "$TMPDIR"; do
      (: > $d/${name}) 2> /dev/null && rm $d/${name} && echo $d; done`;
    const written = (await out(script)).split('\n');
    expect(there.filter((top) => written.includes(top))).toEqual([]);
    // Workspace, home and temporary directory.
    expect(written).toHaveLength(3);
    expect(written).toContain(workspace);
  });
  /** What of the host could have been changed. */
  const look = () => {
    const { mode, uid, gid } = statSync('/');
    // Others try things there too, as doctor does.
    const names = readdirSync('/').filter((one) => !one.startsWith('attack-'));
    return JSON.stringify([names.sort(), lstatSync('/bin').ino, { mode, uid, gid }]);
  };

  /** Where something is mounted, but for the small filesystems that other tests mount and unmount meanwhile. */
  const mountPoints = () =>
    readFileSync('/proc/self/mountinfo', 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => line.split(' ')[4] ?? '')
      .filter((at) => !/^\/tmp\/sandbox-run-\w+-test-/.test(at));

  it.each(WAYS)('cannot be changed by way of "%s/"', async (way) => {
    const at = `${way}/${name}`;
    const moves = [
      `: > ${at}`,
      `mkdir ${at}`,
      `mkfifo ${at}`,
      `ln -s /tmp ${at}`,
      `ln ${way}/usr/bin/true ${at}`,
      `echo x > x && ln x ${at}`,
      `echo x > x && mv x ${at}`,
      `mv ${way}/bin ${at}`,
      `mv ${way}/lib64 ${at}`,
      `mv ${way}/srv ${at}`,
      `rm ${way}/bin`,
      `rmdir ${way}/srv`,
      `chmod 777 ${way}/`,
      `chmod --reference=${way}/ ${way}/`,
      `chown 0:1 ${way}/`,
      `chown -h 0:1 ${way}/bin`,
      `touch ${way}/`,
      // Anybody may set the times of any link to now: its mode says so.
      ...(process.getuid?.() === 0 ? [`touch -h ${way}/bin`] : []),
      `setfattr -n user.x -v 1 ${way}/`,
    ];
    const script = moves.map((move, at) => `(${move}) >/dev/null 2>&1 && echo worked: ${at}`).join('\n');
    expect(await out(script)).toBe('');
    expect(look()).toBe(before);
  });

  it('cannot be made so that it can: no mount, no other root', async () => {
    const moves = [
      'mount -o remount,rw /',
      'mount -o remount,bind,rw /',
      'mount --bind /tmp /',
      'umount /usr',
      'umount -l /',
      'unshare -m true',
      'unshare -Ur true',
      'chroot /proc/1/root true',
      'nsenter -t 1 -m true',
      'mount -t tmpfs x /mnt',
    ];
    expect(await out(moves.map((move) => `(${move}) 2>/dev/null && echo worked`).join('\n'))).toBe('');
    expect(
      await out('while read -r _ _ _ _ at _; do [ "$at" = / ] && echo root; done < /proc/self/mountinfo'),
    ).toBe('root');
  });

  it('device files that lie there are not there', async () => {
    const found = await run('for f in /* /.[!.]*; do { [ -b "$f" ] || [ -c "$f" ]; } && echo "$f"; done');
    expect(found.stdout).toBe('');
  });

  it('nothing else of the host can be written but the workspace and the private directory', async () => {
    const found = await run(
      "find / \\( -path '/proc/[0-9]*' -o -path /proc/self -o -path /proc/thread-self \\) -prune -o " +
        "! -type l ! -type c -writable -printf '%D:%i %p\\n' 2>/dev/null",
      140_000,
    );
    const paths = found.stdout.trim().split('\n');
    const cache = `${cacheDirectoryOf(workspace)}/places`;
    expect(paths.some((line) => line.endsWith(` ${workspace}`))).toBe(true);
    const ofHost = paths.filter((line) => {
      const [object = '', path = ''] = line.split(/ (.*)/s);
      if (
        path.startsWith(workspace) ||
        path.startsWith('/proc/') ||
        path.includes('/sandbox-run-slot-') ||
        path.startsWith(cache)
      )
        return false;
      const info = lstatSync(path, { throwIfNoEntry: false });
      return info !== undefined && `${info.dev}:${info.ino}` === object;
    });
    expect(ofHost).toEqual([]);
    const opened = paths
      .flatMap((line) => line.split(/ (.*)/s)[1] ?? [])
      .filter((path) => path.startsWith('/proc/') && !path.startsWith('/proc/pressure/'));
    for (const path of opened) expect(await out(`(: >> ${path}) 2>/dev/null && echo ${path}`)).toBe('');
  }, 150_000);

  it('what Firejail keeps of all its sandboxes is neither written nor read', async () => {
    expect(
      await out(
        `for d in /run/firejail /run/firejail/*; do [ $d = /run/firejail/mnt ] || (: > $d/${name}) 2>/dev/null && [ -e $d/${name} ] && echo $d; done; ` +
          'ls -A /run/firejail/profile/* /run/firejail/sandbox/* /run/firejail/name/* 2>/dev/null',
      ),
    ).toBe('');
    expect(existsSync(`/run/firejail/${name}`)).toBe(false);
  });

  it('work goes on', async () => {
    expect(
      await out(
        'echo 1 > a && mkdir b && mv a b/a && cat b/a; echo 2 > "$TMPDIR/x" && cat "$TMPDIR/x"; echo 3 > /dev/shm/x && cat /dev/shm/x; echo 4 > /tmp/y && cat /tmp/y; echo 5 > ~/z && cat ~/z; echo 6 > /dev/null && echo 6',
      ),
    ).toBe('1\n2\n3\n4\n5\n6');
  });

  it('leaves no mount behind, in none of the host’s namespaces', async () => {
    const mounts = mountPoints();
    await run('true');
    await Promise.all([run('sleep 0.3'), run('exit 3'), run('kill -9 $$')]);
    expect(mountPoints().filter((one) => !mounts.includes(one))).toEqual([]);
    expect(look()).toBe(before);
  });
});
