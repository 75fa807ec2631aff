import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { execaSync } from 'execa';
import { afterAll, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { HOST } from '../support/tiers.ts';
import { makeAskingConfiguration } from '../support/unjudged-policy.ts';
import { cli, makePlace, startCli } from './support.ts';

// What a command made is its own for the next one, which is another process: of the command line, or of an agent's hook.

const made = makePlace();
const place = {
  ...made,
  env: {
    ...made.env,
    XDG_STATE_HOME: join(made.root, 'state'),
    XDG_CONFIG_HOME: makeAskingConfiguration(made.root),
    GIT_CONFIG_GLOBAL: '/dev/null',
  },
};
const record = join(place.env.XDG_STATE_HOME, 'sandbox-run/made');
const at = (name: string) => join(place.workspace, name);
const git = (...args: string[]) =>
  execaSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], { cwd: place.workspace });

beforeEach(() => {
  rmSync(place.env.XDG_STATE_HOME, { recursive: true, force: true });
  rmSync(place.workspace, { recursive: true, force: true });
  mkdirSync(place.workspace);
  git('init', '-q');
  writeFileSync(at('tracked'), 'tracked\n');
  git('add', '.');
  git('commit', '-qm', 'first');
});
afterAll(() => place.dispose());

const ASKED = 126;
const run = async (command: string) => (await cli(place, ['--ask', 'nobody', '-c', command])).exitCode;

/** Longer than the clock of files is behind: what is made in the tick before a command counts as its own. */
async function tick(): Promise<void> {
  const from = Date.now();
  await eventually(() => expect(Date.now()).toBeGreaterThan(from + 20));
}

const MINE = 'of the user\n';

describe('what an earlier command made', () => {
  it.each<[string, string]>([
    ['echo 1 > f', 'rm f'],
    // Without namespaces /tmp is the host's, and closed where the workspace lies in it.
    ['echo 1 > f', HOST.namespaces ? 'mv f /tmp/' : 'mv f "$TMPDIR"/'],
    ['mkdir -p d/e; echo 1 > d/e/f', 'rm -rf d'],
    ['mkdir d; echo 1 > d/f', 'git clean -fd'],
    ['echo 1 > f', 'git clean -fdx'],
    ['echo 1 > f', 'git clean -f f'],
    [
      'echo 1 > f; git add f; git -c user.name=a -c user.email=a@b commit -qm f; echo 2 > f',
      'git checkout .',
    ],
    ['echo 1 > f', 'echo 2 > f; rm f'],
    ['echo 1 > f', 'mv f g && rm g'],
  ])('%s, then without a question: %s', async (before, after) => {
    expect(await run(before)).toBe(0);
    expect(await run(after)).toBe(0);
  });

  it.each<[string, string]>([
    ['echo 1 > f', 'rm f notes'],
    ['echo 1 > f', 'git clean -fd'],
    ['mkdir d; echo 1 > d/f; cp notes d/copy', 'git clean -fd d; rm -rf d notes'],
    ['echo 1 > f', 'git stash; git clean -fd'],
    ['echo 1 > f', 'mv notes f; rm f'],
  ])('%s, then with a question, for the sake of notes: %s', async (before, after) => {
    writeFileSync(at('notes'), MINE);
    await tick();
    expect(await run(before)).toBe(0);
    expect(await run(after)).toBe(ASKED);
    expect(readFileSync(at('notes'), 'utf8')).toBe(MINE);
  });

  it('is known to a hook, which only decides', async () => {
    expect(await run('echo 1 > f')).toBe(0);
    const check = async (command: string) => (await cli(place, ['check', '-c', command])).exitCode;
    expect(await check('rm f')).toBe(0);
    appendFileSync(at('f'), MINE);
    expect(await check('rm f')).toBe(10);
  });

  it('is known of commands that ran at once', async () => {
    const names = ['a', 'b', 'c', 'd'];
    const all = names.map((name) => startCli(place, ['-c', `echo ${name} > ${name}`]));
    for (const one of await Promise.all(all)) expect(one.exitCode).toBe(0);
    expect(await run(`rm ${names.join(' ')}`)).toBe(0);
  });
});

describe('a file is the user’s again', () => {
  it.each<[string, () => void]>([
    ['written in place', () => writeFileSync(at('f'), MINE)],
    ['appended to', () => appendFileSync(at('f'), MINE)],
    ['written with the same size', () => writeFileSync(at('f'), '2\n')],
    [
      'written, and its time set back',
      () => {
        const { atime, mtime } = statSync(at('f'));
        writeFileSync(at('f'), '2\n');
        utimesSync(at('f'), atime, mtime);
      },
    ],
    [
      'replaced by a rename, as editors do',
      () => {
        writeFileSync(at('f.new'), MINE);
        renameSync(at('f.new'), at('f'));
      },
    ],
    [
      'removed and made again',
      () => {
        rmSync(at('f'));
        writeFileSync(at('f'), '1\n');
      },
    ],
    ['given another name as well', () => linkSync(at('f'), at('g'))],
    ['given another mode', () => chmodSync(at('f'), 0o600)],
  ])('that was %s', async (_, change) => {
    expect(await run('echo 1 > f')).toBe(0);
    change();
    expect(await run('rm f')).toBe(ASKED);
    expect(await run('rm -rf .')).toBe(ASKED);
    expect(await run('git clean -fd')).toBe(ASKED);
    expect(existsSync(at('f'))).toBe(true);
  });

  it.each([
    'mv notes f',
    'ln -f notes f',
    'ln notes n2; rm f; mv n2 f',
    'python3 -c \'import os; os.replace("notes", "f")\'',
    'python3 -c \'import os; os.link("notes", "x"); os.replace("x", "f"); os.utime("f", (1, 1))\'; touch f',
    'touch -r f notes; python3 -c \'import os; os.rename("notes", "f")\'; touch f',
  ])('whose place a command gave to another one: %s', async (swap) => {
    writeFileSync(at('notes'), MINE);
    await tick();
    expect(await run('echo 1 > f')).toBe(0);
    expect(await run(swap)).toBe(0);
    expect(readFileSync(at('f'), 'utf8')).toBe(MINE);
    expect(await run('rm f')).toBe(ASKED);
  });

  it('where another workspace took the place of the one', async () => {
    expect(await run('echo 1 > f')).toBe(0);
    renameSync(place.workspace, join(place.root, 'moved'));
    execaSync('cp', ['-a', join(place.root, 'moved'), place.workspace]);
    rmSync(join(place.root, 'moved'), { recursive: true });
    expect(await run('rm f')).toBe(ASKED);
  });
});

describe('the record', () => {
  const files = () => readdirSync(record).map((name) => join(record, name));

  it('is its owner’s alone, and out of every command’s reach', async () => {
    expect(await run('echo 1 > f')).toBe(0);
    const [file = ''] = files();
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(statSync(record).mode & 0o777).toBe(0o700);
    const reach = `echo x >> ${file} || ls ${record}`;
    expect((await cli(place, ['--approve', '-c', reach])).exitCode).not.toBe(0);
    expect((await cli(place, ['--approve', '--rw', place.root, '-c', reach])).exitCode).not.toBe(0);
  });

  it.each<[string, (file: string) => void]>([
    ['is not JSON', (file) => writeFileSync(file, 'nothing\n{"f":1}\n[1,2,3]\n["f"]\nnull\n')],
    ['was cut', (file) => writeFileSync(file, readFileSync(file).subarray(0, -9))],
    ['others may write', (file) => chmodSync(file, 0o666)],
    ['has another name', (file) => linkSync(file, join(place.root, 'another'))],
    [
      'is too large',
      (file) => writeFileSync(file, Buffer.concat([readFileSync(file), Buffer.alloc(9_000_000, ' ')])),
    ],
    [
      'is a directory',
      (file) => {
        rmSync(file);
        mkdirSync(file);
      },
    ],
  ])('that %s has nothing, and stops no command', async (_, damage) => {
    expect(await run('echo 1 > f')).toBe(0);
    for (const file of files()) damage(file);
    expect(await run('rm f')).toBe(ASKED);
    expect(await run('echo 1 > g')).toBe(0);
    rmSync(join(place.root, 'another'), { force: true });
  });

  it('goes on behind a line that was never finished', async () => {
    expect(await run('echo 1 > f')).toBe(0);
    for (const file of files()) appendFileSync(file, '\n["g');
    expect(await run('echo 1 > g')).toBe(0);
    expect(await run('rm f g')).toBe(0);
  });

  it('stays within bounds', async () => {
    expect(await run('echo 1 > f')).toBe(0);
    const [file = ''] = files();
    const lines = Array.from(
      { length: 20_000 },
      (_, n) => `\n${JSON.stringify([at(`old/${n}`), '1:2:3:4:5:6:7'.repeat(8)])}`,
    );
    writeFileSync(file, lines.join(''));
    expect(statSync(file).size).toBeGreaterThan(2 * 1024 * 1024);
    expect(await run('echo 1 > g')).toBe(0);
    expect(statSync(file).size).toBeLessThan(1024 * 1024);
    expect(await run('rm g')).toBe(0);
    expect(readdirSync(record)).toHaveLength(1);
  });

  it('of no use for long goes', async () => {
    expect(await run('echo 1 > f')).toBe(0);
    const [file = ''] = files();
    renameSync(file, join(record, 'old'));
    utimesSync(join(record, 'old'), 1, 1);
    expect(await run('echo 1 > g')).toBe(0);
    expect(files()).toEqual([file]);
  });
});
