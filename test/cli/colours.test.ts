import { execa } from 'execa';
import { afterAll, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { processesWith } from '../support/leftovers.ts';
import { CLI, cli, makePlace } from './support.ts';

const place = makePlace();
afterAll(() => place.dispose());

const ESCAPE = '\u001b[';
/** Where a line of progress begins, and where it is taken away. */
const START = `\r${ESCAPE}K`;
const PATIENCE_MS = 90_000;

const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;
const launcher = (...args: string[]) => [process.execPath, CLI, ...args].map(quoted).join(' ');

/** Starts a shell command on a terminal of its own, of 60 columns, which it shows on standard output. */
const startOnTerminal = (command: string, env: Readonly<Record<string, string>> = {}) =>
  execa('script', ['-qec', `stty cols 60 rows 40; ${command}`, '/dev/null'], {
    cwd: place.workspace,
    env: { ...place.env, SHELL: '/bin/bash', ...env },
    extendEnv: false,
    stdin: 'ignore',
    reject: false,
  });

/** What a command shows on a terminal until it ends. */
async function onTerminal(command: string, env: Readonly<Record<string, string>> = {}): Promise<string> {
  return (await startOnTerminal(command, env)).stdout;
}

/** Whether a process was still there to get a signal. */
function signaled(pid: number, signal: 'SIGSTOP' | 'SIGCONT'): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** The same without lines of progress, which a busy machine may show or not. */
const settled = (shown: string) => shown.split(START).at(-1) ?? '';

const CHECK = ['check', '-c', 'touch /etc/shadow'];
const SOME = [CHECK, ['examples', 'doctor'], ['--nope'], ['doctor']];

describe(
  'colours',
  () => {
    it('are on a terminal', async () => {
      expect(await onTerminal(launcher(...CHECK))).toContain(`${ESCAPE}31mdeny${ESCAPE}0m`);
      expect(await onTerminal(launcher('examples', 'doctor'))).toContain(`${ESCAPE}1mdoctor${ESCAPE}0m`);
      expect(await onTerminal(launcher('--nope'))).toContain(`${ESCAPE}1msandbox-run:${ESCAPE}0m unknown`);
      expect(await onTerminal(launcher('doctor'))).toContain(`${ESCAPE}32myes`);
    });

    it.each([
      ['NO_COLOR', { NO_COLOR: '1' }, SOME],
      ['NO_COLOR, whatever it says', { NO_COLOR: '0' }, SOME.slice(0, 1)],
      ['a terminal that is dumb', { TERM: 'dumb' }, SOME.slice(0, 1)],
      [
        'NO_COLOR, though somebody wants to force them',
        { NO_COLOR: '1', FORCE_COLOR: '1', CLICOLOR_FORCE: '1' },
        SOME.slice(0, 1),
      ],
    ])('are not there with %s', async (_, env, calls) => {
      for (const args of calls) {
        const shown = settled(await onTerminal(launcher(...args), env));
        expect(shown).toContain(args === SOME[0] ? 'deny' : 'sandbox-run');
        expect(shown).not.toContain('\u001b');
      }
    });

    it('are there with an empty NO_COLOR', async () => {
      expect(await onTerminal(launcher(...CHECK), { NO_COLOR: '' })).toContain(ESCAPE);
    });

    it.each([
      ['standard output', '>', CHECK],
      ['standard error', '2>', ['--nope']],
    ])('are not in a file, where only %s is one', async (_, redirect, args) => {
      const command = `${launcher(...args)} ${redirect} out; cat -v out; rm out`;
      const shown = await onTerminal(command, { FORCE_COLOR: '1', CLICOLOR_FORCE: '1' });
      expect(shown).toMatch(/deny|unknown option/);
      expect(shown).not.toContain('^[');
    });

    it('are not in pipes, though somebody wants to force them', async () => {
      const env = { FORCE_COLOR: '1', CLICOLOR_FORCE: '1' };
      for (const args of [...SOME, ['--help']]) {
        const { stdout, stderr } = await cli(place, args, { env });
        expect(stdout + stderr).not.toContain('\u001b');
      }
    });

    it('are not in JSON, also on a terminal', async () => {
      for (const args of [CHECK, ['doctor']]) {
        const shown = settled(await onTerminal(launcher(...args, '--json')));
        expect(shown).not.toContain('\u001b');
        expect(JSON.parse(shown)).toBeTypeOf('object');
      }
    });

    it('do not let text of others give orders to the terminal', async () => {
      const evil = 'x\u001b]0;owned\u0007\u001b[31m';
      for (const args of [['check', '--', 'touch', `/srv/${evil}`], [`--${evil}`]]) {
        const shown = await onTerminal(launcher(...args));
        expect(shown).not.toContain('\u001b]0;');
        expect(shown).toContain('\\u{1b}]0;owned');
      }
    });
  },
  PATIENCE_MS,
);

describe(
  'progress',
  () => {
    const attack = ['doctor', '--attack'];

    it('is a line on a terminal that is written over and taken away', async () => {
      // Under a second there is none: an attack is stopped until it has been told.
      const showing = startOnTerminal(launcher(...attack));
      let told = '';
      showing.stdout.on('data', (bytes) => {
        told += String(bytes);
      });
      let stopped: number | undefined;
      await eventually(() => {
        stopped ??= processesWith(place.tmp).find((pid) => signaled(pid, 'SIGSTOP'));
        expect(told).toContain('attacking');
      }, 60_000).finally(() => {
        if (stopped !== undefined) signaled(stopped, 'SIGCONT');
      });
      const shown = (await showing).stdout;
      const [before, ...written] = shown.split(START);
      expect(before).toBe('');
      const rest = written.pop();
      // Then it is taken away, and the table comes.
      expect(rest).toMatch(/profile workspace-write/);
      expect(rest).not.toContain('attacking');
      expect(written.length).toBeGreaterThan(0);
      for (const line of written) {
        expect(line).toMatch(/^sandbox-run: attacking/);
        // One that is as wide as the terminal would be wrapped, and stay.
        expect(line.length).toBeLessThan(60);
      }
    });

    // That it is nothing where nobody looks, doctor-attack.test.ts shows.
    it('is nothing on a terminal that is dumb', async () => {
      const dumb = await onTerminal(launcher(...attack), { TERM: 'dumb' });
      expect(dumb).toContain('profile workspace-write');
      expect(dumb).not.toContain('attacking');
      expect(dumb).not.toContain('\u001b');
    });
  },
  PATIENCE_MS,
);
