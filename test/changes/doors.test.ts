import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { cli, startCli } from '../cli/support.ts';
import { connectTo, makeMcpPlace, textOf } from '../integration/mcp-client.ts';
import { makeServeWorld } from '../integration/serve-world.ts';
import { HOST } from '../support/tiers.ts';

/** Changes can be held back here. */
const it_ = it.skipIf(!HOST.namespaces);

describe('previews over MCP (needs namespaces)', () => {
  const place = makeMcpPlace();
  afterAll(() => place.dispose());

  it_('hold back what a model changes, and say so; nothing of MCP applies them', async () => {
    const { client, shell } = await connectTo(place);
    const result = await shell('echo new > new', { preview: true });
    const { changes } = result.structuredContent as { readonly changes: { readonly id: string } };
    expect(changes).toMatchObject({ counts: { created: 1, changed: 0, deleted: 0, renamed: 0 } });
    expect(textOf(result)).toContain(`its changes wait as ${changes.id} (1 created)`);
    expect(existsSync(join(place.workspace, 'new'))).toBe(false);
    expect((await shell('cat new')).structuredContent).toMatchObject({ exitCode: 1, changes: null });
    const on = await shell('cat new', { on: changes.id });
    expect(on.structuredContent).toMatchObject({ stdout: 'new\n', changes: null });
    expect(textOf(await shell('true', { preview: true, background: true }))).toContain(
      'leave background out',
    );
    expect((await shell('true', { on: '../../etc' })).isError).toBe(true);
    await client.close();
  });
});

describe('previews over serve (needs namespaces)', () => {
  const { place, stdio } = makeServeWorld();

  it_('are shown, applied, taken back and discarded by its methods', async () => {
    const { client } = stdio();
    await client.initialize();
    const result = (await client.call('run', {
      command: 'echo new > new; echo x > other',
      effect: 'preview',
    })) as unknown as { readonly changes: { readonly id: string } };
    const { changes } = result;
    const { id } = changes;
    expect(await client.call('changes.list', {})).toMatchObject({ sets: [{ id, state: 'waiting' }] });
    // Nothing that runs on it comes into the workspace by itself.
    const upon = await client.call('run', { command: 'touch above', on: id });
    expect(upon).toMatchObject({ changes: { state: 'waiting', on: id } });
    const direct = await client.ask('run', { command: 'touch above', on: id, effect: 'direct' });
    expect([direct.error.data.code, existsSync(join(place.workspace, 'above'))]).toEqual([
      'usage.invalid',
      false,
    ]);
    const { changes: above } = upon as unknown as typeof result;
    await client.call('changes.discard', { id: above.id });
    expect(await client.call('changes.show', { id })).toMatchObject({
      changes: [{ path: 'new' }, { path: 'other' }],
    });
    expect(await client.call('changes.diff', { id, path: 'new' })).toMatchObject({
      diff: expect.stringContaining('+new'),
    });
    expect(await client.call('changes.apply', { id, paths: ['new'] })).toMatchObject({
      state: 'applied',
      done: 1,
    });
    expect(existsSync(join(place.workspace, 'other'))).toBe(false);
    expect(readFileSync(join(place.workspace, 'new'), 'utf8')).toBe('new\n');
    expect(await client.call('changes.undo', { id })).toMatchObject({ state: 'undone' });
    expect(existsSync(join(place.workspace, 'new'))).toBe(false);
    expect(await client.call('changes.discard', { id })).toEqual({});
    expect((await client.ask('changes.show', { id })).error.data.code).toBe('changes.unknown');
  });
});

describe('hooks and policies (needs namespaces)', () => {
  const { place } = makeServeWorld();
  const config = join(place.root, 'config/sandbox-run');
  const env = { XDG_CONFIG_HOME: join(place.root, 'config'), XDG_STATE_HOME: join(place.root, 'state') };

  it_('a rule with effect = "preview" holds for a command that a hook rewrote', async () => {
    mkdirSync(config, { recursive: true });
    writeFileSync(join(config, 'policy.toml'), '[[commands.rules]]\nprogram = "touch"\neffect = "preview"\n');
    const input = {
      ...{ hook_event_name: 'PreToolUse', tool_name: 'Bash', session_id: 's1', cwd: place.workspace },
      tool_input: { command: 'touch made && echo done' },
    };
    const askHook = (mode: string) =>
      startCli(place, ['hook', 'claude-code', '--mode', mode], { input: JSON.stringify(input), env });
    const hook = await askHook('rewrite');
    const answer = JSON.parse(hook.stdout);
    const command: string = answer.hookSpecificOutput.updatedInput.command;
    const { execa } = await import('execa');
    const ran = await execa('bash', ['-c', command], {
      ...{ cwd: place.workspace, env: { ...place.env, ...env }, extendEnv: false, reject: false },
    });
    expect([ran.exitCode, ran.stdout]).toEqual([0, 'done']);
    expect(ran.stderr).toMatch(/this was a preview; its changes wait as \S+ \(1 created\)/);
    expect(existsSync(join(place.workspace, 'made'))).toBe(false);
    // Where another program runs it, nothing can be held back.
    expect((await askHook('decide')).stdout).toContain('"ask"');
  });

  function withUndo() {
    mkdirSync(config, { recursive: true });
    writeFileSync(join(config, 'policy.toml'), '[workspace]\nundo = "always"\n');
    return (...args: readonly string[]) => cli(place, args, { env });
  }

  it_('history, undo and redo work where the policy has undo', async () => {
    const run = withUndo();
    expect((await run('undo')).stderr).toContain('there is nothing to take back');
    for (const name of ['one', 'two', 'three'])
      expect(await run('-c', `echo ${name} > ${name}; echo ${name} >> all`)).toMatchObject({
        exitCode: 0,
        stderr: '',
      });
    const all = () => readFileSync(join(place.workspace, 'all'), 'utf8');
    const listed = (await run('history')).stdout.split('\n').filter(Boolean);
    expect(listed.map((line) => line.replace(/^\S+ +/, ''))).toEqual([
      'applied   2 created: echo one > one; echo one >> all  [all, one]',
      'applied   1 created, 1 changed: echo two > two; echo two >> all  [all, two]',
      'applied   1 created, 1 changed: echo three > three; echo three >> all  [all, three]',
    ]);
    const [first = '', second = ''] = listed.map((line) => line.split(' ')[0]);
    expect((await run('undo')).exitCode).toBe(0);
    expect(all()).toBe('one\ntwo\n');
    // What a later one changed as well stays.
    expect(await run('undo', first)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('all: it changed since'),
    });
    expect((await run('undo', '--to', second)).exitCode).toBe(0);
    expect(all()).toBe('one\n');
    // The last one first: what was taken back in part is one of them.
    const has = () => ['one', 'three'].map((name) => existsSync(join(place.workspace, name)));
    expect([(await run('redo')).exitCode, has()]).toEqual([0, [false, false]]);
    expect([(await run('redo')).exitCode, has()]).toEqual([0, [true, false]]);
    expect([(await run('redo')).exitCode, has()]).toEqual([0, [true, true]]);
    expect(all()).toBe('one\ntwo\nthree\n');
  });

  it_('a repository that a command made goes as a whole, and comes again', async () => {
    const run = withUndo();
    const config = join(place.workspace, 'made-repository/.git/config');
    await run('-c', 'git init -q made-repository');
    expect(existsSync(config)).toBe(true);
    expect(await run('undo')).toMatchObject({ exitCode: 0 });
    expect(existsSync(join(place.workspace, 'made-repository'))).toBe(false);
    expect(await run('redo')).toMatchObject({ exitCode: 0 });
    expect(existsSync(config)).toBe(true);
  });

  it_('nothing is kept of what no workspace gets', async () => {
    const run = withUndo();
    const before = (await run('history')).stdout;
    const { stderr } = await run('-c', 'mkfifo pipe');
    expect(stderr).toContain('pipe is not in the workspace');
    expect(existsSync(join(place.workspace, 'pipe'))).toBe(false);
    expect((await run('history')).stdout).toBe(before);
    expect((await run('changes', 'list')).stdout).not.toContain('mkfifo');
  });

  it_('redo takes what was taken back last, wherever that stands in the history', async () => {
    const run = withUndo();
    const has = (name: string) => existsSync(join(place.workspace, name));
    const undone = async () =>
      (await run('history', '--json')).stdout
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line) as { readonly id: string; readonly undoneAt?: number })
        .filter((set) => set.undoneAt !== undefined)
        .map(({ id }) => id);
    await run('-c', 'echo > early');
    await run('undo');
    const [early = ''] = await undone();
    for (const name of ['late', 'latest']) await run('-c', `echo > ${name}`);
    await run('undo');
    await run('undo');
    expect(['early', 'late', 'latest'].map(has)).toEqual([false, false, false]);
    // The others were made after the first one was taken back.
    for (const [name, ...words] of [['late'], ['latest'], ['early', early]] as const) {
      expect((await run('redo', ...words)).exitCode).toBe(0);
      expect(has(name)).toBe(true);
    }
    // What came last goes first: the one that ran first.
    await run('undo');
    expect(['early', 'latest'].map(has)).toEqual([false, true]);
    await run('redo');
    // Applied and taken back once more, the oldest is the last one.
    const [latest = ''] = (await run('history')).stdout.trim().split('\n').at(-2)?.split(' ') ?? [];
    await run('undo', latest);
    await run('undo', early);
    await run('redo');
    expect(['early', 'latest'].map(has)).toEqual([true, false]);
    await run('redo');
    expect(await undone()).toEqual([]);
    expect((await run('redo')).stderr).toContain('there is nothing to apply again');
  });

  it_('a command of which nothing came holds up no other one', async () => {
    const run = withUndo();
    await run('-c', 'echo > came');
    const file = join(place.workspace, 'all');
    writeFileSync(file, 'old\n');
    const slow = startCli(
      { ...place, env: { ...place.env, ...env } },
      ['-c', 'echo started; read; echo slow > all'],
      { stdin: 'pipe' },
    );
    await once(slow.stdout, 'data');
    writeFileSync(file, 'mine\n');
    slow.stdin?.end('\n');
    expect((await slow).stderr).toContain('all is not in the workspace: it changed');
    expect(readFileSync(file, 'utf8')).toBe('mine\n');
    // Its work is kept.
    const [waiting = ''] = (await run('changes', 'list')).stdout
      .split('\n')
      .filter((line) => line.includes('slow'));
    expect((await run('changes', 'diff', waiting.split(' ')[0] ?? '')).stdout).toContain('+slow');
    expect(await run('undo')).toMatchObject({ exitCode: 0 });
    expect(existsSync(join(place.workspace, 'came'))).toBe(false);
  });

  it_('settings of git are taken back and applied again, and what somebody set since stays', async () => {
    const run = withUndo();
    const git = (...words: readonly string[]) =>
      execFileSync('git', ['config', ...words], { cwd: place.workspace, encoding: 'utf8' }).trim();
    execFileSync('git', ['init', '-q'], { cwd: place.workspace });
    git('user.name', 'before');
    await run('-c', 'echo > beside');
    await run('-c', 'git config user.name after; git config user.email a@b; git config core.fsmonitor ./x');
    const settings = () =>
      git('--list', '--local')
        .split('\n')
        .filter((line) => /user|fsmonitor/.test(line));
    expect(settings()).toEqual(['user.name=after', 'user.email=a@b']);
    const [id = ''] = (await run('history')).stdout.trim().split('\n').at(-1)?.split(' ') ?? [];
    expect((await run('changes', 'diff', id)).stdout).toMatch(
      /^diff a\/\.git\/config b\/\.git\/config\n(?:.*\n)*-\s*name = before\n\+\s*name = after\n/,
    );
    const { stdout: lost } = await run(
      '--preview',
      '--approved',
      '--json',
      '-c',
      'seq 500000 >> "$(git rev-parse --git-dir)/config"',
    );
    expect((await run('changes', 'diff', JSON.parse(lost).changes.id)).stdout).toBe(
      'diff a/.git/config b/.git/config\nnot shown: it is no configuration that can be taken over\n',
    );
    expect(await run('undo')).toMatchObject({
      exitCode: 0,
      stderr: expect.stringMatching(/^sandbox-run: \S+: .*\nsandbox-run: 1 change is taken back\n$/),
    });
    expect(settings()).toEqual(['user.name=before']);
    expect((await run('redo')).exitCode).toBe(0);
    expect(settings()).toEqual(['user.name=after', 'user.email=a@b']);
    git('user.name', 'mine');
    expect(await run('undo')).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('stays as it is: .git/config: user.name changed\n'),
    });
    expect(settings()).toEqual(['user.name=mine']);
    expect(await run('undo')).toMatchObject({ exitCode: 0 });
    expect(existsSync(join(place.workspace, 'beside'))).toBe(false);
  });
});
