import { beforeAll, describe, expect, it } from 'vitest';
import { makeArena } from '../support/arena.ts';
import { bundleLauncher } from '../support/launcher.ts';
import { compile, PROGRAMS, unconfined } from '../support/sandboxee.ts';
import { stateOf, TIERS } from '../support/tiers.ts';

const injector = compile(
  'inject-input',
  `
  int main() {
    for (int fd = 0; fd < 3; fd++) {
      char name[32], subcode = 2;
      sprintf(name, "tiocsti:%d", fd);
      TRY(name, ioctl(fd, TIOCSTI, "!"));
      sprintf(name, "tiocsti-high-bits:%d", fd);
      TRY(name, syscall(SYS_ioctl, fd, 0x100000000ull | TIOCSTI, "!"));
      sprintf(name, "tioclinux:%d", fd);
      TRY(name, ioctl(fd, 0x541c, &subcode));
      sprintf(name, "line-discipline:%d", fd);
      TRY(name, ioctl(fd, TIOCSETD, &(int){0}));
      sprintf(name, "take-terminal:%d", fd);
      TRY(name, ioctl(fd, TIOCSCTTY, 1));
      sprintf(name, "foreground:%d", fd);
      TRY(name, ioctl(fd, TIOCSPGRP, &(int){getpid()}));
    }
    TRY("controlling-terminal", open("/dev/tty", O_RDWR));
    SAY("is-a-terminal", isatty(0) && isatty(1) ? "ok" : "no");
    return 0;
  }`,
);

/** Runs its arguments on a terminal of their own, as a terminal emulator would, and prints what comes out but for the typed `!`. */
const TERMINAL = `
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
out = b''
while True:
    try:
        data = os.read(fd, 4096)
    except OSError:
        break
    if not data:
        break
    out += data
os.waitpid(pid, 0)
sys.stdout.write(out.decode().replace('\\r', '').replace('!', ''))
`;

describe('typing into the terminal of the user', () => {
  const arena = makeArena();
  let launcher = '';
  beforeAll(async () => {
    launcher = await bundleLauncher();
  });

  it('is possible without a sandbox, unless the kernel forbids it to all', async () => {
    const trace = await unconfined(['/usr/bin/python3', '-c', TERMINAL, injector]);
    expect(trace.results['is-a-terminal']).toBe('ok');
    expect(trace.results['controlling-terminal']).toBe('ok');
    // EIO: dev.tty.legacy_tiocsti = 0.
    expect(['ok', 'EIO']).toContain(trace.results['tiocsti:0']);
  });

  it.each(TIERS)('fails on inherited descriptors: $name', async (tier) => {
    const task = {
      tier: tier.name,
      options: { workspace: arena.workspace, readable: [PROGRAMS] },
      argv: [injector],
      run: { stdio: 'inherit' },
    };
    const trace = await unconfined([
      ...(['/usr/bin/python3', '-c', TERMINAL, process.execPath, launcher] as const),
      JSON.stringify(task),
    ]);
    expect(trace.results['is-a-terminal']).toBe('ok');
    const { 'is-a-terminal': _, ...attacks } = trace.results;
    expect(Object.keys(attacks)).toHaveLength(19);
    expect(Object.entries(attacks).filter(([, outcome]) => outcome === 'ok')).toEqual([]);
    for (const fd of [0, 1, 2]) {
      for (const name of ['tiocsti', 'tiocsti-high-bits', 'tioclinux', 'line-discipline']) {
        expect([name, attacks[`${name}:${fd}`]]).toEqual([name, 'EPERM']);
      }
    }
    const sandbox = await arena.sandbox(tier);
    expect(stateOf(sandbox, 'terminal-injection')).toBe('enforced');
  });

  it.each(TIERS)('on a terminal of its own, it has that one and no other: $name', async (tier) => {
    const sandbox = await arena.sandbox(tier);
    const { stdout } = await sandbox.run([injector], { pty: { cols: 80, rows: 24 } });
    const outcomes = Object.fromEntries(stdout.split('\r\n').map((line) => line.split(/[= ]/)));
    for (const fd of [0, 1, 2]) {
      for (const name of ['tiocsti', 'tiocsti-high-bits', 'tioclinux', 'line-discipline'])
        expect([name, outcomes[`${name}:${fd}`]]).toEqual([name, '1']);
    }
    expect(outcomes['controlling-terminal']).toBe('ok');
    // No descriptor of the launcher's end, or of the terminal of these tests.
    const descriptors = await sandbox.run('ls /proc/self/fd | wc -l', { pty: { cols: 80, rows: 24 } });
    expect(descriptors.stdout.trim()).toBe('4');
  });

  it.each(TIERS.filter((tier) => tier.view))('leaves terminals of its own: $name', async (tier) => {
    const sandbox = await arena.sandbox(tier);
    const result = await sandbox.run(['/usr/bin/python3', '-c', TERMINAL, '/bin/sh', '-c', 'tty; echo done']);
    expect(result.stdout).toMatch(/^\/dev\/pts\/\d+\ndone\n$/);
  });
});
