import { describe, expect, it } from 'vitest';
import { CommandError, createSandbox, SandboxError } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { makePlaceWithSandbox } from './support.ts';

const { place, sandbox } = await makePlaceWithSandbox();

const thrownBy = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('ok', () => {
  it('says whether the command ran and exited with 0', async () => {
    expect((await sandbox.run('true')).ok).toBe(true);
    expect((await sandbox.run('exit 3')).ok).toBe(false);
    expect((await sandbox.run('kill -9 $$')).ok).toBe(false);
    expect((await sandbox.run('sleep 9', { timeout: 50 })).ok).toBe(false);
    expect((await sandbox.run(['no-such-program'])).ok).toBe(false);
    expect((await sandbox.run('true', { signal: AbortSignal.abort() })).ok).toBe(false);
    await using shell = await sandbox.session();
    expect((await shell.run('true')).ok).toBe(true);
    expect((await shell.run('false')).ok).toBe(false);
  });

  it('narrows the type: what is ok has exited', async () => {
    const result = await sandbox.run('true');
    if (result.ok) result.exitCode satisfies number;
    else result.exitCode satisfies number | undefined;
    expect(result.status).toBe('exited');
  });
});

describe('reject', () => {
  it('throws an error with the result for what is not ok', async () => {
    const error = await thrownBy(sandbox.run('echo out; echo "it broke" >&2; exit 3', { reject: true }));
    expect(error).toBeInstanceOf(CommandError);
    expect(error).toBeInstanceOf(SandboxError);
    expect(error).toMatchObject({
      code: 'command.failed',
      message: 'echo out; echo "it broke" >&2; exit 3: exited 3: it broke',
      exitStatus: 3,
      result: { status: 'exited', ok: false, exitCode: 3, stdout: 'out\n', stderr: 'it broke\n' },
    });
  });

  it.each([
    ['kill -9 $$', {}, 'command.failed', 'ended by SIGKILL', 137],
    ['sleep 9', { timeout: 50 }, 'command.failed', 'ran out of time', 124],
    ['true', { signal: AbortSignal.abort() }, 'command.failed', 'was canceled', 1],
    [['no-such-program', 'a b'], {}, 'program.not_found', "no-such-program 'a b': ", 127],
  ] as const)('%j, %o: %s', async (command, options, code, says, exitStatus) => {
    const given = typeof command === 'string' ? command : (['no-such-program', 'a b'] as [string, string]);
    const error = await thrownBy(sandbox.run(given, { ...options, reject: true }));
    expect(error).toMatchObject({ code, exitStatus });
    expect((error as CommandError).message).toContain(says);
  });

  it('is about what the policy refuses, too', async () => {
    const policy = { unsafe: { unjudged_commands: false } };
    await using judged = await createSandbox({ workspace: place.workspace, policy });
    const error = await thrownBy(judged.run('sudo reboot', { reject: true }));
    expect(error).toMatchObject({ code: 'command.denied', result: { status: 'denied' } });
  });

  it('changes nothing for what is ok, and for errors that are none of a command', async () => {
    expect(await sandbox.run('echo a', { reject: true })).toMatchObject({ ok: true, stdout: 'a\n' });
    const error = await thrownBy(sandbox.run([] as never, { reject: true }));
    expect(error).toBeInstanceOf(SandboxError);
    expect(error).not.toBeInstanceOf(CommandError);
  });

  it('holds for start() and for a session; a job has no such option', async () => {
    const started = sandbox.start('echo a; exit 2', { reject: true });
    let text = '';
    const rejected = thrownBy(started.result);
    for await (const chunk of started.outputText()) text += chunk.text;
    expect(text).toBe('a\n');
    expect(await rejected).toMatchObject({ result: { exitCode: 2 } });
    await using shell = await sandbox.session();
    expect(await thrownBy(shell.run('false', { reject: true }))).toMatchObject({
      result: { exitCode: 1, restarted: false },
    });
    expect((await shell.run('true', { reject: true })).ok).toBe(true);
    const job = { background: true, reject: true } as never;
    expect(await thrownBy(sandbox.run('true', job))).toMatchObject({ code: 'usage.invalid' });
  });

  it('has no line break and nothing that a terminal obeys in the message', async () => {
    const command = "printf 'a\\033[2J\\rb\\n' >&2\nfalse";
    const { message } = (await thrownBy(sandbox.run(command, { reject: true }))) as CommandError;
    expect(message).not.toMatch(/\p{Cc}/u);
  });
});

describe('what looks like another library', () => {
  it('run("echo", ["a"]) says how it is written here', async () => {
    for (const given of [['a'], 'a'] as unknown as never[]) {
      const hint = 'a program and its arguments are one array: run(["echo", "a"])';
      await expect(sandbox.run('echo', given)).rejects.toThrow(hint);
      expect(() => sandbox.start('echo', given)).toThrow(hint);
    }
  });

  it('kill() without an argument sends SIGTERM', async () => {
    const job = await sandbox.run('sleep 60', { background: true });
    const started = sandbox.start('sleep 60');
    const child = sandbox.spawn('sleep 60');
    const signals = [];
    for (const [one, result] of [
      [job, () => job.wait()],
      [started, () => started.result],
      [child, () => child.result],
    ] as const) {
      await eventually(() => expect(one.kill()).toBe(true));
      signals.push((await result()).signal);
    }
    expect(signals).toEqual(['SIGTERM', 'SIGTERM', 'SIGTERM']);
  });
});
