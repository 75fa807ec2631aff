import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it } from 'vitest';
import { LIBRARY } from '../library/support.ts';
import { eventually } from '../support/eventually.ts';
import { expectNothingLeft, processesWith } from '../support/leftovers.ts';
import { hookProcess } from './hook-process.ts';
import { connectTo, makeMcpPlace, textOf } from './mcp-client.ts';
import { makeShellPlace, runProgram } from './sandbox-sh-support.ts';
import { makeServeWorld } from './serve-world.ts';

// Each door except the command line once, as it is built. The other tests of test/integration and test/library have the rest.
const place = makeShellPlace();
const outside = join(place.root, 'outside');
const judged = { XDG_CONFIG_HOME: join(place.root, 'no-config'), XDG_STATE_HOME: join(place.root, 'state') };
/** Says something, writes inside, tries to write outside, and ends with 7. */
const COMMAND = `echo out; echo err >&2; echo in > made; echo x > ${outside}; exit 7`;
afterAll(async () => {
  await expectNothingLeft(place);
  place.dispose();
});

describe('sandbox-sh', () => {
  it('runs a command in a sandbox', async () => {
    const ended = await runProgram(place, [place.shell, '-c', COMMAND]);
    expect(ended).toMatchObject({ status: 7, stdout: 'out\n' });
    expect([existsSync(join(place.workspace, 'made')), existsSync(outside)]).toEqual([true, false]);
  });

  it('runs a script from its standard input', async () => {
    const ended = await runProgram(place, [place.shell], { input: 'echo one\necho two; exit 3\n' });
    expect(ended).toMatchObject({ status: 3, stdout: 'one\ntwo\n' });
  });

  it('refuses what the policy refuses', async () => {
    const ended = await runProgram(place, [place.shell, '-c', 'sudo ls'], { env: judged });
    expect(ended).toMatchObject({ status: 126, stdout: '' });
  });
});

describe('the library', () => {
  /** A program that uses it as packages do; `body` has a sandbox and prints. */
  const program = (body: string, env = {}) => {
    const file = join(place.root, 'uses-library.mjs');
    const lines = [
      `import { createSandbox } from ${JSON.stringify(pathToFileURL(LIBRARY).href)};`,
      `const sandbox = await createSandbox({ workspace: ${JSON.stringify(place.workspace)} });`,
      body,
      'await sandbox.close();',
    ];
    writeFileSync(file, lines.join('\n'));
    return runProgram(place, [process.execPath, file], { env });
  };
  const print = (command: string, options = {}) =>
    `const { status, exitCode, stdout } = await sandbox.run(${JSON.stringify(command)}, ${JSON.stringify(options)});\n` +
    'console.log(JSON.stringify([status, exitCode, stdout]));';

  it('runs a command in a sandbox, and tells how it ended', async () => {
    const { status, stdout, stderr } = await program(print(COMMAND));
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    expect(JSON.parse(stdout)).toEqual(['exited', 7, 'out\n']);
    expect(existsSync(outside)).toBe(false);
  });

  it('ends a command that outlives its time limit', async () => {
    expect(JSON.parse((await program(print('sleep 1000', { timeout: 200 }))).stdout)[0]).toBe('timed-out');
  });

  it('refuses what the policy refuses', async () => {
    expect(JSON.parse((await program(print('sudo ls'), judged)).stdout)[0]).toBe('denied');
  });
});

describe('sandbox-run hook', () => {
  const call = (command: string, args: readonly string[]) =>
    hookProcess(place, ['claude-code', '--mode', 'rewrite', ...args], {
      env: { ...judged, CLAUDE_PROJECT_DIR: place.workspace },
      input: JSON.stringify({
        session_id: 'smoke',
        cwd: place.workspace,
        hook_event_name: 'PreToolUse',
        tool_name: 'Bash',
        tool_input: { command },
        tool_use_id: 'one',
      }),
    });
  const answerTo = async (command: string, args: readonly string[] = []) =>
    JSON.parse((await call(command, args)).stdout).hookSpecificOutput;

  it('has a command run in the sandbox', async () => {
    // What the file says no check sees: the kernel holds it.
    writeFileSync(join(place.workspace, 'act.sh'), COMMAND);
    const { permissionDecision, updatedInput } = await answerTo('sh act.sh');
    expect(permissionDecision).toBe('allow');
    const ended = await runProgram(place, ['bash', '-c', updatedInput.command], { env: judged });
    expect(ended).toMatchObject({ status: 7, stdout: 'out\n' });
    expect(existsSync(outside)).toBe(false);
  });

  it('refuses what the policy refuses', async () => {
    expect((await answerTo('sudo ls')).permissionDecision).toBe('deny');
  });

  it('asks a plug-in by the name that the agent has for its tool, once for the hook and the run that follows', async () => {
    const [plugin, policy, seen] = ['plugin.mjs', 'plugin.toml', 'seen'].map((name) =>
      join(place.root, name),
    ) as [string, string, string];
    const text = `import { appendFileSync } from 'node:fs';
      export const before_tool_use = (name, { command }) => (appendFileSync(${JSON.stringify(seen)}, name + ' ' + command + '\\n'), {});`;
    writeFileSync(plugin, text, { mode: 0o600 });
    writeFileSync(policy, `[[hooks.plugins]]\npath = ${JSON.stringify(plugin)}\n`, {
      mode: 0o600,
    });
    const { permissionDecision, updatedInput } = await answerTo('echo out', ['--policy', policy]);
    expect(permissionDecision).toBe('allow');
    const ended = await runProgram(place, ['bash', '-c', updatedInput.command], { env: judged });
    expect(ended).toMatchObject({ status: 0, stdout: 'out\n' });
    expect(readFileSync(seen, 'utf8')).toBe('Bash echo out\n');
  });
});

describe('sandbox-run mcp', () => {
  it('runs a command for a client', async () => {
    const mcp = makeMcpPlace();
    const { client, shell, errors } = await connectTo(mcp);
    const ran = await shell('echo out; exit 7');
    expect(textOf(ran)).toContain('out');
    expect(ran.structuredContent).toMatchObject({ status: 'exited', exitCode: 7, stdout: 'out\n' });
    const read = await shell(`cat ${join(mcp.outside, 'secret.txt')}; true`);
    expect(read.structuredContent).not.toMatchObject({ stdout: expect.stringContaining('the-secret') });
    expect(errors).toEqual([]);
    await client.close();
    mcp.dispose();
  });
});

describe('sandbox-run serve', () => {
  const world = makeServeWorld();

  it('runs a command for a client, and ends what runs when it is told to end', async () => {
    const { child, client } = world.stdio();
    await client.initialize();
    const ran = await client.call('run', { command: 'echo out; exit 7' });
    expect(ran).toMatchObject({ status: 'exited', exitCode: 7, stdout: 'out\n' });
    const mark = join(world.place.root, 'mark');
    await client.call('spawn', { command: ['bash', '-c', 'sleep 3600; :', mark] });
    await eventually(() => expect(processesWith(mark)).not.toEqual([]));
    child.kill('SIGTERM');
    expect(await child).toMatchObject({ exitCode: 0, stderr: '' });
    expect(processesWith(mark)).toEqual([]);
  });
});
