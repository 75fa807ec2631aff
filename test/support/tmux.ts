import { existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { expect } from 'vitest';
import { eventually } from './eventually.ts';

/** A terminal with somebody before it. */
export interface Pane {
  /** Types text, and keys by tmux's names: `Enter`, `C-c`, `Escape`. */
  type(text: string, ...keys: string[]): Promise<void>;
  keys(...keys: string[]): Promise<void>;
  screen(): Promise<string>;
  /** Waits until the screen shows this. */
  shows(pattern: RegExp | string): Promise<void>;
  /** Waits until the screen does not. */
  showsNot(pattern: RegExp | string): Promise<void>;
  resize(columns: number, rows: number): Promise<void>;
  close(): Promise<void>;
}

const PATIENCE_MS = 60_000;

/** Starts a program in a pane of a tmux server of its own. */
export async function openPane(
  argv: readonly string[],
  { cwd, env }: { readonly cwd: string; readonly env: Readonly<Record<string, string>> },
): Promise<Pane> {
  // Not beneath the place of the test, where nothing may be left: the server ends in its own time.
  const directory = mkdtempSync(join(realpathSync(tmpdir()), 'sandbox-run-tmux-'));
  const socket = join(directory, 'socket');
  const tmux = async (...args: string[]) =>
    (await execa('tmux', ['-S', socket, '-f', '/dev/null', ...args], { cwd, env, extendEnv: false })).stdout;
  await tmux('new-session', '-d', '-x', '90', '-y', '24', ...argv);
  // The line of tmux itself would take one row.
  await tmux('set-option', '-g', 'status', 'off');
  const screen = () => tmux('capture-pane', '-p', '-J');
  const shown = async (pattern: RegExp | string, wanted: boolean) => {
    const until = Date.now() + PATIENCE_MS;
    for (;;) {
      const now = await screen();
      const found = typeof pattern === 'string' ? now.includes(pattern) : pattern.test(now);
      if (found === wanted) return;
      if (Date.now() > until) {
        if (wanted) expect(now).toMatch(pattern);
        else expect(now).not.toMatch(pattern);
      }
      await new Promise((done) => setTimeout(done, 30));
    }
  };
  return {
    type: async (text, ...keys) => {
      await tmux('send-keys', '-l', text);
      if (keys.length > 0) await tmux('send-keys', ...keys);
    },
    keys: async (...keys) => {
      await tmux('send-keys', ...keys);
    },
    screen,
    shows: (pattern) => shown(pattern, true),
    showsNot: (pattern) => shown(pattern, false),
    resize: async (columns, rows) => {
      await tmux('resize-window', '-x', `${columns}`, '-y', `${rows}`);
    },
    close: async () => {
      // What ran in the pane is hung up, and may still write into its home then, as bash does with its history.
      const pid = await tmux('display-message', '-p', '#{pane_pid}').catch(() => undefined);
      await tmux('kill-server').catch(() => {});
      if (pid !== undefined) await eventually(() => expect(existsSync(`/proc/${pid}`)).toBe(false));
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
