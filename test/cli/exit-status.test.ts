import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { constants } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { expectNothingLeft } from '../support/leftovers.ts';
import { cli, expectOneLine, makePlace, startCli } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());
afterEach(() => expectNothingLeft(place));

function makeFile(name: string, content: string, mode = 0o755): string {
  const path = join(place.workspace, name);
  writeFileSync(path, content);
  chmodSync(path, mode);
  return path;
}

describe('the exit status', () => {
  it.each([0, 1, 3, 125, 126, 127, 255])('is that of the command: %i', async (status) => {
    expect((await cli(place, ['-c', `exit ${status}`])).exitCode).toBe(status);
  });

  it.each([0, 7, 255])('is that of the process, too: %i', async (status) => {
    const { exitCode, signal } = await startCli(place, ['-c', `exit ${status}`]);
    expect({ exitCode, signal }).toEqual({ exitCode: status, signal: undefined });
  });

  it('is 125 of a process that was called wrongly', async () => {
    const { exitCode, stdout, stderr } = await startCli(place, ['--nope', 'true']);
    expect([exitCode, stdout]).toEqual([125, '']);
    expectOneLine(stderr);
  });

  it.each(['SIGTERM', 'SIGKILL', 'SIGSEGV', 'SIGINT', 'SIGUSR1', 'SIGPIPE'] as const)(
    'is 128 and the number of the signal that ended the command: %s',
    async (signal) => {
      const result = await cli(place, ['-c', `kill -${signal.slice(3)} $$`]);
      expect(result.exitCode).toBe(128 + constants.signals[signal]);
    },
  );

  it('is 124 after a time-out, of a command that has no end', async () => {
    const result = await cli(place, ['--timeout', '0.3', '--', 'sleep', 'infinity']);
    expect(result.exitCode).toBe(124);
    expect(result.stderr).toMatch(/timed out after \d+\.\d s/);
  });

  it('is 124 for a command that ignores SIGTERM, after the grace', async () => {
    // Not in the workspace: without namespaces a policy is refused where commands could write.
    const policy = join(place.root, 'quick.toml');
    writeFileSync(policy, '[limits]\nkill_grace_seconds = 0.2\n');
    const result = await cli(place, [
      '--policy',
      policy,
      '--timeout',
      '0.2',
      '-c',
      'trap "" TERM; while :; do sleep 1; done',
    ]);
    expect(result.exitCode).toBe(124);
  });

  it('is 127 for a program that is not found, by name and by path', async () => {
    for (const program of ['no-such-program', './no-such-program', '/no/such/program', '']) {
      const result = await cli(place, ['--', program]);
      expect(result.exitCode).toBe(127);
      expectOneLine(result.stderr);
    }
  });

  it('is 126 for what cannot be executed, and says why', async () => {
    makeFile('plain.txt', 'hello\n', 0o644);
    makeFile('no-shebang', 'echo hello\n');
    makeFile('bad-interpreter', '#!/no/such/interpreter\n');
    mkdirSync(join(place.workspace, 'directory'));
    for (const [program, why] of [
      ['./plain.txt', /permission/],
      ['./no-shebang', /#!/],
      ['./bad-interpreter', /interpreter/],
      ['./directory', /not a file/],
    ] as const) {
      const result = await cli(place, ['--', program]);
      expect(result.exitCode).toBe(126);
      expectOneLine(result.stderr);
      expect(result.stderr).toMatch(why);
    }
  });

  it('is 126 for a program outside of the sandbox, and names the way out', async () => {
    const tools = join(place.root, 'tools');
    mkdirSync(tools, { recursive: true });
    writeFileSync(join(tools, 'tool'), '#!/bin/sh\necho ran\n', { mode: 0o755 });
    const result = await cli(place, ['--', join(tools, 'tool')]);
    expect(result).toMatchObject({ exitCode: 126, stdout: '' });
    expect(result.stderr).toContain('--ro');
    expect((await cli(place, ['--ro', tools, '--', join(tools, 'tool')])).stdout).toBe('ran\n');
  });
});
