import { cpSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execa } from 'execa';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const CHECKOUT = fileURLToPath(new URL('../..', import.meta.url));

describe('a package in which files of options are missing or damaged', () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'options-of-programs-')));
  const workspace = join(root, 'workspace');
  const cli = join(root, 'package/dist/cli.cjs');
  const env = { PATH: process.env.PATH ?? '', HOME: join(root, 'home') };
  beforeAll(() => {
    mkdirSync(workspace);
    mkdirSync(env.HOME);
    cpSync(join(CHECKOUT, 'dist'), join(root, 'package/dist'), { recursive: true });
    for (const name of ['build', 'node_modules', 'package.json'])
      symlinkSync(join(CHECKOUT, name), join(root, 'package', name));
    const grammars = join(root, 'package/dist/grammars');
    for (const program of ['sort', 'git']) rmSync(join(grammars, `${program}.options.json`));
    truncateSync(join(grammars, 'uniq.options.json'), 40);
  });
  afterAll(() => rmSync(root, { recursive: true, force: true }));

  const run = (args: readonly string[], input = '') =>
    execa(process.execPath, [cli, ...args], { cwd: workspace, env, extendEnv: false, input, reject: false });

  // Of git the checks themselves read the options.
  it.each(['sort', 'uniq', 'git'])('runs no line with %s in it, and says what to do', async (program) => {
    for (const autonomy of ['autonomous', 'supervised']) {
      const text = `echo done > ran; ${program} ran`;
      const { exitCode, stdout, stderr } = await run(['--autonomy', autonomy, '--', 'sh', '-c', text]);
      expect([exitCode, stdout]).toEqual([125, '']);
      expect(stderr).toMatch(
        new RegExp(`^sandbox-run: the options of ${program} cannot be read, .*: install sandbox-run again$`),
      );
    }
    expect((await run(['--', 'ls'])).stdout).toBe('');
  });

  it.each(['sort', 'uniq', 'git'])('denies it to an agent', async (program) => {
    const call = {
      hook_event_name: 'PreToolUse',
      cwd: workspace,
      tool_name: 'Bash',
      tool_input: { command: `${program} a` },
    };
    const { stdout } = await run(['hook', 'claude-code'], JSON.stringify(call));
    expect(JSON.parse(stdout).hookSpecificOutput).toMatchObject({ permissionDecision: 'deny' });
  });

  it('runs what other programs are called for', async () => {
    const { exitCode, stdout } = await run(['--', 'sh', '-c', 'echo done | cat']);
    expect([exitCode, stdout]).toEqual([0, 'done']);
  });
});
