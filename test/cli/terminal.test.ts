import { existsSync, rmSync } from 'node:fs';
import { execa } from 'execa';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { expectNothingLeft, processesWith } from '../support/leftovers.ts';
import { CLI, makePlace, PTY_DRIVER } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());
afterEach(() => expectNothingLeft(place));

type Step =
  | { readonly expect: string }
  | { readonly send: string }
  | { readonly resize: readonly [number, number] }
  | { readonly pause: number };

interface Conversation {
  readonly output: string;
  readonly failed: Step | null;
  readonly status: number | null;
}

/** Runs a program on a terminal of 24 lines and 80 columns. */
async function onTerminal(argv: readonly string[], steps: readonly Step[]): Promise<Conversation> {
  const input = JSON.stringify({ argv, cwd: place.workspace, env: place.env, size: [24, 80], steps });
  const { stdout } = await execa('python3', [PTY_DRIVER], { input });
  return JSON.parse(stdout);
}

const launcher = (...args: string[]) => [process.execPath, CLI, ...args];
/** The launcher as a job of an interactive shell. */
const shell = ['bash', '--norc', '--noprofile', '-i'];
const type = (...args: string[]): Step => ({
  send: `${launcher(...args)
    .map((word) => `'${word}'`)
    .join(' ')}\n`,
});

describe('on a terminal', () => {
  it('the command sees the terminal and its size', async () => {
    const talk = await onTerminal(
      launcher('-c', 'test -t 0 && test -t 1 && test -t 2 && echo is-a-tty; stty size'),
      [{ expect: 'is-a-tty' }, { expect: '24 80' }],
    );
    expect(talk).toMatchObject({ failed: null, status: 0 });
  });

  it('what is typed reaches the command', async () => {
    const talk = await onTerminal(launcher('-c', 'read -p "name? " name; echo "hello $name"'), [
      { expect: 'name\\? ' },
      { send: 'world\n' },
      { expect: 'hello world' },
    ]);
    expect(talk).toMatchObject({ failed: null, status: 0 });
  });

  it('Ctrl-C ends the command with 130', async () => {
    const mark = `${100_000 + process.pid}`;
    const talk = await onTerminal(launcher('-c', `echo ready; exec sleep ${mark}`), [
      { expect: 'ready' },
      { send: '\x03' },
    ]);
    expect(talk).toMatchObject({ failed: null, status: 130 });
    await eventually(() => expect(processesWith(mark)).toEqual([]));
  });

  it('Ctrl-\\ quits it', async () => {
    const talk = await onTerminal(launcher('sh', '-c', 'echo ready; exec sleep 100'), [
      { expect: 'ready' },
      { send: '\x1c' },
    ]);
    expect(talk).toMatchObject({ failed: null, status: 131 });
  });

  it('Ctrl-D is the end of input', async () => {
    const talk = await onTerminal(launcher('-c', 'echo ready; cat; echo ended'), [
      { expect: 'ready' },
      { send: 'line\n' },
      { expect: 'line\\r\\nline' },
      { send: '\x04' },
      { expect: 'ended' },
    ]);
    expect(talk).toMatchObject({ failed: null, status: 0 });
  });

  it('Ctrl-Z stops the job, fg continues it', async () => {
    const talk = await onTerminal(shell, [
      { send: 'PS1="prompt> "\n' },
      { expect: 'prompt> ' },
      type('-c', 'echo be""gin; until [ -e stopped ]; do sleep 0.05; done; echo fin""ished'),
      { expect: 'begin' },
      { send: '\x1a' },
      { expect: 'Stopped' },
      { expect: 'prompt> ' },
      { send: 'touch stopped\n' },
      { pause: 0.8 },
      { send: 'echo now""again; fg\n' },
      { expect: 'finished' },
      { expect: 'prompt> ' },
      { send: 'rm stopped; exit\n' },
    ]);
    expect(talk).toMatchObject({ failed: null });
    expect(talk.output.indexOf('finished')).toBeGreaterThan(talk.output.indexOf('nowagain'));
  });

  it('Ctrl-Z, bg lets it run on', async () => {
    const talk = await onTerminal(shell, [
      { send: 'PS1="prompt> "\n' },
      { expect: 'prompt> ' },
      type('-c', 'echo be""gin; until [ -e stopped ]; do sleep 0.05; done; echo fin""ished'),
      { expect: 'begin' },
      { send: '\x1a' },
      { expect: 'Stopped' },
      { send: 'touch stopped; bg\n' },
      { expect: 'finished' },
      { send: 'wait; rm stopped; exit\n' },
    ]);
    expect(talk).toMatchObject({ failed: null });
  });

  it('a new size reaches the command', async () => {
    const talk = await onTerminal(
      launcher('-c', 'trap "stty size; exit 0" WINCH; echo ready; while :; do sleep 0.05; done'),
      [{ expect: 'ready' }, { resize: [40, 132] }, { expect: '40 132' }],
    );
    expect(talk).toMatchObject({ failed: null, status: 0 });
  });

  it('input cannot be put into the terminal of the user', async () => {
    const attack = `
import fcntl, termios
for request in (termios.TIOCSTI, 0x100000000 | termios.TIOCSTI):
    try:
        fcntl.ioctl(0, request & 0xffffffff, b'x')
        print('injected')
    except OSError as error:
        print('refused', error.errno)
`;
    const talk = await onTerminal(launcher('python3', '-c', attack), [
      { expect: 'refused \\d+' },
      { expect: 'refused \\d+' },
    ]);
    expect(talk).toMatchObject({ failed: null, status: 0 });
    expect(talk.output).not.toContain('injected');
  });

  it('the terminal is as it was after a command that was ended in raw mode', async () => {
    const talk = await onTerminal(shell, [
      { send: 'PS1="prompt> "\n' },
      { expect: 'prompt> ' },
      type('python3', '-c', 'print(6 * 7)'),
      { expect: '42' },
      { expect: 'prompt> ' },
      { send: 'stty -a\n' },
      { expect: ' icanon' },
      { expect: ' echo ' },
      { send: 'exit\n' },
    ]);
    expect(talk).toMatchObject({ failed: null });
  });
});

describe('programs that draw on the terminal', () => {
  it('the python prompt', async () => {
    const talk = await onTerminal(launcher('python3', '-q'), [
      { expect: '>>> ' },
      { send: '6 * 7\n' },
      { expect: '42' },
      { send: 'exit()\n' },
    ]);
    expect(talk).toMatchObject({ failed: null, status: 0 });
  });

  it.skipIf(!existsSync('/usr/bin/less'))('less', async () => {
    const talk = await onTerminal(launcher('-c', 'seq 1000 | less'), [
      { expect: '\\n23' },
      { send: 'G' },
      { expect: '1000' },
      { send: 'q' },
    ]);
    expect(talk).toMatchObject({ failed: null, status: 0 });
  });

  it.skipIf(!existsSync('/usr/bin/vim'))('vim', async () => {
    const talk = await onTerminal(launcher('vim', '-u', 'NONE', '-n', 'note.txt'), [
      { expect: '~' },
      { pause: 0.2 },
      { send: 'ihello from vim\x1b:wq\n' },
    ]);
    expect(talk).toMatchObject({ failed: null, status: 0 });
    const written = await execa('cat', ['note.txt'], { cwd: place.workspace });
    expect(written.stdout).toBe('hello from vim');
  });

  it.skipIf(!existsSync('/usr/bin/tmux'))('tmux around the launcher', async () => {
    const socket = `sandbox-run-test-${process.pid}`;
    const tmux = (...args: string[]) =>
      execa('tmux', ['-L', socket, ...args], { cwd: place.workspace, env: place.env, extendEnv: false });
    try {
      await tmux(
        '-f',
        '/dev/null',
        'new-session',
        '-d',
        '-x',
        '90',
        '-y',
        '20',
        ...launcher('-c', 'stty size; exec sleep 100'),
      );
      await eventually(
        async () => expect((await tmux('capture-pane', '-p')).stdout).toMatch(/^(19|20) 90/m),
        20_000,
      );
      await tmux('send-keys', 'C-c');
    } finally {
      await tmux('kill-server').catch(() => {});
      // tmux keeps its socket in TMPDIR.
      rmSync(`${place.tmp}/tmux-${process.getuid?.()}`, { recursive: true, force: true });
    }
  });
});
