import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { cli, makePlace, startCli } from '../cli/support.ts';
import { connectTo, makeMcpPlace, textOf } from '../integration/mcp-client.ts';
import { makeServeWorld } from '../integration/serve-world.ts';
import { HOST } from '../support/tiers.ts';

// Each door says in one line what a command took away that only undo brings back, and asks where nothing does.

const describe_ = describe.skipIf(!HOST.namespaces);
const GONE = '1 file gone that version control does not have. If that was not meant';

describe_('work that a command loses (needs namespaces)', () => {
  const place = makePlace();
  afterAll(() => place.dispose());
  const state = join(place.root, 'state');
  const env = { XDG_CONFIG_HOME: join(place.root, 'no-config'), XDG_STATE_HOME: state };
  const notes = join(place.workspace, 'notes');
  beforeEach(() => writeFileSync(notes, 'mine\n'));
  const run = (...args: readonly string[]) => cli(place, args, { env });
  const isThere = () => existsSync(notes);

  it('a person is told in one line, and the line that is said brings it back', async () => {
    expect(await run('rm', 'notes')).toMatchObject({
      exitCode: 0,
      stderr: 'sandbox-run: 1 file gone: sandbox-run undo\n',
    });
    expect(isThere()).toBe(false);
    expect(await run('undo')).toMatchObject({ exitCode: 0 });
    expect(readFileSync(notes, 'utf8')).toBe('mine\n');
    expect(await run('--quiet', 'rm', 'notes')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(await run('undo')).toMatchObject({ exitCode: 0 });
  });

  it('a model is told in one line, JSON has it, and check says that it runs', async () => {
    const { exitCode, stderr } = await run('--for-model', '-c', 'rm notes');
    expect([exitCode, stderr]).toEqual([0, expect.stringContaining(GONE)]);
    await run('undo');
    const { stdout } = await run('--json', '-c', 'rm notes');
    expect(JSON.parse(stdout)).toMatchObject({
      changes: { gone: { files: 1, changes: 0, history: false } },
      messageForModel: expect.stringContaining(GONE),
    });
    await run('undo');
    const checked = JSON.parse((await run('check', '--json', '-c', 'rm notes')).stdout);
    expect(checked).toMatchObject({ verdict: 'allow' });
    expect(checked.reasons).toContainEqual(
      expect.objectContaining({ check: 'losses', code: 'undoable', verdict: 'allow' }),
    );
    expect(isThere()).toBe(true);
  });

  it('undo = "never" brings the question back', async () => {
    const policy = join(place.root, 'never.toml');
    writeFileSync(policy, '[workspace]\nundo = "never"\n');
    const refused = await run('--policy', policy, 'rm', 'notes');
    expect([refused.exitCode, isThere()]).toEqual([126, true]);
    expect(refused.stderr).toContain('rm would delete notes');
  });

  it('a state directory that holds no layer brings the question back, and says why', async () => {
    // The parent of all change sets is no directory.
    const broken = join(place.root, 'broken');
    mkdirSync(join(broken, 'sandbox-run'), { recursive: true, mode: 0o700 });
    writeFileSync(join(broken, 'sandbox-run/changes'), '');
    const inBroken = { ...env, XDG_STATE_HOME: broken };
    const { exitCode, stderr } = await cli(place, ['rm', 'notes'], {
      env: inBroken,
    });
    expect([exitCode, isThere()]).toEqual([126, true]);
    expect(stderr).toMatch(/what commands change cannot be taken back now: .*changes/);
    expect(stderr).toContain('rm would delete notes');
    expect((await cli(place, ['--approved', 'rm', 'notes'], { env: inBroken })).exitCode).toBe(0);
    expect(isThere()).toBe(false);
  });

  it('a process that is killed while its command runs has taken nothing away', async () => {
    const running = startCli(
      { ...place, env: { ...place.env, ...env } },
      ['-c', 'rm notes; echo removed; read'],
      { stdin: 'pipe' },
    );
    await once(running.stdout, 'data');
    running.kill('SIGKILL');
    await running;
    expect(readFileSync(notes, 'utf8')).toBe('mine\n');
    expect(await run('-c', 'cat notes')).toMatchObject({ exitCode: 0, stdout: 'mine\n', stderr: '' });
  });

  describe('hooks', () => {
    const ask = async (mode: string, more: object = {}) => {
      const input = {
        ...{ hook_event_name: 'PreToolUse', tool_name: 'Bash', session_id: 's1', cwd: place.workspace },
        tool_input: { command: 'rm notes', ...more },
      };
      const { stdout } = await startCli(place, ['hook', 'claude-code', '--mode', mode], {
        input: JSON.stringify(input),
        env,
      });
      return JSON.parse(stdout).hookSpecificOutput;
    };
    const runRewritten = (command: string) =>
      execa('bash', ['-c', command], {
        cwd: place.workspace,
        env: { ...place.env, ...env },
        extendEnv: false,
        reject: false,
      });

    it('of mode rewrite let it run, and the model is told', async () => {
      const answer = await ask('rewrite');
      expect(answer.permissionDecision).toBe('allow');
      const ran = await runRewritten(answer.updatedInput.command);
      expect([ran.exitCode, ran.stderr, isThere()]).toEqual([0, expect.stringContaining(GONE), false]);
      expect((await run('undo')).exitCode).toBe(0);
    });

    it('of mode rewrite ask about it in the background, and its run is asked about as well', async () => {
      const answer = await ask('rewrite', { run_in_background: true });
      expect([answer.permissionDecision, answer.permissionDecisionReason]).toEqual([
        'ask',
        expect.stringContaining('notes'),
      ]);
      // Without the answer.
      const ran = await runRewritten(answer.updatedInput.command.replace(/'--approval' \S+/, ''));
      expect([ran.exitCode, isThere()]).toEqual([126, true]);
    });

    it('of mode decide ask, because another program runs it', async () => {
      expect((await ask('decide')).permissionDecision).toBe('ask');
    });
  });
});

/** Makes a workspace a linked worktree with a file that is changed, staged and not tracked. */
function makeWorktree(root: string, workspace: string): void {
  const text = `git init -q ${root}/main; cd ${root}/main; echo base > a; git add a; git -c user.name=a -c user.email=a@b commit -qm base; git worktree add -q ${workspace} -b own; cd ${workspace}; echo mine > a; git add a; echo more > a; echo mine > notes`;
  execFileSync('bash', ['-ec', text], { stdio: 'pipe' });
}
const statusOf = (workspace: string) =>
  execFileSync('git', ['-C', workspace, 'status', '--porcelain']).toString();

describe_('work that a command loses in a linked worktree (needs namespaces)', () => {
  const place = makePlace();
  afterAll(() => place.dispose());
  const env = {
    XDG_CONFIG_HOME: join(place.root, 'no-config'),
    XDG_STATE_HOME: join(place.root, 'state'),
  };
  makeWorktree(place.root, place.workspace);
  const before = statusOf(place.workspace);
  const run = (...args: readonly string[]) => cli(place, args, { env });

  it.each(['rm notes', 'git clean -fdq', 'git reset -q --hard', 'git checkout -q HEAD -- a'])(
    'is said by the command line and brought back: %s',
    async (line) => {
      const { exitCode, stderr } = await run('-c', line);
      expect([exitCode, stderr]).toEqual([
        0,
        expect.stringMatching(/^sandbox-run: .* gone: sandbox-run undo\n$/),
      ]);
      expect(statusOf(place.workspace)).not.toBe(before);
      expect(await run('undo')).toMatchObject({ exitCode: 0 });
      expect(statusOf(place.workspace)).toBe(before);
      expect(await run('redo')).toMatchObject({ exitCode: 0 });
      expect(statusOf(place.workspace)).not.toBe(before);
      expect(await run('undo')).toMatchObject({ exitCode: 0 });
      expect(statusOf(place.workspace)).toBe(before);
    },
  );

  it('keeps its question where it is in git’s own files', async () => {
    expect((await run('-c', 'git stash clear')).exitCode).toBe(126);
  });

  it('runs by a hook of mode rewrite', async () => {
    const input = {
      ...{ hook_event_name: 'PreToolUse', tool_name: 'Bash', session_id: 's1', cwd: place.workspace },
      tool_input: { command: 'git reset -q --hard; rm notes' },
    };
    const { stdout } = await startCli(place, ['hook', 'claude-code', '--mode', 'rewrite'], {
      input: JSON.stringify(input),
      env,
    });
    const answer = JSON.parse(stdout).hookSpecificOutput;
    expect(answer.permissionDecision).toBe('allow');
    const ran = await execa('bash', ['-c', answer.updatedInput.command], {
      ...{ cwd: place.workspace, env: { ...place.env, ...env }, extendEnv: false, reject: false },
    });
    expect([ran.exitCode, statusOf(place.workspace)]).toEqual([0, '']);
    expect((await run('undo')).exitCode).toBe(0);
    expect(statusOf(place.workspace)).toBe(before);
  });

  it('is kept as long as workspace.undo_keep says', async () => {
    const policy = join(place.root, 'keep.toml');
    const listed = async () => (await run('history')).stdout.trim().split('\n').length;
    const lose = async (keep: string) => {
      writeFileSync(policy, `[workspace]\nundo_keep = "${keep}"\n`);
      expect((await run('--policy', policy, '-c', 'rm notes')).exitCode).toBe(0);
      writeFileSync(join(place.workspace, 'notes'), Buffer.alloc(2 * 1024 * 1024));
    };
    const sets = await listed();
    await lose('7d, 2G');
    await lose('1w');
    expect(await listed()).toBe(sets + 2);
    // What it holds is more than that: the last one stays.
    await lose('7d, 1M');
    await expect.poll(listed, { timeout: 10_000 }).toBeLessThan(sets + 3);
    for (const wrong of ['0d', '7', '2G', '7d 2G', '7y', '-1d'])
      expect([
        wrong,
        await lose(wrong).then(
          () => 0,
          () => 1,
        ),
      ]).toEqual([wrong, 1]);
    writeFileSync(join(place.workspace, '.sandbox-run.toml'), '[workspace]\nundo_keep = "1h"\n');
    expect((await run('true')).stderr).toContain('workspace: there is no such key here');
    rmSync(join(place.workspace, '.sandbox-run.toml'));
  });
});

describe_('work that a model loses over MCP (needs namespaces)', () => {
  const place = makeMcpPlace();
  afterAll(() => place.dispose());

  it('is told to it, and is asked about in the background', async () => {
    writeFileSync(join(place.workspace, 'notes'), 'mine\n');
    const { client, shell } = await connectTo(place);
    const background = await shell('rm notes', { background: true });
    expect([background.isError, existsSync(join(place.workspace, 'notes'))]).toEqual([true, true]);
    const result = await shell('rm notes');
    expect(textOf(result)).toContain(GONE);
    expect(result.structuredContent).toMatchObject({ exitCode: 0, changes: null });
    await client.close();
    const undone = await cli(place, ['undo']);
    expect([undone.exitCode, existsSync(join(place.workspace, 'notes'))]).toEqual([0, true]);
  });

  it('comes back with its index in a linked worktree', async () => {
    rmSync(join(place.workspace, 'notes'));
    makeWorktree(place.root, place.workspace);
    const before = statusOf(place.workspace);
    const { client, shell } = await connectTo(place);
    const result = await shell('git reset -q --hard; rm notes');
    expect(textOf(result)).toContain('that version control does not have');
    expect(statusOf(place.workspace)).toBe('');
    await client.close();
    expect((await cli(place, ['undo'])).exitCode).toBe(0);
    expect(statusOf(place.workspace)).toBe(before);
  });
});

describe_('work that a client of serve loses (needs namespaces)', () => {
  const { place, stdio, judged } = makeServeWorld();

  it('is in the result, and its methods take it back', async () => {
    rmSync(join(place.workspace, 'notes'), { force: true });
    writeFileSync(join(place.workspace, 'notes'), 'mine\n');
    const { client } = stdio([], judged);
    await client.initialize();
    const result = (await client.call('run', { command: 'rm notes' })) as unknown as {
      readonly changes: { readonly id: string };
    };
    expect(result.changes).toMatchObject({ effect: 'undoable', state: 'applied', gone: { files: 1 } });
    expect(await client.call('changes.undo', { id: result.changes.id })).toMatchObject({ state: 'undone' });
    expect(existsSync(join(place.workspace, 'notes'))).toBe(true);
  });
});
