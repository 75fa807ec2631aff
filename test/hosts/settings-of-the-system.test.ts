import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, describe, expect, it } from 'vitest';
import { CLI, makePlace } from '../cli/support.ts';
import { SECRET } from '../support/arena.ts';
import { HOST } from '../support/tiers.ts';
import { AS_STRANGER, withMounts } from './support/mounts.ts';
import { buildOuterFilter } from './support/outer-filter.ts';
import { ROOT } from './support/world.ts';

const filter = buildOuterFilter();
const place = makePlace();
afterAll(() => place.dispose());
for (const path of [place.root, place.workspace, place.tmp]) chmodSync(path, 0o777);

const over = join(place.root, 'over');
mkdirSync(over);
execFileSync('chmod', ['-R', 'a+rX', place.root]);

/** What lies in /etc of such a machine, in a mount namespace of its own; its secret is what no command may read. */
const MACHINE = withMounts(`mount -t tmpfs none ${over}
mkdir ${over}/upper ${over}/work
mount -t overlay none -o lowerdir=/etc,upperdir=${over}/upper,workdir=${over}/work /etc
at=$PWD; cd /etc
say() { mkdir -p "$(dirname "$1")"; printf '%s\\n' "\${3-${SECRET}}" > "$1"; chmod "$2" "$1"; }
say php/8.2/mods/intl.ini 644 ordinary
say R/Renviron 644 ordinary
say some-program.conf 644 ordinary
say of-root 600
say of-a-group 640
say deep/of/root 600
say some.d/inner 644; chmod 700 some.d
say listed.d/inner 644; chmod 711 listed.d
say NetworkManager/system-connections/home 644
say wireguard/wg0.conf 644
say cron.d/task 644
say fstab 644
say server.key 644
say .env 644
say shadow 640
rm -f npmrc pip.conf environment
say npmrc 644 '//registry.example/:_authToken=npm_${'a1B2c3D4e5F6g7H8i9J0'.repeat(2)}-${SECRET}'
say pip.conf 644 '[global]'
say environment 644 'AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCY${SECRET}'
ln -s of-root a-link
echo ${SECRET} > ${over}/one; touch one-file; mount --bind ${over}/one one-file
mkdir -p app/inner/deep; mount -t tmpfs none app/inner/deep; chmod 755 app/inner/deep; say app/inner/deep/token 644
mkdir -p shut/a/b; mount -t tmpfs none shut/a/b; chmod 755 shut/a/b; say shut/a/b/token 644; chmod 700 shut
mkdir mounted; mount -t tmpfs none mounted; chmod 755 mounted; say mounted/token 644
name=$(printf 'odd\\377'); say "$name" 600
chmod 711 wireguard cron.d || true; chmod 755 wireguard cron.d
cd "$at"`);

const NO_NAMESPACES = filter({ 'clone[0&0x7e020000]': 'EPERM', unshare: 'EPERM', clone3: 'ENOSYS' });

const HOSTS = [
  { name: 'with namespaces', before: [] as readonly string[] },
  ...(HOST.landlockAbi > 0 ? [{ name: 'without namespaces', before: NO_NAMESPACES }] : []),
];
const USERS = [
  { user: 'root of the machine or of a user namespace', become: [] as readonly string[] },
  ...(ROOT ? [{ user: 'an ordinary user', become: AS_STRANGER }] : []),
];

/** `sandbox-run ARGS` on that machine. */
async function run(become: readonly string[], before: readonly string[], ...args: readonly string[]) {
  const [program = '', ...words] = [...MACHINE, ...become, ...before, process.execPath, CLI, ...args];
  const env = {
    ...place.env,
    HOME: join(place.root, 'home'),
    XDG_STATE_HOME: join(place.tmp, `state${become.length}`),
  };
  return execa(program, words, {
    cwd: place.workspace,
    env,
    extendEnv: false,
    reject: false,
    stdin: 'ignore',
  });
}

/** Each prints what it can get. */
const READ_ALL =
  'grep -rs "" /etc; cat /etc/a-link /etc/one-file /etc/app/inner/deep/token /etc/shut/a/b/token /etc/listed.d/inner /etc/some.d/inner /etc/mounted/token; cat /etc/odd*; cat /proc/self/root/etc/of-root; cp -r /etc . ; grep -rs "" etc; grep -s "" /etc/some-program.conf';

// Such an /etc is made by mounts, also for the host without namespaces, which is this one with a filter.
describe.runIf(HOST.namespaces).each(HOSTS)('settings of the system, $name', ({ before }) => {
  describe.each(USERS)('as $user', ({ become }) => {
    it('are read as far as everybody may', async () => {
      const { stdout, stderr } = await run(
        become,
        before,
        'cat',
        '/etc/php/8.2/mods/intl.ini',
        '/etc/R/Renviron',
        '/etc/some-program.conf',
        '/etc/pip.conf',
      );
      expect(stdout, stderr).toBe('ordinary\nordinary\nordinary\n[global]');
    });

    it('are read without what only some may, what is known to hold secrets, and what is mounted there', async () => {
      const open = await execa(MACHINE[0] ?? '', [...MACHINE.slice(1), 'sh', '-c', READ_ALL], {
        cwd: place.workspace,
        reject: false,
      });
      expect(open.stdout.split(SECRET).length).toBeGreaterThan(15);
      await execa('rm', ['-rf', join(place.workspace, 'etc')]);
      const { stdout, stderr } = await run(become, before, 'sh', '-c', READ_ALL);
      expect(stdout.split('\n')).toContain('ordinary');
      expect(stdout + stderr).not.toContain(SECRET);
    });

    // Neither changes the time of a directory above, but for the one that a file is made in.
    it('are not read any more once a file is made private, or a private one is made, between two commands', async () => {
      const between = `mkdir -p /etc/nested/inner && cd /etc/nested/inner && chmod -R 755 /etc/nested
echo ${SECRET} > file; echo ordinary > other; chmod 644 file other; cd "$OLDPWD"
"$@" cat /etc/nested/inner/file
chmod 600 /etc/nested/inner/file; (umask 077; echo ${SECRET} > /etc/nested/inner/new)
"$@" sh -c 'cat /etc/nested/inner/*; cat /etc/nested/inner/file /etc/nested/inner/new; cp -r /etc/nested .; cat nested/inner/*'`;
      const [program = '', ...words] = [...MACHINE, 'sh', '-c', between, 'sh', ...become, ...before];
      const { stdout, stderr } = await execa(program, [...words, process.execPath, CLI], {
        ...{ cwd: place.workspace, extendEnv: false, reject: false, stdin: 'ignore' },
        env: {
          ...place.env,
          HOME: join(place.root, 'home'),
          XDG_STATE_HOME: join(place.tmp, `state${become.length}`),
        },
      });
      expect(stdout.split('\n')[0], stderr).toBe(SECRET);
      expect(stdout.split('\n').slice(1).join('\n')).toContain('ordinary');
      expect(stdout.split(SECRET).length).toBe(2);
    });

    it('are only those of the table where the policy says so', async () => {
      const policy = join(place.tmp, `listed${become.length}${before.length}.toml`);
      writeFileSync(policy, '[filesystem]\nsystem = "listed"\n');
      const { exitCode } = await run(become, before, '--policy', policy, 'cat', '/etc/some-program.conf');
      expect(exitCode).not.toBe(0);
      expect((await run(become, before, '--policy', policy, 'cat', '/etc/passwd')).exitCode).toBe(0);
    });

    it('cannot be written', async () => {
      const attack =
        'echo x > /etc/some-program.conf; echo x > /etc/new; mkdir /etc/dir; rm -f /etc/fstab; mv /etc/php /etc/php2; cat /etc/some-program.conf; ls /etc';
      const { stdout } = await run(become, before, 'sh', '-c', attack);
      expect(stdout.split('\n')[0]).toBe('ordinary');
      expect(stdout).not.toMatch(/^(?:new|dir|php2)$/m);
    });
  });
});

describe.runIf(HOST.namespaces)('what a policy grants of what is not shown', () => {
  it.each([
    ['what is taken out itself', '/etc/wireguard', '/etc/wireguard/wg0.conf'],
    ['something in it', '/etc/wireguard/wg0.conf', '/etc/wireguard/wg0.conf'],
  ])('is shown: %s', async (_, granted, path) => {
    const { stdout, stderr } = await run([], [], '--ro', granted, 'cat', path, '/etc/some-program.conf');
    expect(stdout, stderr).toBe(`${SECRET}\nordinary`);
    const rest = await run([], [], '--ro', granted, 'sh', '-c', 'cat /etc/cron.d/task /etc/of-root');
    expect(rest.stdout).not.toContain(SECRET);
  });
});
