import { chmodSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { AUTONOMIES } from '../../src/base/words.ts';

import { expectNothingLeft } from '../support/leftovers.ts';
import { cli, expectOneLine, makePlace } from './support.ts';

const place = makePlace();
afterEach(() => expectNothingLeft(place));
afterAll(() => place.dispose());

// These tests need the built-in policy: the other tests have one that lets everything run.
const env = { XDG_CONFIG_HOME: join(place.root, 'no-config'), XDG_STATE_HOME: join(place.root, 'state') };
const run = (...args: readonly string[]) => cli(place, args, { env });
const LEVELS = AUTONOMIES.map((level) => ['--autonomy', level] as const);
/** Those that take the word for a program and look for it. */
const LOOKING = [[], ...LEVELS.filter(([, level]) => level !== 'readonly')];

/** Not found, which is said in one line and asked nobody, although there was somebody to ask. */
async function expectNotFound(command: readonly string[], said: RegExp): Promise<void> {
  for (const level of LOOKING) {
    const result = await run('--ask', 'queue', ...level, ...command);
    expect([level, result]).toEqual([level, expect.objectContaining({ exitCode: 127, stdout: '' })]);
    expectOneLine(result.stderr);
    expect(result.stderr).toMatch(said);
  }
  const readonly = await run('--ask', 'queue', '--autonomy', 'readonly', ...command);
  expect([126, 127]).toContain(readonly.exitCode);
  expectOneLine(readonly.stderr);
  expect((await run('approvals', 'list', '--all', '--json')).stdout).toBe('');
}

describe('a first word that is no program', () => {
  it.each(['a && b', 'echo x > made', 'ls | wc -l', 'ls -la', 'echo $HOME', 'ls;ls'])(
    'needs -c as it is a shell string: %s',
    async (text) => {
      await expectNotFound([text], /: no such program in PATH; a shell string needs -c: sandbox-run -c '/);
      expect(existsSync(join(place.workspace, 'made'))).toBe(false);
    },
  );

  it('says a line that does what was meant', async () => {
    const { stderr } = await run('echo "it\'s" | tr a-z A-Z');
    const line = /sandbox-run (-c '.*')$/m.exec(stderr)?.[1];
    writeFileSync(join(place.workspace, 'words'), `printf '%s\\0' ${line}`);
    const [option = '', text = ''] = (await run('-c', '. ./words')).stdout.split('\0');
    expect(await run(option, text)).toMatchObject({ exitCode: 0, stdout: "IT'S\n", stderr: '' });
  });

  it.each([
    ['chekc', 'check'],
    ['docter', 'doctor'],
    ['aproval', 'approvals'],
    ['polcy', 'policy'],
    ['sesion', 'session'],
    ['uninstall', 'install --uninstall'],
  ])('is %s for %s', async (word, meant) => {
    await expectNotFound(
      [word, 'ls'],
      new RegExp(
        `^sandbox-run: ${word}: no such program in PATH; did you mean sandbox-run ${meant}\\?$`,
        'm',
      ),
    );
  });

  it('is nothing that resembles one of ours', async () => {
    for (const word of ['no-such-program', 'zz', './tool'])
      await expectNotFound([word, 'check'], /^(?!.*(?:did you mean|-c)).*no such (?:program|file)/);
  });

  it('is not found in a shell string either, and asked nobody', async () => {
    const notFound = async (level: readonly string[], text: string) => {
      const result = await run('--ask', 'queue', ...level, '-c', text);
      expect([level, text, result]).toEqual([level, text, expect.objectContaining({ exitCode: 127 })]);
      expect(result.stderr).toContain('no-such-program: command not found');
    };
    for (const level of LOOKING) await notFound(level, 'no-such-program x');
    for (const text of ['no-such-program > made', 'X=1 no-such-program', 'cat < /dev/null; no-such-program'])
      await notFound([], text);
    expect((await run('approvals', 'list', '--all', '--json')).stdout).toBe('');
    // What could put it there is a question (control).
    const asked = await run('--autonomy', 'supervised', '-c', 'touch no-such-program; no-such-program');
    expect(asked.exitCode).toBe(126);
  });

  it('is a program, if there is one', async () => {
    for (const name of ['chekc', 'a && b']) {
      writeFileSync(join(place.workspace, name), '#!/bin/sh\necho the program\n');
      chmodSync(join(place.workspace, name), 0o755);
      expect(await run(`./${name}`)).toMatchObject({ exitCode: 0, stdout: 'the program\n', stderr: '' });
    }
  });

  it('leaves JSON and silence alone', async () => {
    const { stdout, stderr, exitCode } = await run('--json', 'chekc', 'ls');
    expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 127 });
    expect(JSON.parse(stdout)).toMatchObject({ error: { code: 'program.not_found' } });
    expect(await run('-q', 'chekc', 'ls')).toMatchObject({ exitCode: 127, stdout: '', stderr: '' });
  });
});

describe('sandbox-run init', () => {
  it('is a question about us, not about the init program of the host', async () => {
    for (const before of [[], ...LEVELS, ['--json'], ['--timeout', '5']])
      for (const rest of [[], ['--force']]) {
        const result = await run(...before, 'init', ...rest);
        expect(result).toMatchObject({ exitCode: 125, stdout: '' });
        expectOneLine(result.stderr);
        expect(result.stderr).toMatch(/sandbox-run policy init .*sandbox-run install /);
        expect(result.stderr).not.toContain('permit_dangerous');
      }
  });

  it('leaves the program to --, and the word to programs', async () => {
    const result = await run('--autonomy', 'autonomous', '--', 'init');
    // The program is refused, where there is one.
    expect([126, 127]).toContain(result.exitCode);
    expect(result.stderr).not.toContain('policy init');
    expect(await run('--', 'echo', 'init')).toMatchObject({ exitCode: 0, stdout: 'init\n' });
  });
});
