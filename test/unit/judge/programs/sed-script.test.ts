import { describe, expect, it } from 'vitest';
import { inspectSedScript } from '../../../../src/judge/programs/families/sed.ts';

const effectsOf = (script: string) =>
  inspectSedScript(script, script)
    .map(({ effect }) => effect)
    .join(' ');

describe('inspectSedScript', () => {
  it.each([
    's/a/b/',
    's/a/b/g',
    's/a/b/2gpI',
    's|a|b|',
    's#/usr#/opt#',
    's/[/]/x/',
    's/\\//x/',
    's/[^]/]/x/',
    'y/abc/xyz/',
    '1,20p',
    '$d',
    '/a/,/b/d',
    '/a/I,+3d',
    '0~2p',
    '\\#a#d',
    '/^$/d;s/a/b/',
    '/x/{s/a/b/;p}',
    '/x/!d',
    '1!G;h;$!d',
    ':a;N;$!ba;s/\\n/ /g',
    'a\\\ntext e w r',
    'i text',
    '5c\\text',
    '# e comment',
    'q5',
    '=',
    'w /dev/stdout',
    's/a/b/w /dev/stderr',
    '',
  ])('%s is harmless', (script) => {
    expect(effectsOf(script)).toBe('');
  });

  it.each([
    ['e', 'executes'],
    ['e id', 'executes'],
    ['1e id', 'executes'],
    ['/x/e', 'executes'],
    ['{e id', 'executes'],
    ['s/a/id/e', 'executes'],
    ['s/a/id/ge', 'executes'],
    ['s,a,id,e', 'executes'],
    ['s/[/]/x/e', 'executes'],
    ['s/\\//x/e', 'executes'],
    ['p;e id', 'executes'],
    ['p\ne id', 'executes'],
    ['1,3{p;e id', 'executes'],
    ['a\\\ntext\ne id', 'executes'],
    ['w x', 'writes'],
    ['W x', 'writes'],
    ['/a/w x', 'writes'],
    ['s/a/b/w x', 'writes'],
    ['s/a/b/wx', 'writes'],
    ['s/a/b/gw x', 'writes'],
    ['s/a/b/ew x', 'executes writes'],
    ['r x', 'reads'],
    ['R x', 'reads'],
    ['$r /etc/shadow', 'reads'],
    ['s/a/b', 'invalid'],
    ['s/a', 'invalid'],
    ['y/a/b', 'invalid'],
    ['k', 'invalid'],
    ['/a', 'invalid'],
    ['s/a/b/Z', 'invalid'],
    ['p p', 'invalid'],
  ])('%s does: %s', (script, expected) => {
    expect(effectsOf(script)).toBe(expected);
  });
});
