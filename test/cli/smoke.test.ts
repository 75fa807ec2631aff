import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it, onTestFinished } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { makeHold } from '../support/hold.ts';
import { expectNothingLeft, processesWith } from '../support/leftovers.ts';
import { expectOneLine, makePlace, serversOf, startCli } from './support.ts';
import { call, endServersOf } from './warm-support.ts';

// Each door of the built command line once, as a process: what the other tests of this folder call in their own process.
const place = makePlace();
const state = join(place.root, 'state');
/** Of the policy as it is built in. */
const env = { XDG_CONFIG_HOME: join(place.root, 'no-config'), XDG_STATE_HOME: state };
const judged = { ...place, env: { ...place.env, ...env } };
afterAll(async () => {
  await endServersOf(state);
  await expectNothingLeft(place);
  place.dispose();
});
const run = (...args: readonly string[]) => startCli(judged, args);

describe('sandbox-run', () => {
  it('runs a command in a sandbox, and ends as it does', async () => {
    const outside = join(place.root, 'outside');
    // Its words are not judged: the kernel refuses.
    const command = `echo out; echo err >&2; echo in > made; echo x > ${outside}; exit 7`;
    const ran = await startCli(place, ['-c', command]);
    expect(ran).toMatchObject({ exitCode: 7, stdout: 'out\n' });
    expect(ran.stderr).toContain('err\n');
    expect([existsSync(join(place.workspace, 'made')), existsSync(outside)]).toEqual([true, false]);
    const wrong = await run('--nope', 'true');
    expect([wrong.exitCode, wrong.stdout]).toEqual([125, '']);
    expectOneLine(wrong.stderr);
  });

  it('hands a signal on, and ends by it', async () => {
    const hold = makeHold(place.workspace);
    const running = run('-c', `echo begun; ${hold.words}`);
    await new Promise((done) => running.stdout.once('data', done));
    running.kill('SIGTERM');
    expect((await running).exitCode).toBe(143);
  });

  it('shows the plan with --dry-run, and runs nothing', async () => {
    const shown = await run('--dry-run', '--', 'touch', 'dry');
    expect(shown).toMatchObject({ exitCode: 0, stderr: '' });
    expect(shown.stdout).toContain('System calls refused');
    expect(existsSync(join(place.workspace, 'dry'))).toBe(false);
  });

  it('check judges', async () => {
    expect((await run('check', '--', 'ls')).stdout).toMatch(/^allow /);
    expect(await run('check', '-c', 'sudo ls')).toMatchObject({ exitCode: 126, stderr: '' });
  });

  it('doctor says what this host has', async () => {
    const { exitCode, stdout } = await run('doctor', '--json');
    expect([exitCode, JSON.parse(stdout).ok]).toEqual([0, true]);
  });

  it('policy init writes one that policy validate takes', async () => {
    const file = join(place.root, 'own.toml');
    expect(await run('policy', 'init', file)).toMatchObject({ exitCode: 0 });
    expect(await run('policy', 'validate', file)).toMatchObject({ exitCode: 0 });
    writeFileSync(file, '[limits]\nprocesses = 100\n', { mode: 0o600 });
    expect(await run('policy', 'validate', file)).toMatchObject({ exitCode: 0 });
    writeFileSync(file, '[limits]\nprocesses = "x"\n');
    expect((await run('policy', 'validate', file)).exitCode).not.toBe(0);
  });

  it('hook stops a tool call, and lets another one through', async () => {
    const decided = async (command: string) => {
      const event = {
        ...{ session_id: 's', cwd: place.workspace, hook_event_name: 'PreToolUse', tool_name: 'Bash' },
        ...{ tool_use_id: 't', tool_input: { command } },
      };
      const { stdout } = await startCli(judged, ['hook', 'claude-code'], { input: JSON.stringify(event) });
      return JSON.parse(stdout).hookSpecificOutput.permissionDecision;
    };
    expect([await decided('sudo ls'), await decided('ls')]).toEqual(['deny', 'allow']);
  });

  it('approvals answers a question that waits in the queue', async () => {
    const asking = run('--ask', 'queue', '--autonomy', 'supervised', '-c', 'touch asked');
    let id = '';
    await eventually(async () => {
      id = JSON.parse((await run('approvals', 'list', '--json')).stdout).id;
    });
    expect((await run('approvals', 'approve', id)).exitCode).toBe(0);
    expect((await asking).exitCode).toBe(0);
    expect(existsSync(join(place.workspace, 'asked'))).toBe(true);
  });

  it('audit has on record what ran', async () => {
    const policy = join(place.root, 'audited.toml');
    writeFileSync(policy, '[audit]\nenabled = true\n', { mode: 0o600 });
    expect((await run('--policy', policy, '--', 'echo', 'recorded')).exitCode).toBe(0);
    expect((await run('audit', 'search', '--text', 'recorded')).stdout).toContain('echo recorded');
    expect(await run('audit', 'verify')).toMatchObject({ exitCode: 0 });
  });

  it('session keeps a shell', async () => {
    const started = await run('session', 'start');
    expect(started).toMatchObject({ exitCode: 0, stderr: '' });
    const name = started.stdout.trim();
    await run('session', 'run', name, 'kept=1');
    expect((await run('session', 'run', name, 'echo $kept')).stdout).toBe('1\n');
    expect((await run('session', 'stop', name)).exitCode).toBe(0);
    await eventually(() => expect(processesWith(`--name\0${name}`)).toEqual([]), 60_000);
  });

  it('gate answers over a socket', async () => {
    const socket = join(place.root, 'gate.sock');
    const gate = run('gate', 'serve', '--socket', socket);
    onTestFinished(() => {
      gate.kill('SIGKILL');
    });
    await new Promise((done) => gate.stdout.once('data', done));
    const refused = await run('gate', 'check', '--socket', socket, '-c', 'sudo ls');
    expect(refused).toMatchObject({ exitCode: 126 });
    expect(refused.stdout).toMatch(/^deny {2}refused by the policy/);
    gate.kill('SIGTERM');
    expect((await gate).exitCode).toBe(0);
    expect(existsSync(socket)).toBe(false);
  });

  it('a warm server does the next call', async () => {
    expect(await call(judged, ['--warm', '--', 'true'])).toMatchObject({ exitCode: 0, stderr: '' });
    await eventually(() => expect(serversOf(state)).toHaveLength(1), 60_000);
    const next = await call(judged, ['--warm', '-c', 'echo warm; exit 3']);
    expect(next).toMatchObject({ exitCode: 3, stdout: 'warm\n' });
  });
});
