import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { openState } from '../../src/gate/index.ts';
import { CLI, cli, expectOneLine, makePlace, type Place, PTY_DRIVER, startCli } from '../cli/support.ts';
import { sampleRequest, until } from '../support/approvals.ts';
import { eventually } from '../support/eventually.ts';
import { HOST } from '../support/tiers.ts';

/** Changes can be held back here. */
const it_ = it.skipIf(!HOST.namespaces);

describe('the queue of approvals has changes that wait (needs namespaces)', () => {
  let place: Place;
  const state = () => join(place.root, 'home/.local/state/sandbox-run');
  beforeAll(() => {
    place = makePlace();
  });
  afterAll(() => place.dispose());
  beforeEach(() => {
    execFileSync('find', [place.workspace, '-mindepth', '1', '-delete']);
    rmSync(state(), { recursive: true, force: true });
  });

  const approvals = (...args: readonly string[]) => cli(place, ['approvals', ...args]);
  const write = (name: string, text: string) => writeFileSync(join(place.workspace, name), text);
  const read = (name: string) => readFileSync(join(place.workspace, name), 'utf8');
  const preview = async (script: string) => {
    const ran = await cli(place, ['--json', '--preview', '-c', script]);
    return String(JSON.parse(ran.stdout).changes.id);
  };
  /** A command that waits for an answer. */
  const post = async (command: string) => {
    // What makes the directory: somebody looked.
    await approvals('list');
    const opened = await openState(state());
    const id = await opened.approvals.post(sampleRequest({ command }), Date.now() + 60_000);
    return { id, store: opened.approvals, close: () => opened.close() };
  };

  it_('lists them beside commands, shows them, and approving applies them', async () => {
    write('a', 'one\n');
    const request = await post('git push origin main');
    const id = await preview(`echo two >> a; echo new > $'b\\e[2J\\n\\u202e'`);
    const listed = await approvals('list');
    expect(listed).toMatchObject({ exitCode: 0, stderr: '' });
    expect(listed.stdout).toContain(`| git push origin main\n`);
    expect(listed.stdout).toContain(`${id}  waits, 1 created, 1 changed\nchanges of  | echo two >> a;`);
    expect(listed.stdout).toContain(
      `workspace   | ${place.workspace}\n  ~         | a (4 -> 8 bytes)\n  +         | b\\u{1b}[2J\\u{a}\\u{202e} (4 bytes)\n`,
    );
    const lines = (await approvals('list', '--json')).stdout.trim().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toMatchObject([
      { id: request.id, state: 'pending' },
      { id, state: 'waiting', counts: { created: 1, changed: 1 } },
    ]);
    expect((await approvals('show', id)).stdout).toContain('~ a (4 -> 8 bytes)\n');
    expect(JSON.parse((await approvals('show', id, '--json')).stdout)).toMatchObject({
      id,
      changes: [{ path: 'a' }, { change: 'created' }],
    });
    const approved = await approvals('approve', id);
    expect(approved).toMatchObject({ exitCode: 0, stderr: 'sandbox-run: 2 changes are applied\n' });
    expect(approved.stdout).toContain('~ a (4 -> 8 bytes)\n');
    expect(read('a')).toBe('one\ntwo\n');
    expect((await approvals('list')).stdout).not.toContain(id);
    // It was answered.
    for (const verb of ['approve', 'deny']) {
      const later = await approvals(verb, id);
      expect([later.exitCode, later.stdout]).toEqual([125, '']);
      expectOneLine(later.stderr);
      expect(later.stderr).toContain('do not wait any more: applied');
    }
    await request.close();
  });

  it_('denying discards them', async () => {
    const id = await preview('echo new > b');
    expect(await approvals('deny', id)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(/^\S+ {2}waiting .*\n\+ b \(4 bytes\)\n\S+ is gone\n$/),
    });
    expect(readdirSync(place.workspace)).toEqual([]);
    expect((await approvals('list')).stdout).toBe('Nothing waits for an answer.\n');
    const again = await approvals('approve', id);
    expect(again.exitCode).toBe(125);
    expectOneLine(again.stderr);
  });

  it_('denying what is applied in part forgets the rest, and what is applied can be taken back', async () => {
    write('a', 'one\n');
    const id = await preview('echo two >> a; echo new > b');
    await cli(place, ['changes', 'apply', id, 'a']);
    expect(read('a')).toBe('one\ntwo\n');
    const { exitCode, stdout } = await approvals('deny', id);
    expect([exitCode, stdout.split('\n').at(-2)]).toEqual([
      0,
      `the rest of ${id} is gone; sandbox-run changes undo ${id} takes back what is applied`,
    ]);
    expect((await approvals('list')).stdout).toBe('Nothing waits for an answer.\n');
    await cli(place, ['changes', 'apply', id]);
    expect(existsSync(join(place.workspace, 'b'))).toBe(false);
    expect((await cli(place, ['changes', 'undo', id])).exitCode).toBe(0);
    expect([read('a'), readdirSync(place.workspace)]).toEqual(['one\n', ['a']]);
    // Nothing of it is in the workspace any more.
    await cli(place, ['changes', 'discard', id]);
    expect((await cli(place, ['changes', 'list', '--all'])).stdout).not.toContain(id);
  });

  it_('what is in conflict or refused is said as by changes apply', async () => {
    write('a', 'one\n');
    const id = await preview('echo two >> a; ln -s /etc out; echo ok > ok');
    write('a', 'mine\n');
    const { exitCode, stderr } = await approvals('approve', id);
    const said = stderr.replaceAll('sandbox-run: ', '').trim().split('\n');
    expect([exitCode, said]).toEqual([
      1,
      [
        '1 change is applied',
        'stays as it is: a: it changed',
        'stays as it is: out: it leads out of the workspace; name it to apply it all the same',
      ],
    ]);
    expect([read('a'), existsSync(join(place.workspace, 'ok'))]).toEqual(['mine\n', true]);
  });

  it_('has no scope for them', async () => {
    const id = await preview('echo new > b');
    const { exitCode, stderr } = await approvals('approve', id, '--scope', 'always');
    expect(exitCode).toBe(125);
    expectOneLine(stderr);
    expect(stderr).toContain('leave --scope out');
    expect(readdirSync(place.workspace)).toEqual([]);
  });

  it_('watch tells of them as they come and go', async () => {
    const first = await preview('echo 1 > first');
    const watch = startCli(place, ['approvals', 'watch', '--json']);
    const seen: { readonly type: string; readonly id?: string; readonly changes?: { id: string } }[] = [];
    const reading = (async () => {
      for await (const line of watch) seen.push(JSON.parse(line));
    })();
    const told = (id: string) => until(() => seen.find(({ changes }) => changes?.id === id));
    expect(await told(first)).toMatchObject({ type: 'changes', changes: { state: 'waiting' } });
    const second = await preview('echo 2 > second');
    await told(second);
    await approvals('approve', first);
    await approvals('deny', second);
    const settled = (id: string) => until(() => seen.find((line) => line.id === id));
    expect(await settled(first)).toEqual({ type: 'settled', id: first, state: 'applied' });
    expect(await settled(second)).toEqual({ type: 'settled', id: second, state: 'discarded' });
    watch.kill('SIGTERM');
    await reading;
    expect((await watch).exitCode).toBe(0);
  });

  type Step =
    | { readonly expect: string }
    | { readonly send: string }
    | { readonly pause: number }
    | { readonly create: string }
    | { readonly insist: string; readonly until: string; readonly every?: number };
  const PROMPT: Step = { expect: 'apply / diff / list / discard .keep waiting.: ' };
  /** Typed until it stands there: the question hears nothing at first. */
  const answer = (line: string): readonly Step[] => [
    { insist: `\x15${line}`, until: `\\x08?${line}$` },
    { send: '\r' },
  ];
  /** `beside`: what is waited for before the watcher is ended. */
  async function watching(steps: readonly Step[], beside?: string) {
    const watch = `'${process.execPath}' '${CLI}' approvals watch`;
    const ends =
      beside === undefined ? watch : `${watch} < /dev/tty & pid=$!; ${beside}; kill $pid; wait $pid`;
    const script = `${ends}; echo "ended $?"`;
    const input = JSON.stringify({
      argv: ['/bin/bash', '-c', script],
      ...{ cwd: place.workspace, env: place.env, size: [40, 100], steps },
    });
    const { stdout } = await execa('python3', [PTY_DRIVER], { input });
    const talk = JSON.parse(stdout) as { readonly output: string; readonly failed: Step | null };
    expect([talk.failed, talk.failed === null ? '' : talk.output]).toEqual([null, '']);
    return talk.output.replaceAll('\r', '');
  }
  // A terminal that is just given back drops what was typed.
  const END: readonly Step[] = [{ pause: 1 }, { insist: '\x03', until: 'ended 0', every: 8 }];

  it_('watch asks about them on a terminal, one after the other, and again about what is left', async () => {
    await preview('echo 1 > a; echo 2 > b');
    await preview('echo 3 > c');
    await preview('echo 4 > d');
    const output = await watching([
      { expect: 'changes of  \\| echo 1 > a' },
      PROMPT,
      ...answer('apply 1'),
      { expect: '1 change is applied' },
      { expect: 'changes of  \\| echo 1 > a' },
      PROMPT,
      ...answer('apply'),
      { expect: 'changes of  \\| echo 3 > c' },
      PROMPT,
      ...answer('discard'),
      { expect: 'is gone' },
      { expect: 'changes of  \\| echo 4 > d' },
      PROMPT,
      ...answer('keep'),
      { expect: '--- it waits' },
      ...END,
    ]);
    expect(output).toContain(`workspace   | ${place.workspace}\n`);
    expect(readdirSync(place.workspace).sort()).toEqual(['a', 'b']);
    expect((await approvals('list')).stdout).toContain('changes of  | echo 4 > d');
  });

  it_(
    'a command that comes is asked about at once, and what was typed for changes is no answer to it',
    async () => {
      await preview('echo 1 > a');
      const request = await post('was there before');
      await request.store.withdraw(request.id);
      // Once it is asked about the changes, and something was typed for them.
      const typed = join(place.root, 'typed');
      const posted = (async () => {
        await eventually(() => expect(existsSync(typed)).toBe(true));
        return request.store.post(sampleRequest({ command: 'came later' }), Date.now() + 60_000);
      })();
      await watching([
        { expect: 'changes of  \\| echo 1 > a' },
        PROMPT,
        { insist: '\x15a', until: '\\x08?a$' },
        { create: typed },
        { expect: '\\n\\| came later' },
        { expect: '\\[y\\]es once.*\\[n\\]o: ' },
        ...answer('y'),
        { expect: 'changes of  \\| echo 1 > a' },
        PROMPT,
        ...answer('apply'),
        { expect: '1 change is applied' },
        ...END,
      ]);
      expect(await request.store.take(await posted)).toMatchObject({ approved: true, by: 'watch' });
      expect(readdirSync(place.workspace)).toEqual(['a']);
      await request.close();
    },
  );

  it_('watch gives up on what was answered elsewhere', async () => {
    const id = await preview('echo 1 > a');
    const isRaw = 'stty -a < /dev/tty | grep -q -- -icanon';
    // Who answers has no terminal: at its end Node sets one back to how it found it, which is raw here.
    await watching(
      [PROMPT, { expect: '--- it waits' }, { expect: 'applied elsewhere' }, { expect: 'ended 0' }],
      `until ${isRaw}; do sleep 0.02; done; '${process.execPath}' '${CLI}' approvals approve ${id} < /dev/null > /dev/null 2>&1; while ${isRaw}; do sleep 0.02; done; echo applied elsewhere`,
    );
    expect(readdirSync(place.workspace)).toEqual(['a']);
  });
});
