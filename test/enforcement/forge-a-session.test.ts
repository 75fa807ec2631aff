import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createSandbox } from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { patience } from '../support/slow-host.ts';
import { HOST, sandboxIn, TIERS } from '../support/tiers.ts';

const arena = makeArena();
const sandbox = await createSandbox({
  workspace: arena.workspace,
  policyFiles: false,
  policy: { unsafe: { unjudged_commands: true }, limits: { kill_grace_seconds: 0.2 } },
});
afterAll(() => sandbox.close());

/** Opens every descriptor of the process above for reading and for writing; says what it got, and writes a report there. */
const OPENER = `
import os, sys
shell = os.getppid()
for name in sorted(os.listdir(f'/proc/{shell}/fd'), key=int):
    path = f'/proc/{shell}/fd/{name}'
    target = os.readlink(path)
    for mode, flags in ('read', os.O_RDONLY), ('write', os.O_WRONLY):
        try:
            fd = os.open(path, flags | os.O_NONBLOCK)
            if mode == 'write' and 'pipe' not in target: os.write(fd, b'\\0')
            print(mode, target.split(':')[0], 'opened')
        except OSError as error:
            print(mode, target.split(':')[0], error.strerror)
`;

describe('a program of the session', () => {
  it('cannot open the channel of its shell, by whatever way', async () => {
    await using shell = await sandbox.session();
    const { stdout, stderr } = await shell.run(`python3 -c '${OPENER.replaceAll("'", "'\\''")}'`);
    expect(stderr).toBe('');
    // Others of the shell's descriptors can be opened, so that the attack is one.
    expect(stdout).toContain('/dev/null opened');
    expect(stdout.split('\n').filter((line) => line.includes('socket'))).toEqual([
      'read socket No such device or address',
      'write socket No such device or address',
    ]);
    expect(await shell.run('echo alive')).toMatchObject({ status: 'exited', stdout: 'alive\n' });
  });

  it.each(TIERS)('cannot write the memory of its shell ($name)', async (tier) => {
    const options = {
      workspace: arena.workspace,
      policyFiles: false,
      policy: { unsafe: { unjudged_commands: true } },
    };
    await using other = await sandboxIn(tier, options);
    await using shell = await other.session();
    const open = (mode: string) =>
      `python3 -c 'import os; open("/proc/%d/mem" % os.getppid(), "${mode}")' 2>&1 | tail -1`;
    expect((await shell.run(open('r+b'))).stdout).toMatch(/Read-only file system|Permission denied/);
    // What is read there is of no use: there is no way to write to the channel.
    expect((await shell.run(open('rb'))).stdout).toBe('');
  });

  it.each(TIERS)('cannot trace its shell, nor take its descriptors ($name)', async (tier) => {
    const options = {
      workspace: arena.workspace,
      policyFiles: false,
      policy: { unsafe: { unjudged_commands: true } },
    };
    await using other = await sandboxIn(tier, options);
    const attack = `
import ctypes, errno, os, signal
libc = ctypes.CDLL(None, use_errno=True)
call = lambda *words: libc.syscall(*map(ctypes.c_long, words))
numbers = ${JSON.stringify(process.arch === 'arm64' ? { ptrace: 117, writev: 271, getfd: 438 } : { ptrace: 101, writev: 311, getfd: 438 })}
def say(name, result): print(name, 'ok' if result >= 0 else errno.errorcode[ctypes.get_errno()])
bytes = ctypes.create_string_buffer(8)
mine, theirs = (ctypes.c_size_t * 2)(ctypes.addressof(bytes), 8), (ctypes.c_size_t * 2)(16, 8)
parent, child = os.getppid(), os.fork()
if child == 0: signal.pause()
for name, pid in (('shell', parent), ('child', child)):
    say(name + ' getfd', call(numbers['getfd'], os.pidfd_open(pid), 0, 0))
    # EFAULT: it may, and nothing is there.
    say(name + ' writev', call(numbers['writev'], pid, ctypes.addressof(mine), 1, ctypes.addressof(theirs), 1, 0))
    say(name + ' seize', call(numbers['ptrace'], 0x4206, pid, 0, 0))
os.kill(pid, 9)
`;
    const command = `python3 -c '${attack.replaceAll("'", "'\\''")}'`;
    await using shell = await other.session();
    expect((await shell.run(command)).stdout.trim().split('\n')).toEqual([
      ...['shell getfd EPERM', 'shell writev EPERM', 'shell seize EPERM'],
      // A filter cannot tell the shell from others.
      ...['child getfd EPERM', 'child writev EPERM', 'child seize EPERM'],
    ]);
    expect(await shell.run('echo alive')).toMatchObject({ stdout: 'alive\n', restarted: false });
    // Without a shell that has a channel it is no attack.
    if (tier.landlockAbi === 0 || HOST.filtered) return;
    expect((await other.run(['bash', '-c', `${command}; true`])).stdout).toContain(
      'shell getfd ok\nshell writev EFAULT\nshell seize ok',
    );
  });

  it('inherits nothing of it', async () => {
    await using shell = await sandbox.session();
    const { stdout } = await shell.run(
      'python3 -c \'import os; print(sorted(os.listdir("/proc/self/fd"), key=int))\'',
    );
    // 3 is the directory that is listed.
    expect(stdout).toBe("['0', '1', '2', '3']\n");
  });

  it('changes nothing by output that looks like a report', async () => {
    await using shell = await sandbox.session();
    const fake =
      "printf '\\0T%032d\\0000\\0/\\n\\0' 0; printf '\\0T%032d.\\0' 0; printf '\\0T%032d.\\0' 0 >&2; exit 9";
    expect(await shell.run(`(${fake})`)).toMatchObject({ status: 'exited', exitCode: 9 });
    expect(await shell.run('echo alive')).toMatchObject({ stdout: 'alive\n', cwdAfter: arena.workspace });
  });
});

describe('code in the shell itself', () => {
  const EVERY = 'for fd in 10 11 12 13 14 15 16 17 18 19 20; do';

  it('that writes reports without the nonce is passed over', async () => {
    await using shell = await sandbox.session();
    const forged = `${EVERY} printf '\\0T0123\\0000\\0/etc\\n\\0/etc\\n\\0T0123.\\0' >&$fd; done 2>/dev/null; (exit 6)`;
    expect(await shell.run(forged)).toMatchObject({
      status: 'exited',
      exitCode: 6,
      cwdAfter: arena.workspace,
    });
    expect(await shell.run('echo alive')).toMatchObject({ stdout: 'alive\n', restarted: false });
  });

  it('that floods the channel costs the shell', { timeout: patience(20_000) }, async () => {
    await using shell = await sandbox.session();
    await shell.run('export KEPT=1');
    const before = process.memoryUsage().rss;
    const flood = `${EVERY} head -c 200000000 /dev/zero >&$fd; done 2>/dev/null`;
    const result = await shell.run(flood, { timeout: patience(10_000) });
    expect(result).toMatchObject({ status: 'signaled', signal: 'SIGKILL', restarted: true });
    expect(result.warnings.join()).toContain('wrote to the channel');
    expect(process.memoryUsage().rss - before).toBeLessThan(100 * 1024 * 1024);
    expect(await shell.run('echo alive $KEPT')).toMatchObject({ stdout: 'alive 1\n' });
  });

  it.each([
    'that closes the channel', // bash cannot give it back to itself
    'that reads the channel',
    'that replaces what reports',
  ])('%s costs the shell at most', { timeout: patience(20_000) }, async (what) => {
    await using shell = await sandbox.session();
    const attack = what.includes('closes')
      ? `${EVERY} eval "exec $fd>&-"; done 2>/dev/null`
      : what.includes('reads')
        ? `${EVERY} timeout 0.1 cat <&$fd; done 2>/dev/null`
        : 'builtin() { :; }; unset() { :; }; readonly -f builtin unset; readonly __turn=1';
    const result = await shell.run(attack, { timeout: patience(3_000) });
    expect(['exited', 'timed-out', 'signaled']).toContain(result.status);
    expect(await shell.run('echo alive', { timeout: patience(3_000) })).toMatchObject({ stdout: 'alive\n' });
  });

  it('that lies about its state is believed by nobody but itself: the kernel keeps it in', async () => {
    await using shell = await sandbox.session();
    await shell.run('pwd() { echo /etc; }; cd() { :; }; PWD=/etc');
    await shell.run(`echo x > ${arena.workspace}/../outside.txt; echo x > /etc/outside.txt`);
    expect(
      [join(arena.workspace, '../outside.txt'), '/etc/outside.txt'].filter((path) => existsSync(path)),
    ).toEqual([]);
    expect((await shell.run(':')).cwdAfter).toBe(arena.workspace);
  });
});
