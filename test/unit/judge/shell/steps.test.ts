import { describe, expect, it } from 'vitest';
import { stepsOf } from '../../../../src/judge/shell/steps.ts';
import type { Steps } from '../../../../src/model/index.ts';

function accepted(source: string): Steps {
  const read = stepsOf(source);
  if (!read.ok) throw new Error(`${source}: ${read.problem.message}`);
  return read.steps;
}

function refused(source: string): string {
  const read = stepsOf(source);
  if (read.ok) throw new Error(`accepted: ${source}`);
  return read.problem.message;
}

const stage = (words: readonly string[], ...redirects: readonly object[]) => ({ words, redirects });

describe('a shell string as steps', () => {
  it('keeps pipelines, lists and their order', () => {
    expect(accepted('a b | c && d || e; f\ng').pipelines).toEqual([
      { joinedBy: 'then', stages: [stage(['a', 'b']), stage(['c'])] },
      { joinedBy: 'and', stages: [stage(['d'])] },
      { joinedBy: 'or', stages: [stage(['e'])] },
      { joinedBy: 'then', stages: [stage(['f'])] },
      { joinedBy: 'then', stages: [stage(['g'])] },
    ]);
  });

  it('reads quoted words as the program will get them', () => {
    expect(accepted(String.raw`p '' "a b" c\ d '*' "\$x" $'\n' é`).pipelines[0]?.stages[0]?.words).toEqual([
      'p',
      '',
      'a b',
      'c d',
      '*',
      '$x',
      '\n',
      'é',
    ]);
  });

  it('reads every redirect that names a file, a descriptor or a text', () => {
    expect(
      accepted('p <a >b >>c >|d <>e 2>f 3<&1 2>&1 4>&- &>g &>>h <<<"i j"').pipelines[0]?.stages[0],
    ).toEqual(
      stage(
        ['p'],
        { kind: 'read', fd: 0, path: 'a' },
        { kind: 'write', fd: 1, path: 'b' },
        { kind: 'append', fd: 1, path: 'c' },
        { kind: 'write', fd: 1, path: 'd' },
        { kind: 'update', fd: 0, path: 'e' },
        { kind: 'write', fd: 2, path: 'f' },
        { kind: 'copy', fd: 3, from: 1 },
        { kind: 'copy', fd: 2, from: 1 },
        { kind: 'close', fd: 4 },
        { kind: 'write', fd: 1, path: 'g' },
        { kind: 'copy', fd: 2, from: 1 },
        { kind: 'append', fd: 1, path: 'h' },
        { kind: 'copy', fd: 2, from: 1 },
        { kind: 'text', fd: 0, text: 'i j\n' },
      ),
    );
  });

  it('takes |& for a copy of standard error behind the other redirects', () => {
    expect(accepted('a 2>f |& b').pipelines[0]?.stages[0]?.redirects).toEqual([
      { kind: 'write', fd: 2, path: 'f' },
      { kind: 'copy', fd: 2, from: 1 },
    ]);
  });

  it('reads here-documents whose text is known', () => {
    const text = (source: string) => accepted(source).pipelines[0]?.stages[0]?.redirects;
    expect(text("cat <<'E'\n$x `y`\nE\n")).toEqual([{ kind: 'text', fd: 0, text: '$x `y`\n' }]);
    expect(text('cat <<-E\n\tplain\n\tE\n')).toEqual([{ kind: 'text', fd: 0, text: 'plain\n' }]);
    for (const body of ['$x', '`y`', '\\$', 'a\\\nb']) expect(refused(`cat <<E\n${body}\nE\n`)).not.toBe('');
    expect(text('cat <<A 3<<B\none\nA\ntwo\nB\n')).toEqual([
      { kind: 'text', fd: 0, text: 'one\n' },
      { kind: 'text', fd: 3, text: 'two\n' },
    ]);
  });

  it.each([
    ['for i in a; do b; done', /^A loop needs a shell/],
    ['while a; do b; done', /^A loop/],
    ['if a; then b; fi', /^An if .*use && and \|\|/],
    ['case a in a) b;; esac', /^A case/],
    ['(a)', /^A group/],
    ['{ a; }', /^A group/],
    ['{ a; } > f', /^A redirect of a group/],
    ['f() { a; }', /^A function/],
    ['[[ -f a ]]', /^\[\[ … \]\]/],
    ['(( 1 ))', /^\[\[ … \]\] or \(\(/],
    ['a & b', /in the background/],
    ['a | b &', /in the background/],
    ['! a', /negation/],
    ['! a | b', /negation/],
    ['time a', /keyword time/],
    ['coproc a', /./],
    ['ls *.ts', /^A pattern for file names \(\*\.ts\)/],
    ['ls a?', /^A pattern/],
    ['ls [ab]', /^A pattern/],
    ['ls ~', /^A tilde/],
    ['ls ~root', /^A tilde/],
    ['ls {a,b}', /^A brace expansion/],
    ['ls {1..9}', /^A brace expansion/],
    ['echo $HOME', /^A variable \(\$HOME\)/],
    ['echo "$HOME"', /^A variable/],
    ['$x a', /^A variable/],
    ['echo $(a)', /^A command substitution/],
    ['echo `a`', /^A command substitution/],
    ['echo $((1+1))', /^Arithmetic/],
    ['cat <(a)', /^A process substitution/],
    ['a > >(b)', /./],
    ['a > $f', /^A variable/],
    ['a > *', /^A pattern/],
    ['cat <<< $x', /^A variable/],
    ['X=1', /^An assignment/],
    ['X=1 a', /^An assignment \(X=\)/],
    ['export X=1', /builtin export /],
    ['source f', /builtin source/],
    ['. f', /builtin \./],
    ['eval a', /builtin eval/],
    ['exec a', /builtin exec/],
    ['set -e; a', /builtin set/],
    ['exit 1', /builtin exit/],
    ['command a', /builtin command/],
    ['cd', /form of cd/],
    ['cd -', /form of cd/],
    ['cd -P a', /form of cd/],
    ['cd a b', /form of cd/],
    ['cd a | b', /cd in a pipeline/],
    ['cd a > b', /cd in a pipeline/],
    ['a 10> f', /descriptor above 9/],
    ['a > ""', /empty name/],
    ['a >& f', /./],
    ['a <', /./],
    ['a |', /./],
    ["a 'b", /./],
    ['', /no command/],
    ['# nothing', /no command/],
    ['a\0b', /./],
  ])('refuses %s and says what instead', (source, message) => {
    expect(refused(source)).toMatch(message);
  });

  it('refuses more commands than can be judged, at once', () => {
    expect(refused('true;'.repeat(10_000))).not.toBe('');
    expect(refused(`true ${'x'.repeat(70_000)}`)).toMatch(/longer than/);
    expect(refused('('.repeat(5_000))).not.toBe('');
    expect(accepted('true;'.repeat(400)).pipelines).toHaveLength(400);
  });
});
