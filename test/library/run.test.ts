import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createSandbox, type RunningCommand, type Sandbox, SandboxError } from '../../src/index.ts';
import { CACHE_PLACES } from '../../src/policy/index.ts';
import { HOST } from '../support/tiers.ts';
import { untilTimeOut } from '../support/time-out.ts';
import { makePlaceWithSandbox } from './support.ts';

const { place, sandbox } = await makePlaceWithSandbox();

describe('createSandbox', () => {
  it('takes every option', async () => {
    process.env.PASSED_ON = 'from outside';
    await using own = await createSandbox({
      workspace: place.workspace,
      profile: 'read-only',
      policy: { environment: { set: { FROM_POLICY: '1' } } },
      readable: [place.other],
      passEnv: ['PASSED_ON'],
      env: { SET: '2' },
      timeout: 5_000,
      maxOutput: 100,
    });
    delete process.env.PASSED_ON;
    const result = await own.run(`echo "$PASSED_ON $FROM_POLICY $SET"; ls -d ${place.other}; touch x`);
    expect(result).toMatchObject({
      status: 'exited',
      exitCode: 1,
      stdout: `from outside 1 2\n${place.other}\n`,
    });
  });

  it('takes a policy as a file and as an object', async () => {
    const file = join(place.root, 'policy.toml');
    writeFileSync(file, `[filesystem]\nwrite = ["${place.other}"]\n`);
    for (const policy of [file, { filesystem: { write: [place.other] } }]) {
      await using own = await createSandbox({ workspace: place.workspace, policy });
      expect((await own.run(['touch', join(place.other, 'x')])).exitCode).toBe(0);
    }
  });

  it.each([
    [{ workspace: '/nonexistent' }, 'workspace.missing'],
    [{ workspace: '/' }, 'workspace.unsafe'],
    [{ workspace: '/etc' }, 'workspace.unsafe'],
    [{ profile: 'nope' }, 'policy.unknown_profile'],
    [{ policy: '/nonexistent.toml' }, 'policy.unreadable'],
    [{ policy: join(place.root, 'broken.toml') }, 'policy.invalid'],
    [{ readable: ['/nonexistent'] }, 'policy.path_missing'],
    [{ writable: ['/nonexistent'] }, 'policy.path_missing'],
  ])('refuses %j with %s', async (options, code) => {
    writeFileSync(join(place.root, 'broken.toml'), 'this is no TOML');
    const attempt = createSandbox({ workspace: place.workspace, ...options });
    const error = await attempt.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SandboxError);
    expect(error).toMatchObject({ name: 'SandboxError', code, exitStatus: 125 });
    expect((error as SandboxError).message).not.toContain('\n');
  });

  it('says what is enforced', () => {
    expect(sandbox.workspace).toBe(place.workspace);
    expect(sandbox.plan.report.controls.find((control) => control.id === 'filesystem')?.state).toBe(
      'enforced',
    );
  });
});

describe('run', () => {
  it('takes a shell string or an argument vector', async () => {
    const shell = await sandbox.run('printf "%s|" "$0" a "b c"; echo');
    expect(shell.stdout).toMatch(/\|a\|b c\|\n$/);
    const vector = await sandbox.run(['printf', '%s|', 'a', '$HOME', '', 'b c']);
    expect(vector).toMatchObject({ status: 'exited', exitCode: 0, stdout: 'a|$HOME||b c|', stderr: '' });
    expect(vector.argv).toEqual(['printf', '%s|', 'a', '$HOME', '', 'b c']);
  });

  it('works in cwd, relative to the workspace', async () => {
    mkdirSync(join(place.workspace, 'sub'), { recursive: true });
    expect((await sandbox.run(['pwd'])).stdout).toBe(`${place.workspace}\n`);
    expect((await sandbox.run(['pwd'], { cwd: 'sub' })).stdout).toBe(`${place.workspace}/sub\n`);
    expect((await sandbox.run(['pwd'], { cwd: '/usr' })).stdout).toBe('/usr\n');
    const missing = await sandbox.run(['pwd'], { cwd: 'nope' });
    expect(missing).toMatchObject({
      status: 'setup-failed',
      error: { code: 'cwd.unusable', errno: 'ENOENT' },
    });
    const outside = await sandbox.run(['ls'], { cwd: place.other });
    // Without a view the directory is there to be entered, which Landlock does not refuse; but not to be read.
    if (sandbox.plan.namespaces === undefined)
      expect(outside).toMatchObject({ status: 'exited', exitCode: 2, stdout: '' });
    else expect(outside).toMatchObject({ status: 'setup-failed', error: { code: 'cwd.unusable' } });
  });

  it('adds and takes away variables for one run', async () => {
    const show = 'echo "$EXTRA"; printenv LANG PATH > /dev/null || echo one is missing';
    expect((await sandbox.run(show, { env: { EXTRA: 'x\ny', LANG: 'C' } })).stdout).toBe('x\ny\n');
    expect((await sandbox.run(show, { env: { LANG: undefined } })).stdout).toBe('\none is missing\n');
    expect((await sandbox.run(['printenv', 'EXTRA'])).stdout).toBe('');
  });

  it('gives input as text or bytes, and an empty one without', async () => {
    expect((await sandbox.run(['cat'], { input: 'héllo' })).stdout).toBe('héllo');
    expect(
      (await sandbox.run(['od', '-An', '-tx1'], { input: Uint8Array.of(0, 255, 10) })).stdout.trim(),
    ).toBe('00 ff 0a');
    expect((await sandbox.run(['cat'], { input: '' })).stdout).toBe('');
    expect((await sandbox.run(['cat'])).stdout).toBe('');
    const large = 'x'.repeat(1_000_000);
    expect((await sandbox.run(['cat'], { input: large })).stdout).toBe(large);
  });

  it('is not held up by input that the command does not read', async () => {
    const input = new Uint8Array(1_000_000);
    expect(await sandbox.run(['true'], { input })).toMatchObject({ status: 'exited', exitCode: 0 });
    expect((await sandbox.run('read -r -n 3 x; echo "$x"', { input: 'abcdef'.repeat(200_000) })).stdout).toBe(
      'abc\n',
    );
  });

  it('decodes UTF-8 as a whole, and replaces what is not', async () => {
    const result = await sandbox.run('printf "a\\xff\\xc3"; sleep 0.05; printf "\\xa9|"; printf "日本" >&2');
    expect(result.stdout).toBe('a\ufffdé|');
    expect(result.stderr).toBe('日本');
  });

  it('keeps the beginning and the end of each stream, says what is missing between them, and counts it', async () => {
    await using own = await createSandbox({ workspace: place.workspace, maxOutput: 1_000 });
    const result = await own.run('seq 100000; seq 10 >&2');
    const all = Array.from({ length: 100_000 }, (_, i) => `${i + 1}\n`).join('');
    expect(all.length).toBe(588_895);
    expect(result.exitCode).toBe(0);
    expect(result.stdout).toBe(`${all.slice(0, 500)}\n[... 587,895 bytes left out ...]\n${all.slice(-500)}`);
    expect(result.stderr).toBe('1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n');
    expect(result.truncated).toEqual({ stdout: 587_895, stderr: 0 });
    await using none = await createSandbox({ workspace: place.workspace, maxOutput: 0 });
    expect(await none.run('echo abc')).toMatchObject({
      stdout: '\n[... 4 bytes left out ...]\n',
      truncated: { stdout: 4, stderr: 0 },
    });
  });

  it('cuts no character in two', async () => {
    const text = 'é€😀'.repeat(5);
    for (let limit = 0; limit < 20; limit += 1) {
      const { stdout, truncated } = await sandbox.run(['printf', text], { maxOutput: limit });
      const [before = '', after = ''] = stdout.split(/\n\[\.\.\. [\d,]+ bytes left out \.\.\.\]\n/);
      expect(text.startsWith(before) && text.endsWith(after)).toBe(true);
      expect(truncated.stdout).toBe(45 - Buffer.byteLength(before) - Buffer.byteLength(after));
      expect(truncated.stdout).toBeLessThanOrEqual(45 - limit + 6);
    }
  });

  it('measures time, CPU time and memory', async () => {
    const result = await sandbox.run(['python3', '-c', 'x = bytearray(300_000_000); sum(range(2_000_000))']);
    expect(result.durationMs).toBeGreaterThan(20);
    expect(result.cpu.userMs).toBeGreaterThan(10);
    expect(result.peakMemoryBytes).toBeGreaterThan(300_000_000);
  });

  it('gives each command a HOME and a TMPDIR of its own that are empty again the next time', async () => {
    // What leads to caches and to granted paths beneath the home.
    const { home, paths } = sandbox.plan;
    const granted = paths.flatMap(({ path }) =>
      path.startsWith(`${home}/`) ? [path.slice(home.length + 1)] : [],
    );
    const leading = [...CACHE_PLACES.map(({ path }) => path), ...granted];
    const places = leading.map((path) => `-e '^${path.split('/')[0]}$'`).join(' ');
    // Where the workspace lies in /tmp, it is there in the private one too.
    const list =
      'ls -A "$HOME" "$TMPDIR" | grep -v -e : -e "^$" -e .gitconfig -e sandbox-run-library-test -e sandbox-run-test- -e "^\\.\\(npmrc\\|config\\|cargo\\|pip\\|yarnrc.*\\)$" ';
    const look = `${list} ${places} | sort | xargs`;
    const script = `${look}; touch "$HOME/h" "$TMPDIR/t"; sleep 0.1; ${look}`;
    const together = await Promise.all([1, 2, 3].map(() => sandbox.run(script)));
    for (const result of [...together, await sandbox.run(script)]) expect(result.stdout).toBe('\nh t\n');
  });

  it('has results of one shape for every status', async () => {
    const results = await Promise.all([
      sandbox.run(['true']),
      sandbox.run('kill -9 $$'),
      sandbox.run(['sleep', '9'], { timeout: 50 }),
      sandbox.run(['sleep', '9'], { signal: AbortSignal.timeout(50) }),
      sandbox.run(['no-such-program']),
      sandbox.run(['true'], { cwd: '/nonexistent' }),
    ]);
    expect(results.map((result) => result.status)).toEqual([
      'exited',
      'signaled',
      'timed-out',
      'canceled',
      'setup-failed',
      'setup-failed',
    ]);
    const keys = Object.keys(results[0] ?? {}).sort();
    for (const result of results) {
      expect(Object.keys(result).sort()).toEqual(keys);
      expect(result.report).toEqual(sandbox.plan.report);
    }
  });

  it('finds a program that has moved since the last command', async () => {
    const [first, second] = [join(place.workspace, 'first'), join(place.workspace, 'second')];
    for (const directory of [first, second]) mkdirSync(directory, { recursive: true });
    const env = { PATH: `${first}:${second}:/usr/bin:/bin` };
    await using sandbox = await createSandbox({ workspace: place.workspace });
    const run = () => sandbox.run(['moving'], { env });
    expect((await run()).error?.code).toBe('program.not_found');
    for (const at of [first, second, first]) {
      for (const directory of [first, second]) rmSync(join(directory, 'moving'), { force: true });
      writeFileSync(join(at, 'moving'), '#!/bin/sh\necho "$0"\n', { mode: 0o755 });
      expect(await run()).toMatchObject({ status: 'exited', stdout: `${at}/moving\n` });
      expect((await run()).stdout).toBe(`${at}/moving\n`);
    }
    rmSync(join(first, 'moving'));
    expect((await run()).error?.code).toBe('program.not_found');
  });

  it.each([
    ['the program', ['ec\0ho'], {}],
    ['argument 1', ['echo', 'a\0b'], {}],
    ['argument 5', 'echo a\0; rm -rf b', {}],
    ['the working directory', ['pwd'], { cwd: 'sub\0' }],
    ['the variable X', ['env'], { env: { X: '1\0LD_PRELOAD=y' } }],
    ['the variable XY', ['env'], { env: { 'X\0Y': '1' } }],
  ] as const)('refuses NUL in %s', async (what, command, options) => {
    await using sandbox = await createSandbox({ workspace: place.workspace });
    const result = await sandbox.run(command, options);
    expect(result.status).toBe('setup-failed');
    expect(result.error?.message).toContain(`${what} contains a NUL character`);
  });

  it('tells not found, not executable, refused and failed apart', async () => {
    writeFileSync(join(place.workspace, 'plain'), 'x');
    expect((await sandbox.run(['nope'])).error).toMatchObject({ code: 'program.not_found', path: 'nope' });
    expect((await sandbox.run(['./plain'])).error).toMatchObject({ code: 'program.not_executable' });
    expect((await sandbox.run('nope; exit 1')).error).toBeUndefined();
    expect((await sandbox.run(['sh', '-c', 'x'.repeat(3_000_000)])).error).toMatchObject({
      errno: 'E2BIG',
      stage: 'exec',
    });
  });
});

describe('the end of a command', () => {
  it('by time-out: SIGTERM first, SIGKILL after the grace', async () => {
    const polite = await untilTimeOut(
      500,
      (timeout) => sandbox.run('trap "echo bye; exit 5" TERM; sleep 9 & wait', { timeout }),
      ({ stdout }) => stdout !== '',
    );
    expect(polite).toMatchObject({ status: 'timed-out', exitCode: 5, stdout: 'bye\n' });
    await using strict = await createSandbox({
      workspace: place.workspace,
      policy: { limits: { kill_grace_seconds: 0.1 } },
    });
    const stubborn = await strict.run('trap "" TERM; echo on; while :; do sleep 1; done', { timeout: 1_000 });
    expect(stubborn).toMatchObject({ status: 'timed-out', signal: 'SIGKILL', stdout: 'on\n' });
    // With the grace that is the default it takes three seconds at the least.
    expect(stubborn.durationMs).toBeLessThan(2_900);
  });

  it('time-out 0 is none', async () => {
    await using own = await createSandbox({ workspace: place.workspace, timeout: 50 });
    expect((await own.run(['sleep', '0.2'], { timeout: 0 })).status).toBe('exited');
    expect((await own.run(['sleep', '0.2'])).status).toBe('timed-out');
  });

  it('by an AbortSignal: while it runs', async () => {
    const controller = new AbortController();
    const onOutput = () => controller.abort();
    const pending = sandbox.run('echo on; exec sleep 9', { signal: controller.signal, onOutput });
    expect(await pending).toMatchObject({ status: 'canceled', signal: 'SIGTERM', stdout: 'on\n' });
  });

  it('by an AbortSignal: afterwards it changes nothing', async () => {
    const controller = new AbortController();
    const result = await sandbox.run(['true'], { signal: controller.signal });
    controller.abort();
    expect(result.status).toBe('exited');
    expect((await sandbox.run(['true'])).status).toBe('exited');
  });

  it('by an AbortSignal: aborted before, nothing runs', async () => {
    for (let round = 0; round < 20; round++) {
      const result = await sandbox.run(['touch', 'aborted-marker'], { signal: AbortSignal.abort() });
      expect(result.status).toBe('canceled');
    }
    expect(existsSync(join(place.workspace, 'aborted-marker'))).toBe(false);
  });

  it('by kill() of start(), which says whether there was anything to kill', async () => {
    let runs = () => {};
    const running = new Promise<void>((done) => {
      runs = done;
    });
    const command = sandbox.start('echo on; exec sleep 9', { onOutput: () => runs() });
    await running;
    expect(command.kill('SIGINT')).toBe(true);
    expect(await command.result).toMatchObject({ status: 'signaled', signal: 'SIGINT' });
    expect(command.kill('SIGINT')).toBe(false);
    const notStarted = sandbox.start(['no-such-program']);
    expect(notStarted.kill('SIGTERM')).toBe(false);
  });

  it('kill() right after start() is not lost', async () => {
    const results = await Promise.all(
      Array.from({ length: 10 }, () => {
        const command = sandbox.start(['sleep', '9'], { timeout: 3_000 });
        command.kill('SIGKILL');
        return command.result;
      }),
    );
    for (const result of results) expect(result).toMatchObject({ status: 'signaled', signal: 'SIGKILL' });
  });

  const ends = {
    'kill()': ({ command }) => void command.kill('SIGTERM'),
    'cancel()': ({ command }) => command.cancel(),
    'its AbortSignal': ({ controller }) => controller.abort(),
    'close()': ({ own }) => void own.close(),
  } satisfies Record<
    string,
    (of: { own: Sandbox; command: RunningCommand; controller: AbortController }) => void
  >;
  // Of what only reads no layer is made.
  const rows = (
    [
      ['preview', 'touch x; sleep 60'],
      ['undoable', 'sleep 60'],
    ] as const
  ).flatMap(([effect, script]) => Object.entries(ends).map(([name, end]) => ({ name, end, effect, script })));
  it.skipIf(!HOST.namespaces).each(rows)(
    'by $name while it is got ready ($effect, $script) is not lost (needs namespaces)',
    { timeout: 60_000 },
    async ({ end, effect, script }) => {
      // At every time from the start to when it runs, which is soon after.
      for (let turns = 1; turns < 50_000; turns *= 3) {
        await using own = await createSandbox({ workspace: place.workspace });
        const controller = new AbortController();
        const command = own.start(script, { effect, signal: controller.signal, timeout: 9_000 });
        for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
        end({ own, command, controller });
        expect((await command.result).status).toBeOneOf(['canceled', 'signaled']);
      }
    },
  );
});
