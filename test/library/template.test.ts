import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RunOptions, TemplateValue } from '../../src/index.ts';
import { makePlaceWithSandbox } from './support.ts';

const { place, sandbox } = await makePlaceWithSandbox();

/** Prints each of its arguments, and a character after it that no value here has. */
const SHOW = "printf '%s|' ";
const shown = (stdout: string) => stdout.split('|').slice(0, -1);

const refusal = { name: 'SandboxError', code: 'usage.invalid' };

/** What somebody writes who wants more than an argument. */
const HOSTILE = [
  "'; touch owned #",
  '"; touch owned #',
  '$(touch owned)',
  '`touch owned`',
  '; touch owned',
  '\n touch owned\n',
  '&& touch owned',
  '> owned',
  '\\',
  "\\'",
  '*',
  '~',
  '{a,b}',
  '$HOME',
  '',
  ' two  words ',
  'VALUE0E VALUE1E',
];

describe('a template of run', () => {
  it('takes values for single arguments, also within quotes, and arrays for several', async () => {
    const value = "it's $HOME";
    const { stdout, ok } = await sandbox.run`printf '%s|' ${value} "a ${value}" 'b ${value}' c${value}d ${[
      'x y',
      2,
    ]} ${[]} ${0.5}`;
    expect(ok).toBe(true);
    expect(shown(stdout)).toEqual([...[value, `a ${value}`, `b ${value}`, `c${value}d`, 'x y', '2', '0.5']]);
  });

  it('is text for a shell otherwise, as it is written', async () => {
    writeFileSync(join(place.workspace, 'in file'), 'a.b\na+b\n');
    const result = await sandbox.run`X=${'1 2'}; cat < ${'in file'} | grep 'a\.b' > ${'out file'} && echo "$X"
      echo $(cat ${'out file'})`;
    expect(result.stdout).toBe('1 2\na.b\n');
  });

  it.each(HOSTILE)('a value that is %j stays an argument', async (value) => {
    const { stdout } =
      await sandbox.run`printf '%s|' ${value} "${value}" '${value}' "$(printf '%s' ${value}.)"`;
    // A substitution takes line breaks away at its end, and the dot is behind them.
    expect(shown(stdout)).toEqual([value, value, value, `${value}.`]);
    expect(existsSync(join(place.workspace, 'owned'))).toBe(false);
  });

  it('the same text joined without a template runs what the value says', async () => {
    mkdirSync(join(place.workspace, 'joined'));
    await sandbox.run(`${SHOW}'${HOSTILE[0]}'`, { cwd: 'joined' });
    expect(readdirSync(join(place.workspace, 'joined'))).toEqual(['owned']);
  });

  it('holds for whatever text', async () => {
    const text = fc.string({ unit: fc.constantFrom(...'\'"\\$`(){}[];&|<>*?!#~=\n\t -a0é') });
    const value = text.map((one) => one.replaceAll('|', '/'));
    await fc.assert(
      fc.asyncProperty(value, value, fc.array(value, { maxLength: 3 }), async (one, two, more) => {
        const { stdout } = await sandbox.run`printf '%s|' ${one} "x${two}"'y${one}' ${more} end`;
        expect(shown(stdout)).toEqual([one, `x${two}y${one}`, ...more, 'end']);
      }),
      { numRuns: 60 },
    );
  });

  it.each<[string, () => Promise<unknown>]>([
    ['in text that a shell reads', () => sandbox.run`bash -c "touch ran; echo ${'x'}"`],
    ['as such a text', () => sandbox.run`bash -c ${'touch ran'}`],
    ['in such a text of a value', () => sandbox.run`${'bash'} -c "touch ran; echo ${'x'}"`],
    ['behind eval', () => sandbox.run`eval ${'touch ran'}`],
    ['in a comment', () => sandbox.run`touch ran # ${'x\n'}`],
    ['in a here-document', () => sandbox.run`cat > ran <<EOF\n${'x'}\nEOF`],
    ['in arithmetic', () => sandbox.run`touch ran; echo $((${'x'} + 1))`],
    ['as the name of a variable', () => sandbox.run`${'X'}=1 touch ran`],
    ['as a user', () => sandbox.run`touch ran; ls ~${'root'}`],
    ['in a brace expansion', () => sandbox.run`touch ran {a,${'b'}}`],
    ['as an array within a word', () => sandbox.run`touch ran --x=${['a']}`],
    ['as an array within quotes', () => sandbox.run`touch ran "${['a']}"`],
    ['as a program that is not there', () => sandbox.run`${[]} touch ran`],
  ])('a value %s is refused, and nothing runs', async (_, run) => {
    await expect(run()).rejects.toMatchObject(refusal);
    expect(existsSync(join(place.workspace, 'ran'))).toBe(false);
  });

  it.each([[undefined], [null], [Number.NaN], [{}], [true], ['a\0b'], [[['a']]], [[undefined]]])(
    'the value %o is refused',
    async (value) => {
      // biome-ignore lint/suspicious/noExplicitAny: what a caller without types may pass
      const wrong: any = value;
      await expect(sandbox.run`touch ran ${wrong}`).rejects.toMatchObject(refusal);
      await expect(sandbox.run`touch ran ${wrong}`).rejects.toThrow(/^a template of run: value 1 /);
      expect(existsSync(join(place.workspace, 'ran'))).toBe(false);
    },
  );

  it('takes options before it', async () => {
    mkdirSync(join(place.workspace, 'sub'));
    const values: readonly TemplateValue[] = ['x'];
    const { stdout } = await sandbox.run({ cwd: 'sub', env: { A: '1' } })`echo "$PWD $A" ${values[0] ?? ''}`;
    expect(stdout).toBe(`${place.workspace}/sub 1 x\n`);
    const job = await sandbox.run({ background: true })`echo ${'in the background'}`;
    expect((await job.wait()).stdout).toBe('in the background\n');
    await expect(sandbox.run({ cwd: 'sub', reject: true })`exit ${3}`).rejects.toMatchObject({
      result: { exitCode: 3 },
    });
    const wrong = { tiemout: 1 } as RunOptions;
    expect(() => sandbox.run(wrong)).toThrow(expect.objectContaining(refusal));
    // biome-ignore lint/suspicious/noExplicitAny: what a caller without types may pass
    const noTemplate: any = 'true';
    await expect(sandbox.run({})(noTemplate)).rejects.toMatchObject(refusal);
  });

  it('is judged as the string that it is', async () => {
    const result = await sandbox.run`sudo reboot ${'now'}`;
    expect(result.argv.at(-1)).toBe("sudo reboot 'now'");
  });

  it('is not what an object with a command is: that says what is wrong with it', () => {
    const run = sandbox.run as (asked: unknown) => unknown;
    expect(() => run.call(sandbox, { command: 'ls' })).toThrow('run has no option "command"');
    expect(typeof run.call(sandbox, { timeout: 1000 })).toBe('function');
  });
});
