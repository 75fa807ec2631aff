import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { HOST } from '../support/tiers.ts';
import { DIST, expectHonest, expectRefused, has, makeWorld, ROOT } from './support/world.ts';

const world = makeWorld();
const { root } = world;
const CLI = join(DIST, 'cli.cjs');
const CHECKOUT = join(DIST, '..');

/** bwrap with this world writable in it. */
const bwrap = (...words: readonly string[]) => [
  'bwrap',
  '--ro-bind',
  '/',
  '/',
  '--bind',
  root,
  root,
  ...words,
];

describe.runIf(has('bwrap') && HOST.namespaces)('inside bubblewrap (needs bwrap and namespaces)', () => {
  const DEVICES = ['--dev', '/dev', '--proc', '/proc'];

  it.each([
    ['with everything unshared', bwrap(...DEVICES, '--unshare-all')],
    ['with the network shared', bwrap(...DEVICES, '--unshare-all', '--share-net')],
    ['as another user', bwrap(...DEVICES, '--unshare-user', '--uid', '1234', '--gid', '1234')],
    ['with a /tmp of its own', bwrap(...DEVICES, '--tmpfs', '/var/tmp')],
    ['that dies with its parent', bwrap(...DEVICES, '--die-with-parent', '--new-session')],
    ['without /dev/shm', bwrap(...DEVICES, '--tmpfs', '/dev/shm', '--remount-ro', '/dev/shm')],
    [
      'with few devices',
      bwrap(
        '--tmpfs',
        '/dev',
        '--dev-bind',
        '/dev/null',
        '/dev/null',
        '--dev-bind',
        '/dev/urandom',
        '/dev/urandom',
        '--proc',
        '/proc',
      ),
    ],
  ])('%s: held in full', async (_, host) => {
    const answer = await world.attack({ host });
    expectHonest(answer);
    expect(answer).toMatchObject({ backend: 'landlock', tier: 'signal-scope' });
    expect(answer.states?.['filesystem-view']).toBe('enforced');
  });

  it('without /proc: held by Landlock, and what is not looked at is said', async () => {
    const answer = await world.attack({ host: bwrap('--dev', '/dev', '--tmpfs', '/proc') });
    expectHonest(answer);
    expect(answer.states).toMatchObject({
      'filesystem-view': 'unsupported',
      'resource-limits': 'unsupported',
    });
    expect(answer.reasons?.['resource-limits']).toContain('/proc cannot be read');
  });

  it('without /dev/null: refused, by name', async () => {
    const answer = await world.attack({ host: bwrap('--tmpfs', '/dev', '--proc', '/proc') });
    expectRefused(answer, ['confinement.failed']);
    expect(answer.refused?.message).toContain('/dev/null');
  });

  it('with everything read-only: refused, and says what to make writable', async () => {
    const answer = await world.attack({
      host: ['bwrap', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'],
    });
    expectRefused(answer, ['confinement.failed']);
    expect(answer.refused?.message).toContain('set TMPDIR to a writable directory');
  });
});

function firejailWorks(): boolean {
  try {
    execFileSync('firejail', ['--quiet', '--noprofile', 'true'], { stdio: 'ignore', timeout: 10_000 });
    return true;
  } catch {
    return false;
  }
}

describe.runIf(has('firejail') && firejailWorks())(
  'inside Firejail (needs firejail, and leave to use it)',
  () => {
    it.each([
      ['without a profile', ['--noprofile']],
      ['with its seccomp filter', ['--noprofile', '--seccomp']],
      ['without capabilities', ['--noprofile', '--seccomp', '--caps.drop=all', '--nonewprivs']],
      ['without a network', ['--noprofile', '--net=none']],
    ])('%s: held by Landlock at least', async (_, flags) => {
      const answer = await world.attack({ host: ['firejail', '--quiet', ...flags] });
      expectHonest(answer);
      expect(answer.backend).toBe('landlock');
    });
  },
);

describe('inside a sandbox of our own', () => {
  // Where no command of the outer one can write, or it could change its policy.
  const policies = mkdtempSync(join(realpathSync(tmpdir()), 'sandbox-run-outer-'));
  const policy = join(policies, 'policy.toml');
  chmodSync(policies, 0o755);
  writeFileSync(policy, '[unsafe]\nunjudged_commands = true\n');
  const kept = mkdtempSync(join(realpathSync(tmpdir()), 'sandbox-run-kept-'));
  afterAll(() => {
    for (const directory of [policies, kept]) rmSync(directory, { recursive: true, force: true });
  });

  /** What the inner one needs: this program, and places for its state and its private directories. */
  const outer = [
    ...[process.execPath, CLI, '--quiet', '--policy', policy, '--workspace', world.workspace],
    ...['--ro', policies, '--ro', CHECKOUT, '--ro', process.execPath, '--rw', root],
    // State where nobody can write: between two sandboxes it would be in reach of the inner one's commands.
    ...['--env', 'TMPDIR', '--env', 'HOME', '--env', 'XDG_STATE_HOME=/nonexistent'],
    ...['--env', 'XDG_CONFIG_HOME=/nonexistent', '--'],
  ];

  // Only a view can hide what the outermost one keeps in a home that it grants.
  const env: Record<string, string> = HOST.namespaces
    ? {}
    : { XDG_STATE_HOME: join(kept, 'state'), XDG_CONFIG_HOME: join(kept, 'config') };

  it('the inner one holds by Landlock, and says that it has no view of its own', async () => {
    const answer = await world.attack({ host: outer, env });
    expectHonest(answer);
    expect(answer.backend).toBe('landlock');
    expect(answer.states).toMatchObject({
      'filesystem-view': 'unsupported',
      network: 'enforced',
      syscalls: 'enforced',
    });
  });

  it('many times over: each one holds, or says that the kernel nests no more', async () => {
    for (const depth of [2, 4, 6]) {
      const host = Array.from({ length: depth }, () => outer).flat();
      const answer = await world.attack({ host, env });
      if (answer.refused !== undefined) expect(answer.refused.message).toContain('too many Landlock domains');
      else if (answer.crashed === undefined) expectHonest(answer);
      else expect(answer.stderr).toMatch(/^sandbox-run: [^\n]*(too many Landlock domains|E2BIG)[^\n]*\n/);
    }
  });

  it.runIf(!HOST.namespaces)(
    'that grants what it keeps itself: refused in one line (no namespaces)',
    async () => {
      const answer = await world.attack({ host: outer });
      expect(answer.crashed).toContain('status 125');
      expect(answer.stderr).toMatch(/^sandbox-run: commands could reach [^\n]+ set XDG_STATE_HOME [^\n]+\n$/);
      expect(answer.left).toBe(false);
    },
  );

  it('that allows nothing of it: Node does not find the addon, and one line says so', async () => {
    const host = ['node', CLI, '--quiet', '--workspace', world.workspace, '--ro', process.execPath, '--'];
    const answer = await world.attack({ host });
    expect(answer.crashed).toBeDefined();
    expect(answer.stdout).toBeUndefined();
    expect(answer.left).toBe(false);
  });
});

it.runIf(ROOT && HOST.namespaces)(
  'an ordinary user inside bubblewrap of root (needs namespaces, and to be started as root)',
  async () => {
    const host = [
      ...bwrap('--dev', '/dev', '--proc', '/proc'),
      'setpriv',
      '--reuid',
      '65534',
      '--regid',
      '65534',
      '--clear-groups',
    ];
    // In the other one root has made directories of its own, which nobody else can read.
    const home = join(world.root, 'home-of-a-stranger');
    mkdirSync(home);
    chmodSync(home, 0o777);
    const answer = await world.attack({ host, env: { HOME: home } });
    expectHonest(answer);
    expect(answer.backend).toBe('landlock');
  },
);
