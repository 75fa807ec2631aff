import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { assembleFilter } from '../../../../../src/confine/kernel/seccomp/assemble.ts';
import {
  buildFilter,
  type SeccompNeeds,
  seccompGroupsFor,
} from '../../../../../src/confine/kernel/seccomp/filter.ts';
import { lacks } from '../../../../support/programs.ts';

const architecture = process.arch === 'arm64' ? 'arm64' : 'x64';

describe('a filter in the running kernel', () => {
  let directory = '';

  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'seccomp-test-'));
    const source = fileURLToPath(new URL('seccomp-probe.c', import.meta.url));
    execFileSync('gcc', ['-O1', '-w', '-o', join(directory, 'probe'), source]);
  });

  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  function run(needs: SeccompNeeds, ...command: readonly string[]) {
    const filter = join(directory, 'filter');
    writeFileSync(filter, assembleFilter(buildFilter(seccompGroupsFor(needs)), architecture).bytes);
    const options = { cwd: directory, encoding: 'utf8', input: '' } as const;
    return spawnSync(join(directory, 'probe'), [filter, ...command], options);
  }

  function probe(needs: SeccompNeeds): ReadonlyMap<string, string> {
    const { stdout, stderr, status } = run(needs);
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
    const lines = stdout.trim().split('\n');
    return new Map(lines.map((line) => [line.split(' ')[0] ?? '', line.split(' ').slice(1).join(' ')]));
  }

  const [OK, EPERM, EACCES, EINVAL, ENOSYS, EAFNOSUPPORT] = ['0', '1', '13', '22', '38', '97'];

  it('gives each call the error of its group', () => {
    const results = probe({
      network: 'refused',
      unixSockets: 'allowed',
      tracing: 'own-but-exits',
      ipcObjects: 'own',
    });
    expect(Object.fromEntries(results)).toMatchObject({
      io_uring_setup: ENOSYS,
      keyctl: EPERM,
      unshare: EPERM,
      'clone-newuser': EPERM,
      clone3: ENOSYS,
      tiocsti: EPERM,
      personality: EPERM,
      'personality-get': OK,
      'socket-inet': EACCES,
      'socket-raw': EACCES,
      'socket-vsock': EAFNOSUPPORT,
      'socket-audit': EACCES,
      'socket-route': OK,
      'socket-unix': OK,
      socketpair: OK,
      'too-new': ENOSYS,
      'ptrace-seize': EPERM,
      'ptrace-trace-exit': EINVAL,
      getpid: OK,
      fionread: OK,
    });
  });

  it.runIf(architecture === 'x64')('has no other way in by x32 or 32-bit calls', () => {
    const results = probe({ network: 'isolated', unixSockets: 'refused', tracing: 'own', ipcObjects: 'own' });
    expect(results.get('x32-getpid')).toBe(ENOSYS);
    // SIGSYS from the filter; SIGSEGV where the kernel has no 32-bit calls.
    expect(['signal 31', 'signal 11']).toContain(results.get('int80-getpid'));
    expect(results.get('socket-inet')).toBe(OK);
    expect(results.get('socket-unix')).toBe(EACCES);
    expect(results.get('socketpair')).toBe(OK);
  });

  it.each([
    [
      'node',
      '-e',
      'require("fs").promises.readdir("/").then(() => console.log(require("os").networkInterfaces() !== null))',
    ],
    ['node', '-e', 'new (require("worker_threads").Worker)("console.log(1)", {eval: true})'],
    ['npm', '--version'],
    ...(lacks('python3')
      ? []
      : [
          [
            'python3',
            '-c',
            'import multiprocessing as m, threading\nwith m.Pool(2) as p: print(p.map(abs, [-1, 2]))',
          ],
        ]),
    [
      'bash',
      '-c',
      'git init -q r && cd r && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && git log | cat',
    ],
    ['bash', '-c', 'printf "int main(){return 0;}" > a.c && gcc -o a a.c && ./a && tar cf - a.c | tar tf -'],
    ['bash', '-c', '(echo a; sleep 0.01) | cat & wait; echo done'],
  ])('lets %s run: %s %s', (...command) => {
    const { stdout, stderr, status } = run(
      { network: 'refused', unixSockets: 'refused', tracing: 'own', ipcObjects: 'own' },
      ...command,
    );
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
    expect(stdout).not.toBe('');
  });

  it('lets setarch switch off the randomization of addresses, unless another filter refuses it already', () => {
    const command = ['setarch', '-R', 'echo', 'done'] as const;
    const needs = { network: 'refused', unixSockets: 'refused', tracing: 'own', ipcObjects: 'own' } as const;
    const { stdout, stderr, status } = run(needs, ...command);
    const filtered = /^Seccomp:\s+2$/m.test(readFileSync('/proc/self/status', 'utf8'));
    // Docker's does.
    const { stdout: outside, status: there } = spawnSync(command[0], command.slice(1), { encoding: 'utf8' });
    if (filtered && there !== 0) expect({ stdout, status }).toEqual({ stdout: outside, status: there });
    else expect({ stdout, stderr, status }).toEqual({ stdout: 'done\n', stderr: '', status: 0 });
  });
});
