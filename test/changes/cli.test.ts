import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cli, expectOneLine, makePlace, type Place, startCli } from '../cli/support.ts';
import { HOST } from '../support/tiers.ts';
import { watchJournals } from './support/cut-short.ts';

/** Changes can be held back here. */
const it_ = it.skipIf(!HOST.namespaces);

describe('sandbox-run --preview and sandbox-run changes (needs namespaces)', () => {
  let place: Place;
  beforeAll(() => {
    place = makePlace();
  });
  afterAll(() => place.dispose());
  beforeEach(() => {
    execFileSync('find', [place.workspace, '-mindepth', '1', '-delete']);
    rmSync(join(place.root, 'home/.local/state/sandbox-run/changes'), { recursive: true, force: true });
  });

  const changes = (...args: readonly string[]) => cli(place, ['changes', ...args]);
  const preview = async (script: string) => {
    const ran = await cli(place, ['--preview', '-c', script]);
    expect([ran.exitCode, ran.stderr]).toEqual([0, expect.stringMatching(/ wait[,;]/)]);
    const id = /changes diff (\S+)/.exec(ran.stderr)?.[1];
    if (id === undefined) throw new Error(ran.stderr);
    return { ...ran, id };
  };
  /** A tree of many small files, as text. */
  const tree = () =>
    String(
      execFileSync(
        'bash',
        ['-c', 'find . -printf "%P %y %m %l\\n" | sort; find . -type f | sort | xargs -r cat'],
        { cwd: place.workspace },
      ),
    );

  it_(
    'tells what waits and what can be done, a short line each, and shows, applies, takes back and discards it',
    async () => {
      writeFileSync(join(place.workspace, 'a'), 'one\n');
      const { id, stdout, stderr } = await preview('echo two >> a; echo new > b; cat a');
      expect(stdout).toBe('one\ntwo\n');
      expect(stderr).toBe(
        `sandbox-run: 1 created, 1 changed wait; nothing of it is in the workspace yet\nsandbox-run: look: sandbox-run changes diff ${id}\nsandbox-run: then: sandbox-run changes apply ${id} (or discard)\n`,
      );
      expect((await changes('list')).stdout).toBe(
        `${id}  waiting   1 created, 1 changed: echo two >> a; echo new > b; cat a\n`,
      );
      expect((await changes('show', id)).stdout).toContain('~ a (4 -> 8 bytes)\n+ b (4 bytes)\n');
      expect((await changes('diff', id, 'a')).stdout).toBe(
        'diff --git a/a b/a\nindex 5626abf..814f4a4 100644\n--- a/a\n+++ b/a\n@@ -1,1 +1,2 @@\n one\n+two\n',
      );
      expect(await changes('apply', id)).toMatchObject({
        exitCode: 0,
        stderr: 'sandbox-run: 2 changes are applied\n',
      });
      expect(readFileSync(join(place.workspace, 'b'), 'utf8')).toBe('new\n');
      // What was there before can still be shown.
      expect((await changes('diff', id, 'a')).stdout).toContain('+two');
      expect(await changes('undo', id)).toMatchObject({
        exitCode: 0,
        stderr: 'sandbox-run: 2 changes are taken back\n',
      });
      expect(readdirSync(place.workspace)).toEqual(['a']);
      expect(await changes('discard', id)).toMatchObject({ exitCode: 0, stdout: `${id} is gone\n` });
      expect((await changes('list')).stdout).toBe(
        'no changes wait here, and none were applied lately\nsandbox-run changes list --all shows other workspaces\n',
      );
    },
  );

  it_('takes the only one that waits without an id, and lists several', async () => {
    const none = await changes('apply');
    expect(none).toMatchObject({ exitCode: 125, stdout: '' });
    expectOneLine(none.stderr);
    expect(none.stderr).toContain('no changes wait here');
    await preview('echo 1 > a');
    expect((await changes('show')).stdout).toContain('+ a (2 bytes)');
    expect((await changes('diff')).stdout).toContain('+1');
    expect(await changes('apply')).toMatchObject({ exitCode: 0, stderr: expect.stringContaining('applied') });
    // What is applied waits no more.
    expect((await changes('apply')).stderr).toContain('no changes wait here');
    const two = [await preview('echo 2 > b'), await preview('echo 3 > c')];
    const several = await changes('apply');
    expect(several).toMatchObject({ exitCode: 125, stdout: '' });
    for (const { id } of two) expect(several.stderr).toContain(`${id}  waiting`);
    expect(readdirSync(place.workspace)).toEqual(['a']);
    // The last line, followed as it is written.
    const [, named = ''] = /sandbox-run changes (apply \S+)$/.exec(several.stderr.trim()) ?? [];
    expect(await changes(...named.split(' '))).toMatchObject({ exitCode: 0 });
    expect(readdirSync(place.workspace)).toEqual(['a', 'c']);
  });

  it_('applies what is chosen, and the list says that there is more of it', async () => {
    const { id } = await preview('echo 1 > a; echo 2 > b');
    expect(await changes('apply', id, 'a')).toMatchObject({ exitCode: 0 });
    expect((await changes('list')).stdout).toContain(`${id}  applied, but for 1  `);
    expect(await changes('apply', id)).toMatchObject({ exitCode: 0 });
    expect((await changes('list')).stdout).toContain(`${id}  applied   `);
    expect(readdirSync(place.workspace).sort()).toEqual(['a', 'b']);
  });

  it_('knows a path by other spellings, too', async () => {
    const { id } = await preview('mkdir d; echo 1 > d/a; echo 2 > d/b');
    const full = join(realpathSync(place.workspace), 'd/a');
    expect((await changes('diff', id, full)).stdout).toContain('+1');
    expect(await changes('apply', id, full)).toMatchObject({ exitCode: 0 });
    expect(await changes('discard', id, './d/b')).toMatchObject({ exitCode: 0 });
    expect(readdirSync(join(place.workspace, 'd'))).toEqual(['a']);
  });

  it_('takes back one or all since one, and not both', async () => {
    const { id } = await preview('echo 1 > a');
    await changes('apply', id);
    const both = await cli(place, ['undo', id, '--to', id]);
    expect([both.exitCode, existsSync(join(place.workspace, 'a'))]).toEqual([125, true]);
    expectOneLine(both.stderr);
    expect(await cli(place, ['undo', '--to', id])).toMatchObject({ exitCode: 0 });
  });

  it_('says how to get at earlier ones where the last one cannot be taken back', async () => {
    const first = await preview('echo 1 > a');
    await changes('apply', first.id);
    const { id } = await preview('echo 1 > b');
    await changes('apply', id);
    writeFileSync(join(place.workspace, 'b'), 'mine\n');
    const undone = await cli(place, ['undo']);
    expect(undone).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('b: it changed') });
    expect(undone.stderr).toMatch(/\nsandbox-run: earlier ones .* sandbox-run history$/m);
    const named = await cli(place, ['undo', id]);
    expect([named.exitCode, named.stderr]).toEqual([1, expect.not.stringContaining('earlier ones')]);
    expect(await cli(place, ['undo', first.id])).toMatchObject({ exitCode: 0 });
  });

  it_('says how the rest of what is applied again in part can be, which that does', async () => {
    const { id } = await preview('echo 1 > a; echo 1 > b');
    await changes('apply', id);
    await cli(place, ['undo']);
    writeFileSync(join(place.workspace, 'b'), 'mine\n');
    const redone = await cli(place, ['redo']);
    expect(redone).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(`sandbox-run redo ${id}\n`),
    });
    rmSync(join(place.workspace, 'b'));
    expect(await cli(place, ['redo', id])).toMatchObject({ exitCode: 0 });
    expect(readdirSync(place.workspace)).toEqual(['a', 'b']);
  });

  it_('ends with 1 where a part stays as it is, and says which and why', async () => {
    writeFileSync(join(place.workspace, 'a'), 'one\n');
    const { id } = await preview('echo two >> a; echo new > b');
    writeFileSync(join(place.workspace, 'a'), 'mine\n');
    expect(await changes('apply', id)).toMatchObject({
      exitCode: 1,
      stderr: 'sandbox-run: 1 change is applied\nsandbox-run: stays as it is: a: it changed\n',
    });
  });

  it_.each([
    [['show', 'nonsense']],
    [['diff', '../../etc']],
    [['apply', '20260101-000000-abcdef']],
    [['undo', '20260101-000000-abcdef']],
    [['discard', '.']],
  ])('one line for an id that there is none of: %j', async (args) => {
    const { exitCode, stderr } = await changes(...args);
    expect(exitCode).toBe(125);
    expectOneLine(stderr);
    expect(stderr).toContain('changes list');
  });

  it_('what has no changes of its own cannot be taken back, and --on takes a set that waits', async () => {
    const { id } = await preview('echo new > b');
    expectOneLine((await changes('undo', id)).stderr);
    const on = await cli(place, ['--on', id, '--json', '-c', 'cat b']);
    expect(JSON.parse(on.stdout)).toMatchObject({ stdout: 'new\n', changes: { on: id, changes: [] } });
    expectOneLine((await cli(place, ['--on', 'nonsense', '-c', 'true'])).stderr);
  });

  it_('a command cannot reach what waits', async () => {
    const { id } = await preview('echo new > b');
    const state = join(place.root, 'home/.local/state/sandbox-run');
    const directory = join(state, 'changes', id);
    expect(existsSync(directory)).toBe(true);
    const { stdout } = await cli(place, [
      '--ro',
      place.root,
      '-c',
      `ls ${directory} ${state}; cat ${directory}/set.json; true`,
    ]);
    expect(stdout).not.toContain(id);
  });

  it_(
    'is finished by the next command after its process was killed, wherever that was',
    { timeout: 300_000 },
    async () => {
      const many =
        'for d in 1 2 3 4 5 6; do mkdir -p d$d; for f in $(seq 120); do echo $d.$f > d$d/f$f; done; done';
      const change =
        'for d in 1 3 5; do rm -r d$d; done; for f in d2/*; do echo more >> $f; done; mv d4 e4; mkdir n; for f in $(seq 200); do echo $f > n/$f; done; ln -s n l; chmod 700 d6';
      execFileSync('bash', ['-c', many], { cwd: place.workspace });
      const before = tree();
      execFileSync('bash', [
        '-c',
        `cp -a ${place.workspace} ${place.root}/plain; cd ${place.root}/plain; umask 022; ${change}`,
      ]);
      const { id } = await preview(`umask 022; ${change}`);
      execFileSync('bash', [
        '-c',
        `mv ${place.workspace} ${place.root}/kept; mv ${place.root}/plain ${place.workspace}`,
      ]);
      const wanted = tree();
      execFileSync('bash', [
        '-c',
        `mv ${place.workspace} ${place.root}/plain; mv ${place.root}/kept ${place.workspace}`,
      ]);
      expect(tree()).toBe(before);
      const journals = watchJournals(join(place.root, 'home/.local/state/sandbox-run'));
      let cutShort = 0;
      for (let round = 0; round < 4 || (cutShort < 4 && round < 60); round++) {
        const doing = round % 2 === 0 ? 'apply' : 'undo';
        const running = startCli(place, ['changes', doing, id]);
        if (await journals.kill(running, (round % 4) * 80)) cutShort++;
        const next = await cli(place, ['-c', 'true']);
        expect([next.exitCode, next.stderr]).toEqual([0, '']);
        expect(journals.begun()).toEqual([]);
        expect(tree()).toBe(doing === 'apply' ? wanted : before);
      }
      // Otherwise nothing was tried.
      expect(cutShort).toBeGreaterThan(3);
      rmSync(join(place.root, 'plain'), { recursive: true, force: true });
    },
  );
});
