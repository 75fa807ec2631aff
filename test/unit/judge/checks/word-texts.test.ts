import { describe, expect, it } from 'vitest';
import { wordTexts } from '../../../../src/judge/checks/locations.ts';
import { commandIn } from '../../../support/simple-command.ts';

describe('wordTexts', () => {
  it.each([
    ['a', ['a']],
    ["'a b'", ['a b']],
    ['~', ['/home/u']],
    ['~/x', ['/home/u/x']],
    ['$HOME/x', ['/home/u/x']],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's, not ours
    ['"${HOME}/x"', ['/home/u/x']],
    ['"$PWD"/x', ['/w/x']],
    ['src/*.ts', ['src/*.ts']],
    ['{a,b}/x', ['a/x', 'b/x']],
    ['a/"$x"/b', ['a/…']],
    ['$x', ['…']],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's, not ours
    ['${HOME:-x}', ['…']],
    ['a$(ls)', ['a…']],
  ])('of %s are %j', (source, expected) => {
    const word = commandIn(`x ${source}`).words[1];
    const texts = word === undefined ? undefined : wordTexts(word, { home: '/home/u', cwd: '/w' });
    expect(texts?.map(({ text, complete }) => (complete ? text : `${text}…`))).toEqual(expected);
  });

  it('are unknown for the home of somebody else', () => {
    const word = commandIn('x ~root/y').words[1];
    expect(word && wordTexts(word, { home: '/home/u', cwd: '/w' })).toBeUndefined();
  });
});
