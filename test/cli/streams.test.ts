import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { execa } from 'execa';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { expectNothingLeft } from '../support/leftovers.ts';
import { CLI, cli, makePlace } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());
afterEach(() => expectNothingLeft(place));

const digest = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

describe('standard streams', () => {
  it('carry 5 MB of any bytes through unchanged', async () => {
    const bytes = randomBytes(5_000_000);
    const { stdout, exitCode } = await execa(process.execPath, [CLI, '--', 'cat'], {
      cwd: place.workspace,
      env: place.env,
      extendEnv: false,
      input: bytes,
      encoding: 'buffer',
      stripFinalNewline: false,
    });
    expect(exitCode).toBe(0);
    expect(digest(stdout)).toBe(digest(bytes));
  });

  it('are apart: output and errors do not mix', async () => {
    const result = await cli(place, ['-c', 'echo out; echo err >&2']);
    expect(result).toMatchObject({ exitCode: 0, stdout: 'out\n', stderr: 'err\n' });
  });

  it('end of input reaches the command', async () => {
    expect((await cli(place, ['--', 'wc', '-c'], { input: 'four' })).stdout.trim()).toBe('4');
    expect((await cli(place, ['--', 'wc', '-c'], { input: '' })).stdout.trim()).toBe('0');
  });

  it('may be closed at the start', async () => {
    const shell = `exec "$0" "$1" -- sh -c 'cat; echo done' <&-`;
    const result = await execa('sh', ['-c', shell, process.execPath, CLI], {
      cwd: place.workspace,
      env: place.env,
      extendEnv: false,
      reject: false,
    });
    expect(result.stdout).toBe('done');
  });

  it('end the command by SIGPIPE when the reader goes away', async () => {
    const shell = `"$0" "$1" -- yes | head -1; echo "status \${PIPESTATUS[0]}"`;
    const result = await execa('bash', ['-c', shell, process.execPath, CLI], {
      cwd: place.workspace,
      env: place.env,
      extendEnv: false,
      reject: false,
    });
    expect(result.stdout).toBe('y\nstatus 141');
  });

  it('do so too where output is passed on, and a full device is told in one line', async () => {
    const run = (shell: string) =>
      execa('bash', ['-c', shell, process.execPath, CLI], {
        cwd: place.workspace,
        env: place.env,
        extendEnv: false,
        reject: false,
      });
    const gone = await run(`"$0" "$1" -q --idle-timeout 30 -- yes | head -1; echo "\${PIPESTATUS[0]}"`);
    expect(gone).toMatchObject({ stdout: 'y\n141', stderr: '' });
    const full = await run(`"$0" "$1" --idle-timeout 5 -- seq 10 > /dev/full`);
    expect(full.exitCode).toBe(125);
    expect(full.stderr).toMatch(/^sandbox-run: [^\n]*ENOSPC[^\n]*$/);
  });

  it('survive a reader of --json, --help and --dry-run that goes away', async () => {
    for (const args of ["--json -c 'seq 100000'", '--help', '--dry-run true', 'doctor']) {
      const shell = `"$0" "$1" ${args} | head -c 1 > /dev/null; echo "\${PIPESTATUS[0]}"`;
      const result = await execa('bash', ['-c', shell, process.execPath, CLI], {
        cwd: place.workspace,
        env: place.env,
        extendEnv: false,
        reject: false,
      });
      expect(result).toMatchObject({ stdout: '0', stderr: '' });
    }
  });

  it('are the very descriptors: a file that is appended to keeps its place', async () => {
    const shell = `{ echo before; "$0" "$1" -- echo inside; echo after; } > out.txt; cat out.txt`;
    const result = await execa('sh', ['-c', shell, process.execPath, CLI], {
      cwd: place.workspace,
      env: place.env,
      extendEnv: false,
    });
    expect(result.stdout).toBe('before\ninside\nafter');
  });

  it('hand over nothing but themselves', async () => {
    const child = spawn(process.execPath, [CLI, '-c', 'ls /proc/self/fd'], {
      cwd: place.workspace,
      env: place.env,
      stdio: ['ignore', 'pipe', 'inherit', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
    });
    const chunks: Buffer[] = [];
    child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk));
    await new Promise((done) => child.on('close', done));
    // 3 is the directory that ls reads.
    expect(Buffer.concat(chunks).toString().trim().split('\n')).toEqual(['0', '1', '2', '3']);
  });
});
