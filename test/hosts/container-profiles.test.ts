import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { execa } from 'execa';
import { describe, expect, it } from 'vitest';
import { CLI, makePlace } from '../cli/support.ts';
import { eventually } from '../support/eventually.ts';
import { HOST } from '../support/tiers.ts';
import { buildOuterFilter } from './support/outer-filter.ts';
import { expectHonest, expectRefused, makeWorld, ROOT } from './support/world.ts';

const world = makeWorld();
const filter = buildOuterFilter();

const all = <Errno extends string>(names: string, errno: Errno) =>
  Object.fromEntries(names.split(/\s+/).map((name) => [name, errno])) as Record<string, Errno>;

/** CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. */
const NEW_NAMESPACE = 'clone[0&0x7e020000]';

/** What Docker's, Podman's and crun's default profile let only CAP_SYS_ADMIN do, and what nobody may. */
const NOT_IN_CONTAINERS = all(
  `${NEW_NAMESPACE} unshare setns mount umount2 pivot_root open_tree move_mount mount_setattr fsopen fsconfig fsmount
   fspick keyctl add_key request_key io_uring_setup io_uring_enter io_uring_register bpf perf_event_open userfaultfd
   quotactl swapon swapoff reboot kexec_load init_module delete_module acct settimeofday name_to_handle_at
   open_by_handle_at lookup_dcookie`,
  'EPERM',
);
/** A runtime with an older libseccomp, or crun, says this of every call that it does not know. */
const UNKNOWN_TO_OLD_ONES = all(
  `clone3 close_range openat2 pidfd_getfd faccessat2 process_madvise epoll_pwait2 mount_setattr landlock_create_ruleset
   landlock_add_rule landlock_restrict_self memfd_secret process_mrelease futex_waitv cachestat fchmodat2`,
  'ENOSYS',
);

describe('a container', () => {
  it('by the default profile of today: Landlock and seccomp hold the command, without a view', async () => {
    const answer = await world.attack({ host: filter({ ...NOT_IN_CONTAINERS, clone3: 'ENOSYS' }) });
    expectHonest(answer);
    expect(answer).toMatchObject({ backend: 'landlock', tier: 'signal-scope' });
    expect(answer.states).toMatchObject({ 'filesystem-view': 'unsupported', network: 'enforced' });
  });

  it('by an older profile that does not know Landlock either: refused, and every rung says why', async () => {
    const answer = await world.attack({ host: filter({ ...NOT_IN_CONTAINERS, ...UNKNOWN_TO_OLD_ONES }) });
    expectRefused(answer, ['enforcement.unavailable', 'backend.unavailable']);
    expect(answer.refused?.message).toMatch(/Landlock/);
    expect(answer.refused?.message).toMatch(/namespaces/);
  });

  it.skipIf(!HOST.namespaces)(
    'that knows neither, but lets a user namespace be made: a view of our own holds the command (needs namespaces)',
    async () => {
      const answer = await world.attack({
        host: filter(
          all(
            'landlock_create_ruleset landlock_add_rule landlock_restrict_self clone3 close_range',
            'ENOSYS',
          ),
        ),
      });
      expectHonest(answer);
      expect(answer.backend).toBe('namespaces');
    },
  );
});

describe('Landlock', () => {
  const DISABLED = { landlock_create_ruleset: 'EOPNOTSUPP' } as const;

  it.skipIf(!HOST.namespaces)(
    'built in but disabled at boot: the next backend, and the reason (needs namespaces)',
    async () => {
      const answer = await world.attack({ host: filter(DISABLED) });
      expectHonest(answer);
      expect(answer.backend).toBe('namespaces');
      expect(JSON.stringify(answer)).toContain('disabled at boot');
    },
  );

  it.runIf(!HOST.namespaces)(
    'built in but disabled at boot: nothing is run, and the reason (no namespaces)',
    async () => {
      const answer = await world.attack({ host: filter(DISABLED) });
      expectRefused(answer, ['enforcement.unavailable']);
      expect(answer.refused?.message).toContain('disabled at boot');
      expect(answer.refused?.message).toContain('refuses namespaces');
    },
  );

  it('that is named as the minimum and disabled at boot: nothing is run', async () => {
    const answer = await world.attack({
      host: filter(DISABLED),
      options: { policy: { sandbox: { minimum: 'landlock' } } },
    });
    expectRefused(answer, ['enforcement.unavailable', 'backend.unavailable']);
    expect(answer.refused?.message).toContain('disabled at boot');
  });

  it('in name only, as its rules are refused: the same', async () => {
    const answer = await world.attack({
      host: filter({ landlock_add_rule: 'EPERM' }),
      options: { backend: 'landlock' },
    });
    expectRefused(answer, ['backend.unavailable', 'enforcement.unavailable']);
    expect(answer.refused?.message).toContain('landlock.add_rule: EPERM');
  });
});

describe('seccomp missing', () => {
  // As from a kernel without CONFIG_SECCOMP_FILTER, and from one without seccomp at all.
  const MISSING = [
    { seccomp: 'EINVAL', 'prctl[0=22]': 'EINVAL' },
    { seccomp: 'ENOSYS', 'prctl[0=22]': 'EINVAL' },
  ] as const;

  it.each(MISSING)('is an error of the default policy, which names the way out: %j', async (rules) => {
    const answer = await world.attack({ host: filter(rules) });
    expectRefused(answer, ['enforcement.unavailable']);
    expect(answer.refused?.message).toContain('demand.network = "best-effort"');
  });

  it.each(MISSING)('is accepted by a policy that does not demand it, and reported: %j', async (rules) => {
    const answer = await world.attack({
      host: filter(rules),
      options: { policy: { demand: { network: 'best-effort' } } },
    });
    expectHonest(answer);
    expect(answer.states).toMatchObject({
      filesystem: 'enforced',
      syscalls: 'unsupported',
      'terminal-injection': 'degraded',
      // A network namespace holds most of it; otherwise seccomp alone does.
      network: HOST.namespaces ? 'degraded' : 'unsupported',
    });
  });
});

describe.runIf(ROOT)('root without capabilities (needs to be started as root)', () => {
  it.each([
    ['CAP_SYS_ADMIN', ['setpriv', '--bounding-set=-sys_admin', '--inh-caps=-sys_admin'], 'enforced'],
    ['any', ['setpriv', '--bounding-set=-all', '--inh-caps=-all'], undefined],
    ['CAP_SETPCAP', ['setpriv', '--bounding-set=-setpcap', '--inh-caps=-setpcap'], 'enforced'],
  ] as const)('without %s: held, by what it can still make', async (_, host, view) => {
    const answer = await world.attack({ host });
    expectHonest(answer);
    expect(answer.backend).toBe('landlock');
    if (view !== undefined) expect(answer.states?.['filesystem-view']).toBe(view);
  });
});

describe.runIf(HOST.signalScope)('where nobody gets new privileges (needs a signal scope)', () => {
  it('a signal that the sandbox denied is told as elsewhere', async () => {
    const place = makePlace();
    const outside = spawn('setpriv', ['--no-new-privs', 'sleep', '1000'], { stdio: 'ignore' });
    await eventually(() => expect(readFileSync(`/proc/${outside.pid}/comm`, 'utf8')).toBe('sleep\n'));
    const { stderr } = await execa(
      'setpriv',
      ['--no-new-privs', process.execPath, CLI, '--explain', 'always', '-c', `kill -TERM ${outside.pid}`],
      { cwd: place.workspace, env: place.env, extendEnv: false, reject: false },
    );
    const isThere = outside.kill('SIGKILL');
    place.dispose();
    expect([stderr, isThere]).toEqual([expect.stringContaining(`${outside.pid} (sleep)`), true]);
  });
});
