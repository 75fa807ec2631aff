import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cli, expectOneLine, makePlace, type Place, startCli } from '../cli/support.ts';
import { HOST } from '../support/tiers.ts';

/** Changes can be held back here. */
const it_ = it.skipIf(!HOST.namespaces);

describe('what the state directory holds of changes is damaged (needs namespaces)', () => {
  let place: Place;
  const kept = () => join(place.root, 'home/.local/state/sandbox-run/changes');
  beforeAll(() => {
    place = makePlace();
  });
  afterAll(() => place.dispose());
  beforeEach(() => {
    execFileSync('find', [place.workspace, '-mindepth', '1', '-delete']);
    rmSync(kept(), { recursive: true, force: true });
  });

  const changes = (...args: readonly string[]) => cli(place, ['changes', ...args]);
  const preview = async (script: string) =>
    String(JSON.parse((await cli(place, ['--json', '--preview', '-c', script])).stdout).changes.id);
  const read = (name: string) => readFileSync(join(place.workspace, name), 'utf8');

  it_.each<readonly [string, (text: string) => string]>([
    ['empty', () => ''],
    ['cut off', (text) => text.slice(0, text.length / 2)],
    ['another JSON', () => '[]'],
    ['of another set', (text) => text.replace(/"id":"\d+/, '"id":"19990101')],
    ['without operations', (text) => text.replace('"operations"', '"operation"')],
    ['with a time that is text', (text) => text.replace(/"at":(\d+)/, '"at":"$1"')],
    ['with a time that is none', (text) => text.replace(/"at":\d+/, '"at":1e300')],
    ['with an operation that is none', (text) => text.replace('"path"', '"pfad"')],
  ])(
    'a description that is %s: one line, the others can be used, nothing is removed unasked',
    async (_, damage) => {
      const damaged = await preview('echo lost > a');
      const other = await preview('echo other > b');
      const description = join(kept(), damaged, 'set.json');
      const whole = readFileSync(description, 'utf8');
      writeFileSync(description, damage(whole));
      for (const verb of ['show', 'diff', 'apply', 'undo']) {
        const { exitCode, stdout, stderr } = await changes(verb, damaged);
        expect([exitCode, stdout]).toEqual([125, '']);
        expectOneLine(stderr);
        expect(stderr).toContain(`the changes ${damaged} cannot be read`);
      }
      const listed = await changes('list');
      expect([listed.exitCode, listed.stdout.split('\n').length]).toEqual([0, 2]);
      expect(listed.stdout).toContain(other);
      expectOneLine(listed.stderr);
      expect((await cli(place, ['approvals', 'list'])).stdout).toContain(other);
      // A new one finds what is too old, and makes a layer.
      await preview('echo third > c');
      expect((await changes('apply', other)).exitCode).toBe(0);
      expect(read('b')).toBe('other\n');
      expect(readFileSync(join(kept(), damaged, 'upper/a'), 'utf8')).toBe('lost\n');
      writeFileSync(description, whole);
      expect((await changes('apply', damaged)).exitCode).toBe(0);
      expect(read('a')).toBe('lost\n');
      writeFileSync(description, damage(whole));
      expect((await changes('discard', damaged)).exitCode).toBe(0);
      expect(existsSync(join(kept(), damaged))).toBe(false);
    },
  );

  /** A set whose process died when its first file was in place. */
  async function cutShort() {
    const id = await preview('echo 1 > a; echo 2 > b; echo 3 > c');
    const journal = join(kept(), 'journals', id);
    await changes('apply', id);
    const set = readFileSync(join(kept(), id, 'set.json'), 'utf8');
    const { placed, ...rest } = JSON.parse(set);
    writeFileSync(join(kept(), id, 'set.json'), JSON.stringify({ ...rest, state: 'waiting', placed: [] }));
    for (const name of ['b', 'c']) rmSync(join(place.workspace, name));
    const intent = { doing: 'apply', numbers: [0, 1, 2], named: [], token: 'f'.repeat(24), copies: [] };
    const begun = { number: 0, comes: placed[0].stamp };
    const text = [intent, begun].map((line) => `${JSON.stringify(line)}\n`).join('');
    return { id, journal, intent: text, step: JSON.stringify(placed[0]) };
  }

  it_.each([
    ['a step that was noted in part', (step: string) => step.slice(0, 20)],
    ['a line of noise', () => '\0\0\0\n'],
    ['a step that is none', () => '{"number":"0"}\n'],
    ['nothing wrong', (step: string) => `${step}\n`],
  ])('a journal with %s is finished by the next command, and again by one after it', async (_, noted) => {
    const { id, journal, intent, step } = await cutShort();
    writeFileSync(journal, intent);
    appendFileSync(journal, noted(step));
    expect(await cli(place, ['-c', 'cat a b c'])).toMatchObject({
      exitCode: 0,
      stdout: '1\n2\n3\n',
      stderr: '',
    });
    expect(existsSync(journal)).toBe(false);
    expect((await changes('undo', id)).stderr).toBe('sandbox-run: 3 changes are taken back\n');
  });

  it_.each([
    ['empty', () => ''],
    ['noise', () => '\0'.repeat(100)],
    ['cut off', (intent: string) => intent.slice(0, 30)],
    ['another JSON', () => '{}\n'],
  ])(
    'a journal that is %s: commands run and say it, and nothing is done to the workspace',
    async (_, damage) => {
      const { id, journal, intent } = await cutShort();
      writeFileSync(journal, damage(intent));
      const ran = await cli(place, ['-c', 'ls']);
      expect([ran.exitCode, ran.stdout]).toEqual([0, 'a\n']);
      expectOneLine(ran.stderr);
      expect(ran.stderr).toContain(journal);
      const applied = await changes('apply', id);
      expect(applied.exitCode).toBe(125);
      expectOneLine(applied.stderr);
      // As it says.
      rmSync(journal);
      expect((await changes('apply', id)).stderr).toMatch(
        /^sandbox-run: 2 changes are applied\n.*a: something is there/,
      );
      expect(read('b') + read('c')).toBe('2\n3\n');
    },
  );

  it_(
    'a directory in the place of a file with another name comes where that was set aside only',
    async () => {
      execFileSync('bash', ['-c', 'echo 1 > a; ln a b'], { cwd: place.workspace });
      const id = await preview('rm a; mkdir a; echo 2 > a/in');
      const waiting = JSON.parse(readFileSync(join(kept(), id, 'set.json'), 'utf8'));
      const { operations } = waiting;
      const number = operations.findIndex(({ path }: { readonly path: string }) => path === 'a');
      // As where names cannot be exchanged: one was renamed, and the other one not yet.
      const beside = join(place.workspace, `.sandbox-run-${'f'.repeat(24)}-${number}`);
      renameSync(join(place.workspace, 'a'), `${beside}-old`);
      mkdirSync(beside);
      const comes = { kind: 'directory', inode: lstatSync(beside).ino };
      const numbers = operations.map((_: unknown, one: number) => one);
      const intent = { doing: 'apply', numbers, named: [], token: 'f'.repeat(24), copies: [] };
      const begun = { number, comes, goes: operations[number].before };
      const lines = [intent, begun].map((line) => `${JSON.stringify(line)}\n`);
      mkdirSync(join(kept(), 'journals'), { recursive: true });
      writeFileSync(join(kept(), 'journals', id), lines.join(''));
      expect(await cli(place, ['-c', 'cat a/in b'])).toMatchObject({ stdout: '2\n1\n', stderr: '' });
      expect((await changes('undo', id)).exitCode).toBe(0);
      expect(read('a')).toBe('1\n');
    },
  );

  it_('a configuration that was changed since the crash is not taken away', async () => {
    const id = await preview('git init -q made');
    const description = join(kept(), id, 'set.json');
    const waiting = readFileSync(description, 'utf8');
    await changes('apply', id);
    const { placed } = JSON.parse(readFileSync(description, 'utf8'));
    const numbers = placed.map(({ number }: { readonly number: number }) => number);
    const intent = { doing: 'apply', numbers, named: [], token: 'f'.repeat(24), copies: [] };
    const lines = [intent, ...placed].map((line) => `${JSON.stringify(line)}\n`);
    writeFileSync(join(kept(), 'journals', id), lines.join(''));
    writeFileSync(description, waiting);
    const config = join(place.workspace, 'made/.git/config');
    appendFileSync(config, '[user]\n\tname = mine\n');
    await cli(place, ['-c', 'true']);
    expect((await changes('undo', id)).exitCode).toBe(1);
    expect(readFileSync(config, 'utf8')).toContain('mine');
  });

  it_('what was cut short is not discarded: of what is in place nothing could be taken back', async () => {
    const { id, journal, intent } = await cutShort();
    writeFileSync(journal, intent);
    const { exitCode, stderr } = await changes('discard', id);
    expect(exitCode).toBe(125);
    expectOneLine(stderr);
    expect(stderr).toContain(`finish that first (sandbox-run changes apply ${id})`);
    expect((await changes('apply', id)).exitCode).toBe(0);
    expect((await changes('undo', id)).exitCode).toBe(0);
    expect(existsSync(join(place.workspace, 'a'))).toBe(false);
    expect((await changes('discard', id)).exitCode).toBe(0);
  });

  it_('a set from later than now is listed and taken back as any other', async () => {
    const id = await preview('echo 1 > a');
    await changes('apply', id);
    const description = join(kept(), id, 'set.json');
    const later = readFileSync(description, 'utf8').replace(/"at":\d+/, `"at":${Date.now() + 10 ** 12}`);
    writeFileSync(description, later);
    expect((await cli(place, ['history'])).stdout).toContain(id);
    expect(await cli(place, ['-c', 'cat a'])).toMatchObject({ stdout: '1\n', stderr: '' });
    expect((await cli(place, ['undo'])).exitCode).toBe(0);
    expect((await cli(place, ['redo'])).exitCode).toBe(0);
    expect(read('a')).toBe('1\n');
  });

  it_('a set of an older version, of which nothing came, holds up no other one', async () => {
    await changes('apply', await preview('echo 1 > a'));
    const id = await preview('echo 2 > b');
    const description = join(kept(), id, 'set.json');
    const set = JSON.parse(readFileSync(description, 'utf8'));
    writeFileSync(description, JSON.stringify({ ...set, state: 'applied' }));
    expect((await cli(place, ['undo'])).exitCode).toBe(0);
    expect(existsSync(join(place.workspace, 'a'))).toBe(false);
    expect((await changes('list')).stdout).toContain(`${id}  waiting`);
  });

  it_('one that was cut short and cannot be read is said by every command, and not by none', async () => {
    const { id, journal, intent } = await cutShort();
    writeFileSync(journal, intent);
    writeFileSync(join(kept(), id, 'set.json'), '{');
    const ran = await cli(place, ['-c', 'ls']);
    expect([ran.exitCode, ran.stdout]).toEqual([0, 'a\n']);
    expectOneLine(ran.stderr);
    expect(ran.stderr).toContain(`the changes ${id} cannot be read`);
  });

  it_('two processes that apply, or take back, the same at once do it once', async () => {
    const many = await preview('for i in $(seq 300); do echo $i > f$i; done; echo end > end');
    for (const [verb, done] of [
      ['apply', 'applied'],
      ['undo', 'taken back'],
      ['apply', 'applied'],
    ] as const) {
      const running = [1, 2, 3].map(() => startCli(place, ['changes', verb, many]));
      const said = (await Promise.all(running)).map(({ stderr }) => String(stderr).trim()).sort();
      const idle =
        verb === 'apply'
          ? `sandbox-run: 0 changes are ${done}`
          : expect.stringContaining('nothing of the changes');
      expect(said.filter((line) => line === `sandbox-run: 301 changes are ${done}`)).toHaveLength(1);
      expect(said.filter((line) => !line.includes(' 301 '))).toEqual([idle, idle]);
      expect(existsSync(join(place.workspace, 'end'))).toBe(verb === 'apply');
    }
    expect(read('f300')).toBe('300\n');
  });
});
