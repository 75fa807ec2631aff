import { readdirSync, readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { Sandbox } from '../../src/index.ts';
import { makeArena } from '../support/arena.ts';
import { eventually } from '../support/eventually.ts';
import { processesWith } from '../support/leftovers.ts';
import { talkTo } from '../support/talk.ts';
import { OLDEST_TIERS, TIERS, type Tier } from '../support/tiers.ts';
import { untilTimeOut } from '../support/time-out.ts';

const arena = makeArena();
const pty = { cols: 90, rows: 33 };
/** A shell for people. */
const BASH = ['bash', '--norc', '--noprofile', '-i'] as const;
const shellOptions = { pty, env: { PS1: 'prompt> ', INPUTRC: '/dev/null' } };
/** An argument that no other process has. */
let count = 0;
const mark = () => `${700_000 + (process.pid % 10_000) * 10 + count++}.5`;

/** Whether a process runs, in the foreground of its terminal (proc_pid_stat(5): state, pgrp, tpgid). */
function isInForeground(pid: number): boolean {
  const [state, , group, , , foreground] =
    readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return state !== 'T' && group === foreground;
}

const sandboxes = new Map<Tier, Promise<Sandbox>>();
function sandboxOn(tier: Tier): Promise<Sandbox> {
  const known = sandboxes.get(tier) ?? arena.sandbox(tier, { maxOutput: 20_000_000 });
  sandboxes.set(tier, known);
  return known;
}

describe.each([...TIERS, ...OLDEST_TIERS])('run on a terminal, $name', (tier) => {
  it('all three streams are the terminal, which has the size that was asked for', async () => {
    const sandbox = await sandboxOn(tier);
    const result = await sandbox.run('for fd in 0 1 2; do test -t $fd && echo -n $fd; done; stty size', {
      pty,
    });
    expect(result).toMatchObject({ status: 'exited', exitCode: 0, stdout: '01233 90\r\n', stderr: '' });
  });

  it('the command has a name for it, and it is its controlling terminal', async () => {
    const sandbox = await sandboxOn(tier);
    const result = await sandbox.run('test -c $(tty) && tty; echo this > /dev/tty; ps -o tty= $$', { pty });
    expect(result.stdout).toMatch(/^\/dev\/(pts\/\d+)\r\nthis\r\n\1\s*\r\n$/);
  });

  it.each([
    ['a time-out', 'sleep 77', { timeout: 200 }, undefined],
    ['a kill', 'sleep 77', {}, 'SIGKILL'],
    ['its end', ':', {}, undefined],
  ] as const)('one that nobody reads settles after %s', async (_, then, options, signal) => {
    const sandbox = await sandboxOn(tier);
    // More than is read for somebody who takes nothing; the rest has to fit into the terminal, which holds some 8 KiB.
    const length = then === ':' ? 1_050_000 : 5_000_000 + process.pid;
    const child = sandbox.spawn(`head -c ${length} /dev/zero; ${then}`, { pty, ...options });
    if (signal !== undefined) {
      await eventually(() => expect(processesWith(`head\0-c\0${length}`)).not.toEqual([]));
      child.kill(signal);
    }
    const result = await child.result;
    expect(result.status).not.toBe('canceled');
    child.terminal.destroy();
  });

  it('standard error is shown too', async () => {
    const sandbox = await sandboxOn(tier);
    const result = await sandbox.run('echo one; echo two >&2; exit 3', { pty });
    expect(result).toMatchObject({ exitCode: 3, stdout: 'one\r\ntwo\r\n', stderr: '' });
  });

  it('what is typed is echoed, and ends', async () => {
    const sandbox = await sandboxOn(tier);
    const lines = await sandbox.run('cat; echo end', { pty, input: 'one\ntwo\n' });
    expect(lines.stdout.match(/one|two/g)?.sort()).toEqual(['one', 'one', 'two', 'two']);
    expect(lines.stdout).toMatch(/end\r\n$/);
    const begun = await sandbox.run('cat | tr a-z A-Z; echo end', { pty, input: 'no newline' });
    expect(begun.stdout).toBe('no newlineNO NEWLINEend\r\n');
    expect((await sandbox.run('cat; echo end', { pty })).stdout).toBe('end\r\n');
  });

  it('a password is not echoed', async () => {
    const sandbox = await sandboxOn(tier);
    const shell = sandbox.spawn('read -s -p "secret? " s; echo; echo -n "$s" | wc -c; echo characters', {
      pty,
    });
    const talk = talkTo(shell);
    await talk.expect(/secret\? /);
    talk.type('hunter2\r');
    await talk.expect(/7\r\ncharacters/);
    expect(await shell.result).toMatchObject({ exitCode: 0 });
    expect(talk.shown()).not.toContain('hunter2');
  });

  it('job control works in a shell', async () => {
    const sandbox = await sandboxOn(tier);
    const shell = sandbox.spawn(BASH, shellOptions);
    const talk = talkTo(shell);
    const [first, second] = [mark(), mark()];
    await talk.expect(/prompt> /);
    talk.type(`sleep ${first}\r`);
    await eventually(() => expect(processesWith(first)).not.toEqual([]));
    talk.type('\x1a');
    await talk.expect(/Stopped +sleep/);
    await talk.expect(/prompt> /);
    talk.type('jobs; fg\r');
    await talk.expect(/Stopped +sleep/);
    await talk.expect(new RegExp(`sleep ${first}\r\n`));
    // bash names it before it hands over the terminal: until then, ^C would be for bash.
    await eventually(() => expect(processesWith(first).map(isInForeground)).toEqual([true]));
    talk.type('\x03');
    await talk.expect(/\^C/);
    await talk.expect(/prompt> /);
    await eventually(() => expect(processesWith(first)).toEqual([]));
    talk.type(`sleep ${second} &\r`);
    await talk.expect(/\[1\] \d+/);
    talk.type('echo status $?; jobs\r');
    await talk.expect(/status 0/);
    await talk.expect(/Running +sleep/);
    talk.type('exit 7\r');
    expect(await shell.result).toMatchObject({ status: 'exited', exitCode: 7, stdout: '', stderr: '' });
    await eventually(() => expect(processesWith(second)).toEqual([]));
  });

  it('a new size reaches the command', async () => {
    const sandbox = await sandboxOn(tier);
    const shell = sandbox.spawn('trap "stty size; exit 0" WINCH; echo ready; while :; do sleep 0.02; done', {
      pty,
    });
    const talk = talkTo(shell);
    await talk.expect(/ready/);
    expect(shell.resize(132, 50)).toBe(true);
    await talk.expect(/50 132/);
    expect(await shell.result).toMatchObject({ exitCode: 0 });
    expect(shell.resize(80, 24)).toBe(false);
  });

  it('10 MB come whole and in order, also to a reader that takes its time', async () => {
    const sandbox = await sandboxOn(tier);
    const wanted = `${Array.from({ length: 1_400_000 }, (_, index) => index + 1).join('\r\n')}\r\n`;
    expect(wanted.length).toBeGreaterThan(10_000_000);
    const command = sandbox.spawn('seq 1400000', { pty });
    let got = '';
    let pieces = 0;
    for await (const chunk of command.terminal) {
      got += chunk;
      if (++pieces % 100 === 0) await sleep(1);
    }
    expect(got === wanted).toBe(true);
    const captured = await sandbox.run('seq 1400000', { pty });
    expect(captured.outputBytes.stdout).toBe(wanted.length);
    expect(captured.stdout === wanted).toBe(true);
  });

  it('nothing of the end is lost, whatever its size', async () => {
    const sandbox = await sandboxOn(tier);
    for (let size = 1; size < 200_000; size = size * 2 + 7) {
      const result = await sandbox.run(['head', '-c', `${size}`, '/dev/zero'], { pty });
      expect(result.outputBytes.stdout).toBe(size);
    }
  });

  it('a command that closes its streams and opens the terminal again goes on', async () => {
    const sandbox = await sandboxOn(tier);
    const result = await sandbox.run('echo before; exec <&- >&- 2>&-; sleep 0.2; echo after > /dev/tty', {
      pty,
    });
    expect(result).toMatchObject({ exitCode: 0, stdout: 'before\r\nafter\r\n' });
  });

  it('what stays on the terminal does not keep the result', async () => {
    const sandbox = await sandboxOn(tier);
    const left = mark();
    const result = await sandbox.run(`trap "" HUP; sleep ${left} & setsid sleep ${left} & echo end`, { pty });
    expect(result).toMatchObject({ status: 'exited', exitCode: 0, stdout: 'end\r\n' });
    expect(result.durationMs).toBeLessThan(5000);
    await eventually(() => expect(processesWith(left)).toEqual([]));
  });

  it('a time-out ends a shell that ignores SIGTERM', async () => {
    const sandbox = await sandboxOn(tier);
    const inner = mark();
    // A shell takes its time until it ignores SIGTERM.
    const shown = await untilTimeOut(
      700,
      async (timeout) => {
        const shell = sandbox.spawn(BASH, { ...shellOptions, timeout });
        const talk = talkTo(shell);
        talk.type(`sleep ${inner}\r`);
        expect(await shell.result).toMatchObject({ status: 'timed-out' });
        await eventually(() => expect(processesWith(inner)).toEqual([]));
        return talk.shown();
      },
      (text) => text.includes('prompt> '),
    );
    expect(shown).toContain('prompt> ');
  });

  it('to destroy the stream hangs up', async () => {
    const sandbox = await sandboxOn(tier);
    const shell = sandbox.spawn('echo ready; sleep 100', { pty });
    await talkTo(shell).expect(/ready/);
    shell.terminal.destroy();
    expect(await shell.result).toMatchObject({ status: 'signaled', signal: 'SIGHUP' });
  });

  it('input cannot be put into the terminal, nor its driver changed', async () => {
    const sandbox = await sandboxOn(tier);
    const attack = `
import fcntl, termios
for name, request, argument in (('TIOCSTI', termios.TIOCSTI, b'x'), ('TIOCSETD', termios.TIOCSETD, b'\\2\\0\\0\\0'), ('TIOCLINUX', 0x541c, b'\\2')):
    try:
        fcntl.ioctl(0, request, argument)
        print(name, 'ok')
    except OSError as error:
        print(name, error.errno)
print('TIOCGWINSZ', len(fcntl.ioctl(0, termios.TIOCGWINSZ, b'12345678')))
`;
    const result = await sandbox.run(['python3', '-c', attack], { pty });
    expect(result.stdout).toBe('TIOCSTI 1\r\nTIOCSETD 1\r\nTIOCLINUX 1\r\nTIOCGWINSZ 8\r\n');
  });

  it('several terminals at once are apart', async () => {
    const sandbox = await sandboxOn(tier);
    const shells = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        sandbox.run(`echo ${index}; read line; echo "got $line"`, { pty, input: `line ${index}\n` }),
      ),
    );
    for (const [index, { stdout }] of shells.entries())
      expect(stdout).toMatch(new RegExp(`got line ${index}\r\n$`));
  });

  it('nothing of a terminal stays', async () => {
    const sandbox = await sandboxOn(tier);
    const descriptors = () => readdirSync('/proc/self/fd').length;
    const once = async () => {
      const shell = sandbox.spawn('echo x; cat', { pty });
      shell.terminal.end();
      expect(await text(shell.terminal)).toBe('x\r\n');
      await shell.result;
      await sandbox.run('true', { pty });
    };
    for (let round = 0; round < 3; round++) await once();
    const before = descriptors();
    for (let round = 0; round < 30; round++) await once();
    await eventually(() => expect(descriptors()).toBeLessThanOrEqual(before));
  });
});

describe('spawn on a terminal', () => {
  it('says whether the command began', async () => {
    const sandbox = await sandboxOn(TIERS[0] as Tier);
    const shell = sandbox.spawn('true', { pty });
    shell.terminal.resume();
    expect(await shell.launched).toBe(true);
    const missing = sandbox.spawn(['no-such-program'], { pty });
    missing.terminal.resume();
    expect(await missing.launched).toBe(false);
    expect(await missing.result).toMatchObject({ status: 'setup-failed' });
    expect(await text(missing.stderr)).toBe('');
  });

  it('typing to a command that has ended does nothing', async () => {
    const sandbox = await sandboxOn(TIERS[0] as Tier);
    const shell = sandbox.spawn('true', { pty });
    shell.terminal.resume();
    await shell.result;
    await new Promise<void>((done) => shell.terminal.write('x', () => done()));
    expect(shell.kill()).toBe(false);
  });

  it.each([
    [{ cols: 0, rows: 24 }],
    [{ cols: 80, rows: 65536 }],
    [{ cols: 80.5, rows: 24 }],
    [{ cols: 80 }],
    ['80x24'],
  ])('refuses %j as a size', async (size) => {
    const sandbox = await sandboxOn(TIERS[0] as Tier);
    expect(() => sandbox.spawn('true', { pty: size as typeof pty })).toThrow(/spawn: pty must be/);
    await expect(sandbox.run('true', { pty: size as typeof pty })).rejects.toThrow(/run: pty must be/);
  });

  it('a size that is none is no new size', async () => {
    const sandbox = await sandboxOn(TIERS[0] as Tier);
    const shell = sandbox.spawn('sleep 100', { pty });
    expect(() => shell.resize(80, 0)).toThrow(/from 1 to 65535/);
    shell.kill('SIGKILL');
    expect(await shell.result).toMatchObject({ signal: 'SIGKILL' });
  });

  it("does not go with stdio: 'inherit'", async () => {
    const sandbox = await sandboxOn(TIERS[0] as Tier);
    await expect(sandbox.run('true', { pty, stdio: 'inherit' })).rejects.toThrow(
      /pty is for captured output/,
    );
  });

  it('TERM is set where nobody has', async () => {
    const sandbox = await sandboxOn(TIERS[0] as Tier);
    const unset = await sandbox.run('echo $TERM', { pty, env: { TERM: undefined } });
    expect(unset.stdout).toBe('xterm-256color\r\n');
    expect((await sandbox.run('echo $TERM', { pty, env: { TERM: 'vt100' } })).stdout).toBe('vt100\r\n');
    expect((await sandbox.run('echo $TERM', { env: { TERM: undefined } })).stdout).toBe('dumb\n');
  });
});
