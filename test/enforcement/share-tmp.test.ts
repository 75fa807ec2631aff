import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SandboxOptions } from '../../src/index.ts';
import { makeArena, SECRET } from '../support/arena.ts';
import { sandboxIn, stateOf, TIERS, type Tier } from '../support/tiers.ts';

/** Outside of /tmp, as a project usually is. */
const arena = makeArena('/var/tmp');
const tmp = mkdtempSync(join(realpathSync('/tmp'), 'enforcement-shared-'));
const KEPT = ['XDG_STATE_HOME', 'XDG_CONFIG_HOME', 'TMPDIR'] as const;
const before = KEPT.map((name) => [name, process.env[name]] as const);

beforeAll(() => {
  process.env.XDG_STATE_HOME = join(arena.root, 'state');
  process.env.XDG_CONFIG_HOME = join(arena.root, 'config');
  process.env.TMPDIR = '/tmp';
});
afterAll(() => {
  for (const [name, value] of before) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  rmSync(tmp, { recursive: true, force: true });
});

/** A copy of the checkout may: then /tmp stays shut, as the program in it could be replaced. */
const LIES_IN_TMP = realpathSync(import.meta.dirname).startsWith(`${realpathSync('/tmp')}/`);
const OPEN = TIERS.filter(({ view }) => view || !LIES_IN_TMP);
const WITHOUT = TIERS.filter(({ view }) => !view);
const reasonOf = (sandbox: Awaited<ReturnType<typeof sandboxIn>>) =>
  sandbox.plan.report.controls.find(({ id }) => id === 'private-tmp')?.reason;

/** Without the programs of other tests, which lie in /tmp. */
const open = (tier: Tier, options: SandboxOptions = {}) =>
  sandboxIn(tier, { workspace: arena.workspace, ...options });

describe('/tmp', () => {
  it.each(OPEN)('can be written, and what was written be read, in one command: $name', async (tier) => {
    await using sandbox = await open(tier);
    const file = join(tier.view ? '/tmp' : tmp, 'out.txt');
    const result = await sandbox.run(
      `echo result > ${file} && cat ${file}; mktemp -p /tmp -u >&2; echo "$TMPDIR"`,
    );
    expect(result.stdout.split('\n')[0]).toBe('result');
    expect(result.stdout.split('\n')[1]).not.toBe(tier.view ? '' : '/tmp');
  });
});

describe.runIf(LIES_IN_TMP).each(WITHOUT)(
  '/tmp of the host, where this program lies in it: $name',
  (tier) => {
    it('stays shut', async () => {
      await using sandbox = await open(tier);
      expect((await sandbox.run(`echo x > ${tmp}/stray; ls ${tmp}`)).stdout).toBe('');
      expect(reasonOf(sandbox)).toContain('(sandbox-run keeps things of its own in it)');
    });
  },
);

describe.runIf(!LIES_IN_TMP).each(WITHOUT)('/tmp of the host: $name', (tier) => {
  it('is for commands as it is for everybody, and the report says so', async () => {
    await using sandbox = await open(tier);
    expect(stateOf(sandbox, 'private-tmp')).toBe('degraded');
    expect(reasonOf(sandbox)).toContain('/tmp and /dev/shm are the host’s');
    const file = join(tmp, 'of-the-host');
    writeFileSync(file, SECRET);
    expect((await sandbox.run(`cat ${file}; echo x > ${tmp}/left; stat -c %a /tmp`)).stdout).toBe(
      `${SECRET}1777\n`,
    );
    // It stays for the next command, and for everybody.
    expect(readFileSync(join(tmp, 'left'), 'utf8')).toBe('x\n');
    expect((await sandbox.run(`cat ${tmp}/left`)).stdout).toBe('x\n');
  });

  it('holds nothing of what is private to a command, so that no other one gets at it', async () => {
    await using one = await open(tier);
    await using other = await open(tier);
    await using shut = await open(tier, { policy: { filesystem: { tmp: 'private' } } });
    let places = '';
    const jobs = [one, shut].map((sandbox) =>
      sandbox.start('echo secret > "$TMPDIR/note"; echo "$TMPDIR $HOME"; exec sleep 20', {
        onOutput: ({ bytes }) => {
          places += Buffer.from(bytes).toString();
        },
      }),
    );
    while (places.split('\n').length < 3) await new Promise((done) => setTimeout(done, 5));
    const found = places.trim().split(/\s+/);
    expect(found).toHaveLength(4);
    for (const place of found) {
      expect(place.startsWith('/tmp/')).toBe(false);
      const attack = await other.run(
        `cat ${place}/note; ls ${place}; echo x > ${place}/planted; mv ${place} /tmp/moved`,
      );
      expect(attack.stdout).toBe('');
      expect(existsSync(join(place, 'planted'))).toBe(false);
    }
    for (const job of jobs) job.kill('SIGKILL');
    await Promise.all(jobs.map(({ result }) => result));
  });

  it('lets nobody out: links, other directories, and what is set-uid', async () => {
    await using sandbox = await open(tier);
    const attack = await sandbox.run(
      `ln -s ${arena.secret} ${tmp}/link; cat ${tmp}/link; ln ${arena.secret} ${tmp}/hard; mv ${arena.secret} ${tmp}/; echo x > ${arena.outside}/y; cp /bin/true ${tmp}/t && chmod 4755 ${tmp}/t; mknod ${tmp}/null c 1 3; ls ${arena.outside}`,
    );
    expect(attack.stdout).toBe('');
    expect(readFileSync(arena.secret, 'utf8')).toBe(SECRET);
    expect(existsSync(join(tmp, 'null')) || existsSync(join(tmp, 'hard'))).toBe(false);
  });

  it('sockets of others in it stay out of reach', async () => {
    const path = join(tmp, 'agent.sock');
    const server = createServer((socket) => socket.end(SECRET));
    await new Promise<void>((done) => server.listen(path, done));
    try {
      await using sandbox = await open(tier);
      const result = await sandbox.run([
        'python3',
        '-c',
        `import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect(${JSON.stringify(path)})\nprint(s.recv(100).decode())`,
      ]);
      expect(result.stdout).toBe('');
      expect(result.stderr).toMatch(/Permission denied/);
    } finally {
      server.close();
    }
  });

  it.each([
    ['the policy wants it private', () => ({ policy: { filesystem: { tmp: 'private' as const } } })],
    ['the workspace lies in it', () => ({ workspace: made('workspace') })],
    ['something that is only read lies in it', () => ({ readable: [made('readable')] })],
    [
      'the workspace lies in it and is only read',
      () => ({ workspace: made('only-read'), profile: 'read-only' }),
    ],
  ])('stays shut where %s', async (_, options) => {
    await using sandbox = await open(tier, options());
    const result = await sandbox.run(
      `echo x > ${tmp}/stray; ls /tmp; echo x > "$TMPDIR/own" && cat "$TMPDIR/own"`,
    );
    expect([result.stdout, existsSync(join(tmp, 'stray'))]).toEqual(['x\n', false]);
    expect(reasonOf(sandbox)).toContain('/tmp itself is refused (');
  });

  it('stays shut where sandbox-run keeps its state in it', async () => {
    process.env.XDG_STATE_HOME = made('state');
    try {
      await using sandbox = await open(tier);
      expect((await sandbox.run(`echo x > ${tmp}/stray; ls ${tmp}`)).stdout).toBe('');
      expect(reasonOf(sandbox)).toContain('(sandbox-run keeps things of its own in it)');
    } finally {
      process.env.XDG_STATE_HOME = join(arena.root, 'state');
    }
  });

  it('a policy of the workspace can take it back', async () => {
    const workspace = mkdtempSync(join(arena.root, 'narrow-'));
    const write = `echo x > ${tmp}/narrow && echo ok`;
    {
      await using sandbox = await open(tier, { workspace });
      expect((await sandbox.run(write)).stdout).toBe('ok\n');
    }
    writeFileSync(join(workspace, '.sandbox-run.toml'), '[filesystem]\ntmp = "private"\n');
    await using sandbox = await open(tier, { workspace });
    expect((await sandbox.run(write)).stdout).toBe('');
    expect(reasonOf(sandbox)).toContain('(by the policy)');
  });
});

function made(name: string): string {
  return mkdtempSync(join(tmp, `${name}-`));
}
