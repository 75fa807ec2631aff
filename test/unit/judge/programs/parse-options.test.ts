import { describe, expect, it } from 'vitest';
import type { Grammar } from '../../../../src/judge/programs/behaviour.ts';
import { parseOptions } from '../../../../src/judge/programs/options.ts';
import { commandIn } from '../../../support/simple-command.ts';

const GRAMMAR: Grammar = {
  numeric: true,
  flags: 'a b verbose version',
  values: 'n lines',
  optionals: 'c color',
  writes: 'o output output-dir',
  executes: 'compress-program',
};

/** Options as `name=value`, then operands behind `|`, unknown ones behind `?`, possible ones behind `~`. */
function shown(source: string, grammar = GRAMMAR): string {
  const parsed = parseOptions(commandIn(`x ${source}`).words, 1, grammar);
  const options = parsed.options.map(({ name, value }) =>
    value === undefined ? name : `${name}=${value.text}${value.complete ? '' : '…'}`,
  );
  return [
    ...options,
    '|',
    ...parsed.operands.map(({ text, word }) => text || word.source),
    ...parsed.unknown.map(({ source: text }) => `?${text}`),
    ...parsed.openEnded.map(({ source: text }) => `~${text}`),
  ].join(' ');
}

describe('parseOptions', () => {
  it.each([
    ['-a -b', 'a b |'],
    ['-ab', 'a b |'],
    ['-abn5 f', 'a b n=5 | f'],
    ['-n 5 f', 'n=5 | f'],
    ['-n5', 'n=5 |'],
    ['-an', 'a n |'],
    ['--lines=5', 'lines=5 |'],
    ['--lines 5', 'lines=5 |'],
    ['--li 5', 'lines=5 |'],
    ['--compress=./x', 'compress-program=./x |'],
    ['--compr ./x', 'compress-program=./x |'],
    ['--outp=x', '| ?--outp=x'],
    ['--output=x', 'output=x |'],
    ['--ver', '| ?--ver'],
    ['--verb', 'verbose |'],
    ['--color f', 'color | f'],
    ['--color=always f', 'color=always | f'],
    ['-c f', 'c | f'],
    ['-cx f', 'c=x | f'],
    ['f -a g', 'a | f g'],
    ['-- -a', '| -a'],
    ['- f', '| - f'],
    ['-20 f', '| f'],
    ['-z', '| ?-z'],
    ['-az', 'a | ?-az'],
    ['--nosuch', '| ?--nosuch'],
    ['-o', 'o |'],
    ['"-o" f', 'o=f |'],
    ["-'o'f", 'o=f |'],
    ['-o"$x"', 'o=… |'],
    ['--output="$x"', 'output=… |'],
    ['--output=a/"$x"', 'output=a/… |'],
    ['"$x"', '| "$x" ~"$x"'],
    ['-- "$x"', '| "$x"'],
    ['./"$x"', '| ./'],
    ['--"$x"', '| ?--"$x"'],
    ['-"$x"', '| ?-"$x"'],
  ])('reads %s', (source, expected) => {
    expect(shown(source)).toBe(expected);
  });

  it.each([
    ['-name x', 'name=x |'],
    ['-name=x', 'name=x |'],
    ['--name=x y', 'name=x | y'],
    ['-race ./...', 'race | ./...'],
    ['-nam x', '| x ?-nam'],
  ])('reads single-dash %s', (source, expected) => {
    expect(shown(source, { style: 'single-dash', values: 'name', flags: 'race' })).toBe(expected);
  });

  it('stops at the first operand where the grammar says so', () => {
    const parsed = parseOptions(commandIn('x -a y -b').words, 1, { ...GRAMMAR, stopAtOperand: true });
    expect(parsed.options.map(({ name }) => name)).toEqual(['a']);
    expect(parsed.next).toBe(2);
  });
});
