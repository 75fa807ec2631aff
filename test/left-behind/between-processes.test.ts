import { execFileSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { cli, makePlace, type Place } from '../cli/support.ts';
import { patience } from '../support/slow-host.ts';

/**
 * What a process knows of a large tree is kept for the next one. Here a command, or the user after it, makes what is known untrue,
 * and the next command plants what git runs outside.
 */
describe('a tree that was looked through by an earlier process', { timeout: patience(120_000) }, () => {
  const places: Place[] = [];
  let place: Place;
  const env = () => ({ ...place.env, XDG_STATE_HOME: join(place.root, 'state') });
  const run = (script: string) => cli(place, ['-c', script], { env: env() });
  const indexes = () => join(place.root, 'state/sandbox-run/indexes');
  const saved = () =>
    existsSync(indexes()) ? readdirSync(indexes()).map((name) => join(indexes(), name)) : [];
  const file = () => saved()[0] ?? '';
  const outside = (script: string) =>
    execFileSync('bash', ['-c', script], { cwd: place.workspace, env: env(), stdio: 'pipe' }).toString();
  const makeTree = () => {
    for (let i = 0; i < 600; i++) mkdirSync(join(place.workspace, `${i % 20}`, `${i}`), { recursive: true });
  };
  /** A hook that stays there would run at the user's next commit. */
  const plants = async (repository: string) => {
    const answer = await run(
      `printf '#!/bin/sh\\n' > evil; chmod +x evil; cp evil ${repository}/.git/hooks/pre-commit`,
    );
    return { stays: existsSync(join(place.workspace, repository, '.git/hooks/pre-commit')), answer };
  };

  beforeAll(() => {
    // Positive control: what is planted where nobody looks does stay.
    place = makePlace();
    places.push(place);
    outside('git init -q a; cp /bin/true a/.git/hooks/pre-commit');
    expect(existsSync(join(place.workspace, 'a/.git/hooks/pre-commit'))).toBe(true);
  });
  beforeEach(async () => {
    place = makePlace();
    places.push(place);
    makeTree();
    expect(await run('true')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(saved()).toHaveLength(1);
  });
  afterAll(() => {
    for (const one of places) one.dispose();
  });

  it('is kept where no command reads or writes it, and for its owner alone', async () => {
    expect(lstatSync(file()).mode & 0o777).toBe(0o600);
    const before = readFileSync(file());
    const answer = await run(
      `cat ${file()}; : > ${file()}; : > ${indexes()}/other; rm -r ${indexes()}; true`,
    );
    expect(answer.stdout).toBe('');
    expect(readFileSync(file()).equals(before)).toBe(true);
    expect(saved()).toHaveLength(1);
  });

  it('has the repositories that came meanwhile', async () => {
    outside('git init -q 3/3');
    expect((await plants('3/3')).stays).toBe(false);
  });

  it('has what a command moved, exchanged and gave old times to', async () => {
    outside('git init -q 3/3; git init -q 4/4');
    await run('mv 3 30; mv 4 3; mv 30 4; touch -d @0 3 4 3/4 4/3 .');
    for (const repository of ['3/4', '4/3']) expect((await plants(repository)).stays).toBe(false);
  });

  it('has what a command made and unmade in no time', async () => {
    for (let i = 0; i < 8; i++) {
      await run('git init -q 5/5; mv 5/5/.git 5/5/x');
      outside('mv 5/5/x 5/5/.git');
      const { stays } = await plants('5/5');
      expect(stays).toBe(false);
      outside('rm -rf 5/5/.git');
    }
  });

  it.each<[string, () => void]>([
    ['damaged', () => writeFileSync(file(), readFileSync(file()).fill(7, 100, 5000))],
    ['cut off', () => writeFileSync(file(), readFileSync(file()).subarray(0, 5000))],
    ['empty', () => writeFileSync(file(), '')],
    [
      'a link',
      () => {
        const name = file();
        renameSync(name, join(place.root, 'elsewhere'));
        symlinkSync(join(place.root, 'elsewhere'), name);
      },
    ],
    ['a file with another name', () => linkSync(file(), join(place.root, 'other'))],
    ['of an earlier time', () => utimesSync(file(), 0, 0)],
  ])('is looked through anew where what was kept is %s', async (_what, spoil) => {
    outside('git init -q 3/3');
    spoil();
    const { stays, answer } = await plants('3/3');
    expect(stays).toBe(false);
    expect(answer.stderr).not.toMatch(/index/);
  });

  it('takes up bounded room, whatever else is there', async () => {
    for (let i = 0; i < 40; i++) writeFileSync(join(indexes(), `${i}`), 'x');
    unlinkSync(saved().find((path) => path.length > indexes().length + 10) ?? '');
    expect(await run('true')).toMatchObject({ exitCode: 0, stderr: '' });
    expect(saved().length).toBeLessThanOrEqual(32);
    expect(saved().some((path) => lstatSync(path).size > 10_000)).toBe(true);
  });

  it('is looked through where nothing can be kept', async () => {
    unlinkSync(file());
    outside(`rmdir ${indexes()}; touch ${indexes()}; git init -q 3/3`);
    const { stays, answer } = await plants('3/3');
    expect(stays).toBe(false);
    expect(answer.stderr).not.toMatch(/indexes|ENOTDIR/);
  });
});
