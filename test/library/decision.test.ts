import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { deferred } from '../../src/base/deferred.ts';
import {
  type ActionBudget,
  createSandbox,
  type Reviewer,
  type SandboxOptions,
  type ToolHook,
} from '../../src/index.ts';
import { expectNothingLeft } from '../support/leftovers.ts';
import { makePlace } from './support.ts';

const place = makePlace();
// The built-in policy, and not the one that lets other tests run everything.
process.env.XDG_CONFIG_HOME = join(place.root, 'no-config');
afterAll(async () => {
  await expectNothingLeft(place);
  place.dispose();
});

const sandboxWith = (options: SandboxOptions = {}) =>
  createSandbox({ workspace: place.workspace, ...options });
const files = () => readdirSync(place.workspace);

describe('a command that the policy', () => {
  it('allows runs, and its result has the decision', async () => {
    await using sandbox = await sandboxWith();
    const result = await sandbox.run('echo hello');
    expect(result).toMatchObject({
      status: 'exited',
      stdout: 'hello\n',
      decision: { verdict: 'allow', risk: 'low' },
    });
    expect(result.decision?.reasons.map(({ check }) => check)).toContain('budget');
  });

  it('refuses does not run: a result, not an exception', async () => {
    await using sandbox = await sandboxWith({ autonomy: 'autonomous' });
    const result = await sandbox.run(['touch', '/etc/shadow'], { approved: true });
    expect(result).toMatchObject({
      status: 'denied',
      exitCode: undefined,
      signal: undefined,
      stdout: '',
      treeEnded: true,
      error: { code: 'command.denied', message: expect.stringContaining('/etc/shadow') },
      decision: { verdict: 'deny' },
    });
  });

  it.each([
    ['by its risk', { autonomy: 'supervised' }, 'touch asked'],
    [
      'with the default level, as nothing would bring a file back',
      { undo: 'never' },
      'rm -f kept; touch asked',
    ],
  ] as const)('asks about %s runs only if it was approved', async (_, options, command) => {
    rmSync(join(place.workspace, 'asked'), { force: true });
    writeFileSync(join(place.workspace, 'kept'), 'draft');
    await using sandbox = await sandboxWith(options);
    expect(await sandbox.run(command)).toMatchObject({
      status: 'denied',
      error: { code: 'command.needs_approval' },
      decision: { verdict: 'ask' },
    });
    expect(files()).not.toContain('asked');
    expect(await sandbox.run(command, { approved: true })).toMatchObject({
      status: 'exited',
      exitCode: 0,
    });
    expect(files()).toContain('asked');
  });

  it('asks about in an autonomous session still waits for an answer', async () => {
    await using sandbox = await sandboxWith({ autonomy: 'autonomous' });
    const command = 'PAGER=./x git --version';
    expect(await sandbox.run(command)).toMatchObject({ status: 'denied', decision: { verdict: 'ask' } });
    expect(await sandbox.run(command, { approved: true })).toMatchObject({ status: 'exited' });
  });

  it('would ask about, but is not there, is not found', async () => {
    await using sandbox = await sandboxWith();
    expect(await sandbox.run(['no-such-program'])).toMatchObject({
      status: 'setup-failed',
      error: { code: 'program.not_found' },
    });
  });

  it('is made to run by unsafe.unjudged_commands, without a decision', async () => {
    await using sandbox = await sandboxWith({ policy: { unsafe: { unjudged_commands: true } } });
    expect(await sandbox.run('touch unjudged')).toMatchObject({ status: 'exited', decision: undefined });
  });

  it('refuses gives streams that end', async () => {
    await using sandbox = await sandboxWith({ autonomy: 'supervised' });
    const child = sandbox.spawn('touch spawned');
    const chunks: unknown[] = [];
    for await (const chunk of child.stdout) chunks.push(chunk);
    expect(chunks).toEqual([]);
    expect((await child.result).status).toBe('denied');
    expect(child.kill()).toBe(false);
  });

  it('has two sandboxes judge differently side by side', async () => {
    await using strict = await sandboxWith({ autonomy: 'readonly' });
    await using free = await sandboxWith({ autonomy: 'autonomous' });
    const command = 'echo a | tee side-by-side';
    const results = await Promise.all([strict.run(command), free.run(command), strict.run(command)]);
    expect(results.map(({ status }) => status)).toEqual(['denied', 'exited', 'denied']);
  });
});

describe('hooks', () => {
  const hook = (beforeToolUse: ToolHook['beforeToolUse']): ToolHook => ({ name: 'h', beforeToolUse });
  const refusing = hook(() => ({ allowed: false, reason: 'not today' }));

  it('refuse with their reason', async () => {
    await using sandbox = await sandboxWith({ gate: { hooks: [refusing] } });
    expect((await sandbox.run('echo x')).error?.message).toContain('not today');
  });

  it('may take their time, before a run, a start and a spawn', async () => {
    const slow = hook(async () => {
      await new Promise((done) => setImmediate(done));
      return { allowed: true };
    });
    await using sandbox = await sandboxWith({ gate: { hooks: [slow] } });
    expect((await sandbox.run('cat', { input: 'in' })).stdout).toBe('in');
    const child = sandbox.spawn('cat');
    child.stdin.end('through');
    let text = '';
    for await (const chunk of child.stdout) text += String(chunk);
    expect(text).toBe('through');
    expect((await child.result).status).toBe('exited');
  });

  it('have what is canceled in the meantime not run', async () => {
    const answered = deferred<void>();
    const slow = hook(async () => {
      await answered.promise;
      return { allowed: true };
    });
    await using sandbox = await sandboxWith({ autonomy: 'autonomous', gate: { hooks: [slow] } });
    const canceled = sandbox.start('touch canceled');
    canceled.cancel();
    const killed = sandbox.start('touch killed');
    expect(killed.kill('SIGTERM')).toBe(false);
    const controller = new AbortController();
    const aborted = sandbox.run('touch aborted', { signal: controller.signal });
    controller.abort();
    answered.resolve();
    expect((await canceled.result).status).toBe('canceled');
    expect((await killed.result).status).toBe('canceled');
    expect((await aborted).status).toBe('canceled');
    expect(files()).not.toContain('canceled');
  });

  it('have what a close overtakes not run', async () => {
    const answered = deferred<void>();
    const slow = hook(async () => {
      await answered.promise;
      return { allowed: true };
    });
    const sandbox = await sandboxWith({ gate: { hooks: [slow] } });
    const late = sandbox.run('echo late');
    const closed = sandbox.close();
    answered.resolve();
    await closed;
    expect((await late).status).toBe('canceled');
  });
});

describe('the reviewer', () => {
  const reviewer = (outcome: 'clear' | 'flag'): Reviewer => ({ review: async () => ({ outcome }) });
  const networked = { autonomy: 'autonomous', profile: 'networked' } as const;

  it.each([
    [['secret'], 'clear', 'exited'],
    [['secret'], 'flag', 'denied'],
    [['corruption', 'secret'], 'clear', 'denied'],
    [[], 'flag', 'exited'],
  ] as const)('of a session with %j says %s: %s', async (taints, outcome, status) => {
    await using sandbox = await sandboxWith({ ...networked, gate: { reviewer: reviewer(outcome) } });
    expect((await sandbox.run(['python3', '-c', 'pass'], { taints })).status).toBe(status);
  });

  it('need not be asked where the kernel keeps the network off', async () => {
    await using sandbox = await sandboxWith({ autonomy: 'autonomous', gate: { reviewer: reviewer('flag') } });
    const result = await sandbox.run(['python3', '-c', 'pass'], { taints: ['corruption', 'secret'] });
    expect(result.status).toBe('exited');
    expect(result.decision?.reasons).toContainEqual(
      expect.objectContaining({ check: 'reach', code: 'network_off' }),
    );
  });
});

describe('the budget', () => {
  const limited = (limit: number) => ({ policy: { security: { max_actions_per_hour: limit } } });

  it('is used up by what is launched, and by nothing else', async () => {
    await using sandbox = await sandboxWith({ autonomy: 'supervised', ...limited(2) });
    expect((await sandbox.run('echo 1')).status).toBe('exited');
    expect((await sandbox.run('touch /etc/shadow')).status).toBe('denied');
    expect((await sandbox.run('touch asked-about')).status).toBe('denied');
    expect((await sandbox.run(['no-such-program'])).status).toBe('setup-failed');
    expect((await sandbox.run('echo 2')).status).toBe('exited');
    expect(await sandbox.run('echo 3')).toMatchObject({
      status: 'denied',
      decision: { reasons: [{ check: 'budget', code: 'exhausted' }, ...Array(15).fill(expect.anything())] },
    });
  });

  it('of zero blocks everything', async () => {
    await using sandbox = await sandboxWith(limited(0));
    expect((await sandbox.run('echo 1')).status).toBe('denied');
  });

  it.each([
    ['no reservation, because others used it up', { used: () => 0, reserve: () => undefined }],
    ['no reservation, later', { used: async () => 0, reserve: async () => undefined }],
    ['a store that breaks', { used: () => 0, reserve: () => Promise.reject(new Error('disk full')) }],
  ] as const satisfies readonly (readonly [string, ActionBudget])[])(
    'is kept to with %s',
    async (_, budget) => {
      await using sandbox = await sandboxWith({ ...limited(5), gate: { budget } });
      const result = await sandbox.run('echo 1');
      expect(result).toMatchObject({ status: 'denied', stdout: '', error: { code: 'command.denied' } });
    },
  );

  it('takes a store that is asked elsewhere', async () => {
    const recorded: number[] = [];
    const budget: ActionBudget = {
      used: async () => 0,
      reserve: async (limit) => {
        recorded.push(limit);
        return { commit: () => {}, release: () => {} };
      },
    };
    await using sandbox = await sandboxWith({ ...limited(5), gate: { budget } });
    expect((await sandbox.run('echo 1')).stdout).toBe('1\n');
    expect(recorded).toEqual([5]);
  });
});

describe('layers', () => {
  it('hold for the library as well, and the workspace narrows', async () => {
    const file = join(place.workspace, '.sandbox-run.toml');
    writeFileSync(file, '[[commands.rules]]\nprogram = "echo"\nverdict = "deny"\n', { mode: 0o644 });
    try {
      await using sandbox = await sandboxWith({ autonomy: 'autonomous' });
      expect((await sandbox.run('echo x')).status).toBe('denied');
      expect((await sandbox.run('ls')).status).toBe('exited');
      // The policy is no command's to change.
      expect((await sandbox.run('echo > .sandbox-run.toml')).status).toBe('denied');
      expect((await sandbox.run('cp /dev/null .sandbox-run.toml')).status).toBe('denied');
    } finally {
      writeFileSync(file, '');
    }
  });
});
