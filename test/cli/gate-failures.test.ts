import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  rmSync,
  statfsSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { HOST } from '../support/tiers.ts';
import { recordsOf } from '../unit/gate/audit/support.ts';
import { cli, expectOneLine, makePlace, startCli } from './support.ts';

const place = makePlace();
const state = join(place.root, 'state');
const isRoot = process.getuid?.() === 0;

beforeAll(() => mkdirSync(state));
afterAll(() => place.dispose());

/** A policy for the user, and a run of something that leaves a trace. */
async function run(policy: string, ...args: readonly string[]) {
  writeFileSync(join(place.root, 'config/sandbox-run/policy.toml'), policy, { mode: 0o600 });
  rmSync(join(place.workspace, 'trace'), { force: true });
  // Longer than what may be left of a page that a file has begun.
  const command = `: > trace; : ${'x'.repeat(9_000)}`;
  // What is full, and what is mounted, depends on which files its process holds open.
  return startCli(place, ['--autonomy', 'autonomous', ...args, '-c', command], {
    env: { XDG_STATE_HOME: state },
  });
}
const hasRun = () => existsSync(join(place.workspace, 'trace'));

const AUDIT = '[audit]\nenabled = true\n';
const BUDGET = '[security]\nmax_actions_per_hour = 100\n';

/** Fills what is left of a file system, to the last byte. */
function fill(directory: string): void {
  const { bavail, bsize } = statfsSync(directory);
  try {
    writeFileSync(join(directory, 'filling'), Buffer.alloc(Number(bavail) * Number(bsize)));
  } catch {
    // Full now.
  }
}

// Mounting needs root. The same for an ordinary user: a directory that cannot be written, below.
describe.runIf(isRoot)('a state directory on a file system (mounted by root)', () => {
  beforeAll(() => {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=256k,mode=755', 'tmpfs', state]);
  });
  afterAll(() => {
    execFileSync('umount', ['-l', state]);
  });

  it.each([
    ['audit trail', AUDIT, /audit/],
    ['budget', BUDGET, /disk is full; make room|No space|cannot be used|cannot be counted/],
    ['session', '', /disk is full; make room|cannot be used/],
  ])('that is full: no command runs, %s', async (what, policy, message) => {
    const args = what === 'session' ? ['--session', 's'] : [];
    expect(await run(policy, ...args)).toMatchObject({ exitCode: 0, stderr: '' });
    expect(hasRun()).toBe(true);
    fill(state);
    try {
      const refused = await run(policy, ...args);
      expect([125, 126]).toContain(refused.exitCode);
      expectOneLine(refused.stderr);
      expect(refused.stderr).toMatch(message);
      expect(hasRun()).toBe(false);
    } finally {
      rmSync(join(state, 'filling'));
    }
    expect(await run(policy, ...args)).toMatchObject({ exitCode: 0, stderr: '' });
  });

  it.each([
    ['audit trail', AUDIT],
    ['budget', BUDGET],
  ])('that is read-only: no command runs, %s', async (_, policy) => {
    expect(await run(policy)).toMatchObject({ exitCode: 0, stderr: '' });
    execFileSync('mount', ['-o', 'remount,ro', state]);
    try {
      const refused = await run(policy);
      expect([125, 126]).toContain(refused.exitCode);
      expectOneLine(refused.stderr);
      expect(hasRun()).toBe(false);
    } finally {
      execFileSync('mount', ['-o', 'remount,rw', state]);
    }
  });

  it('that is full: a command runs with a warning where the policy wants no more', async () => {
    const lenient = `${AUDIT}on_failure = "warn"\n`;
    expect(await run(lenient)).toMatchObject({ exitCode: 0, stderr: '' });
    fill(state);
    try {
      const result = await run(lenient);
      expect(result.exitCode).toBe(0);
      expect(result.stderr).toMatch(/^sandbox-run: warning: not recorded: /);
      expect(hasRun()).toBe(true);
    } finally {
      rmSync(join(state, 'filling'));
    }
  });
});

describe('a state database that was lost', () => {
  const lostState = join(place.root, 'lost-state');
  const database = join(lostState, 'sandbox-run/gate.db');
  const hasRunWith = async (policy: string, ...args: readonly string[]) => {
    writeFileSync(join(place.root, 'config/sandbox-run/policy.toml'), policy, { mode: 0o600 });
    rmSync(join(place.workspace, 'trace'), { force: true });
    const result = await cli(place, ['--autonomy', 'autonomous', ...args, '-c', ': > trace'], {
      env: { XDG_STATE_HOME: lostState },
    });
    return { ...result, ran: hasRun() };
  };

  it.each([
    ['budget', '[security]\nmax_actions_per_hour = 1\n', []],
    ['session', '', ['--session', 's']],
  ])('runs nothing until it is taken away: %s', async (_, policy, args) => {
    rmSync(lostState, { recursive: true, force: true });
    expect(await hasRunWith(policy, ...args)).toMatchObject({ exitCode: 0, stderr: '', ran: true });
    for (const end of ['-wal', '-shm']) rmSync(`${database}${end}`, { force: true });
    writeFileSync(database, '');
    for (const shown of [await hasRunWith(policy, ...args), await hasRunWith(policy, ...args)]) {
      expect([125, 126]).toContain(shown.exitCode);
      expect(shown.ran).toBe(false);
      expectOneLine(shown.stderr);
      expect(shown.stderr).toContain(`${database} is empty`);
      expect(shown.stderr).toContain('remove it to begin with nothing');
    }
    rmSync(database);
    expect(await hasRunWith(policy, ...args)).toMatchObject({ exitCode: 0, stderr: '', ran: true });
  });
});

describe('a state directory that cannot be made', () => {
  it.each([
    ['audit trail', AUDIT],
    ['budget', BUDGET],
  ])('no command runs, %s', async (_, policy) => {
    writeFileSync(join(place.root, 'a-file'), '');
    writeFileSync(join(place.root, 'config/sandbox-run/policy.toml'), policy, { mode: 0o600 });
    const refused = await cli(place, ['-c', ': > trace'], {
      env: { XDG_STATE_HOME: join(place.root, 'a-file/state') },
    });
    expect([125, 126]).toContain(refused.exitCode);
    expectOneLine(refused.stderr);
    expect(refused.stderr).toContain('XDG_STATE_HOME');
  });

  it('that others can use is not trusted', async () => {
    const open = join(place.root, 'open');
    mkdirSync(join(open, 'sandbox-run'), { recursive: true });
    chmodSync(join(open, 'sandbox-run'), 0o777);
    writeFileSync(join(place.root, 'config/sandbox-run/policy.toml'), AUDIT, { mode: 0o600 });
    const refused = await cli(place, ['true'], { env: { XDG_STATE_HOME: open } });
    expect(refused).toMatchObject({ exitCode: 125, stdout: '' });
    expect(refused.stderr).toContain('can be used by others (mode 777); chmod 700 it');
  });

  it('that others can use is not trusted where the policy wants no more than a warning, either', async () => {
    const open = join(place.root, 'open-too');
    mkdirSync(join(open, 'sandbox-run'), { recursive: true });
    chmodSync(join(open, 'sandbox-run'), 0o777);
    const lenient = `${AUDIT}on_failure = "warn"\n`;
    writeFileSync(join(place.root, 'config/sandbox-run/policy.toml'), lenient, { mode: 0o600 });
    expect(await cli(place, ['true'], { env: { XDG_STATE_HOME: open } })).toMatchObject({ exitCode: 125 });
    chmodSync(join(open, 'sandbox-run'), 0o700);
    mkdirSync(join(place.root, 'elsewhere'));
    symlinkSync(join(place.root, 'elsewhere'), join(open, 'sandbox-run/audit'));
    expect(await cli(place, ['true'], { env: { XDG_STATE_HOME: open } })).toMatchObject({ exitCode: 125 });
    expect(readdirSync(join(place.root, 'elsewhere'))).toEqual([]);
  });

  const withNothingToRemember = (home: string) => {
    writeFileSync(join(place.root, 'config/sandbox-run/policy.toml'), '', { mode: 0o600 });
    return cli(place, ['--', 'echo', 'fine'], { env: { XDG_STATE_HOME: home } });
  };

  it('does not matter where nothing has to be remembered', async () => {
    writeFileSync(join(place.root, 'no-directory'), '');
    const ran = await withNothingToRemember(join(place.root, 'no-directory/state'));
    expect(ran).toMatchObject({ exitCode: 0, stdout: 'fine\n', stderr: '' });
  });

  it.runIf(HOST.namespaces)('nor does one in what commands can read (needs namespaces)', async () => {
    expect(await withNothingToRemember('/proc/no')).toMatchObject({
      ...{ exitCode: 0, stdout: 'fine\n', stderr: '' },
    });
  });

  it.runIf(!HOST.namespaces)('is refused in what commands can read (no namespaces)', async () => {
    const refused = await withNothingToRemember('/proc/no');
    expect(refused).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(refused.stderr);
    expect(refused.stderr).toContain('because the policy grants /proc');
  });

  it('is not made where nothing has to be remembered', async () => {
    const fresh = join(place.root, 'fresh');
    const policy = join(place.root, 'private-caches.toml');
    writeFileSync(policy, '[filesystem]\ncache = "private"\n', { mode: 0o600 });
    const run = (...args: string[]) => cli(place, args, { env: { XDG_STATE_HOME: fresh } });
    await run('--policy', policy, '--', 'true');
    await run('--policy', policy, '-c', 'cat missing');
    expect(existsSync(fresh)).toBe(false);
    await run('--', 'true');
    expect(readdirSync(join(fresh, 'sandbox-run'))).toEqual(['caches']);
  });
});

describe('what is recorded', () => {
  it('is there before the command starts, and its end after', async () => {
    const home = join(place.root, 'recorded');
    writeFileSync(join(place.root, 'config/sandbox-run/policy.toml'), AUDIT, { mode: 0o600 });
    const run = await cli(place, ['--json', '--', 'sh', '-c', 'echo out; exit 3'], {
      env: { XDG_STATE_HOME: home },
    });
    expect(run.exitCode).toBe(3);
    const refused = await cli(place, ['touch', '/etc/shadow'], { env: { XDG_STATE_HOME: home } });
    expect(refused.exitCode).toBe(126);
    const records = recordsOf(join(home, 'sandbox-run/audit'));
    expect(records).toMatchObject([
      { seq: 1, type: 'decision', outcome: 'launch', command: ['sh', '-c', 'echo out; exit 3'] },
      { seq: 2, type: 'result', status: 'exited', exitCode: 3, outputBytes: { stdout: 4, stderr: 0 } },
      { seq: 3, type: 'decision', outcome: 'command.denied', verdict: 'deny' },
    ]);
    expect(records[1]?.request).toBe(records[0]?.request);
    expect(records[0]?.report).toMatchObject({ controls: { filesystem: 'enforced', network: 'enforced' } });
    expect((await cli(place, ['audit', 'verify'], { env: { XDG_STATE_HOME: home } })).exitCode).toBe(0);
  });

  it('is verified with the key that the policy names', async () => {
    const env = { XDG_STATE_HOME: join(place.root, 'signed') };
    const policyFile = join(place.root, 'config/sandbox-run/policy.toml');
    const key = join(place.root, 'audit.key');
    writeFileSync(key, 'k'.repeat(40), { mode: 0o600 });
    // As a chain is that somebody made anew without the key.
    writeFileSync(policyFile, AUDIT, { mode: 0o600 });
    await cli(place, ['true'], { env });
    expect((await cli(place, ['audit', 'verify'], { env })).exitCode).toBe(0);
    writeFileSync(policyFile, `${AUDIT}hmac_key_file = ${JSON.stringify(key)}\n`, { mode: 0o600 });
    expect((await cli(place, ['audit', 'verify'], { env })).exitCode).toBe(1);
    rmSync(env.XDG_STATE_HOME, { recursive: true });
    await cli(place, ['true'], { env });
    expect((await cli(place, ['audit', 'verify'], { env })).exitCode).toBe(0);
  });
});
