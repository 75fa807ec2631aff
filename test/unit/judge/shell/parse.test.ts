// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import { describe, expect, it } from 'vitest';
import { parseArgv, parseShell } from '../../../../src/judge/shell/parse.ts';
import { codeOf, commandsOf, listed } from './fixtures.ts';

describe('everyday commands', () => {
  it.each([
    ["cat > f <<'EOF'\nhello $x\nEOF", ['cat']],
    ['for f in *.ts; do wc -l "$f"; done', ['wc -l ?parameter']],
    [
      'git commit -m "$(cat <<\'EOF\'\nfix: it\'s "x"\n\nbody\nEOF\n)"',
      ['git commit -m ?command-substitution', 'cat'],
    ],
    ['cd sub && npm test 2>&1 | tail -20', ['cd sub', 'npm test', 'tail -20']],
    ['VAR=x cmd', ['cmd']],
    ['echo $(git rev-parse HEAD)', ['echo ?command-substitution', 'git rev-parse HEAD']],
    ['while read -r line; do echo "$line"; done < f', ['', 'read -r line', 'echo ?parameter']],
    ['if [ -f x ]; then cat x; else true; fi', ['[ -f x ]', 'cat x', 'true']],
    ['echo $?', ['echo ?parameter']],
    ['bash -n script.sh', ['bash -n script.sh']],
    ['bash script.sh a b', ['bash script.sh a b']],
    ['source .venv/bin/activate && pytest', ['source .venv/bin/activate', 'pytest']],
    ['sleep 1 & wait', ['sleep 1', 'wait']],
    ['test -d x || mkdir x', ['test -d x', 'mkdir x']],
    ['case "$x" in a|b) ls;; *) pwd;; esac', ['ls', 'pwd']],
    ['(cd web && npm ci) && echo ok', ['cd web', 'npm ci', 'echo ok']],
    ['mkdir -p a/{b,c}', ['mkdir -p ?literal+brace']],
    ['arr=(a b); for x in "${arr[@]}"; do echo "$x"; done', ['', 'echo ?parameter']],
    ['[[ -f x && "$y" == z* ]] && ls', ['ls']],
    ['[[ -f x\n&& (\ny == z\n) && a \\\n]] && ls', ['ls']],
    ['n=1; while [ $n -lt 5 ]; do n=$((n + 1)); done', ['', '[ ?parameter -lt 5 ]', '']],
    ['for ((i = 0; i < 3; i++)); do echo $((i * 2)); done', ['echo ?arithmetic']],
    ['echo "${x:-none}" ${#x} "${x%.ts}"', ['echo ?parameter ?parameter ?parameter']],
    ['diff <(sort a) <(sort b)', ['diff ?process-substitution ?process-substitution', 'sort a', 'sort b']],
    ['ls ~/x *.ts', ['ls ?tilde+literal ?glob+literal']],
    ['for i in $(seq 1 5); do echo $((i + 1)); done', ['seq 1 5', 'echo ?arithmetic']],
    ['n=$(wc -l < f); echo $((n + 1))', ['', 'wc -l', 'echo ?arithmetic']],
    ['set -euo pipefail; ls', ['set -euo pipefail', 'ls']],
    ['export PATH="$PWD/bin:$PATH"; ls', ['export ?literal+parameter+literal+parameter', 'ls']],
    ['time make -j4', ['make -j4']],
    ['! grep -q x f', ['grep -q x f']],
    ["awk '{print $2}' data.txt | sort -u", ['awk {print $2} data.txt', 'sort -u']],
    ['ls # rm x', ['ls']],
    ['cat <<E; rm x\nbody\nE', ['cat', 'rm x']],
  ])('%s', (source, expected) => {
    expect(listed(source)).toEqual(expected);
  });
});

describe('a command', () => {
  it('stands before what it runs, with its place in the source', () => {
    const source = 'ls a && echo "$(date)"';
    const places = commandsOf(source).map(({ span }) => source.slice(span.start, span.end));
    expect(places).toEqual(['ls a', 'echo "$(date)"', 'date']);
  });

  it('has its assignments and redirects', () => {
    const [command] = commandsOf('A=1 B+=$x run >f 2>&1 <<<text');
    expect(command?.assignments.map(({ name, append, value }) => [name, append, value.value])).toEqual([
      ['A', false, '1'],
      ['B', true, undefined],
    ]);
    expect(
      command?.redirects.map(({ operator, descriptor, target }) => [descriptor, operator, target.value]),
    ).toEqual([
      [undefined, '>', 'f'],
      [2, '>&', '1'],
      [undefined, '<<<', 'text'],
    ]);
  });

  it('runs in the background with everything in it', () => {
    expect(commandsOf('(a; b) & c').map(({ background }) => background)).toEqual([true, true, false]);
  });

  it('inside the text of a runner has the place of that text', () => {
    const source = "sh -c 'rm x'";
    const inner = commandsOf(source)[1];
    expect(inner?.runBy).toBe(0);
    expect(source.slice(inner?.span.start, inner?.span.end)).toBe("'rm x'");
  });
});

describe('what is not understood', () => {
  it.each([
    ['ls \u0007', 'bad_character'],
    ['ls a\rb', 'bad_character'],
    ['ls \ud800', 'bad_character'],
    ['ls \\', 'bad_character'],
    [`echo ${'a'.repeat(70_000)}`, 'too_long'],
    [`echo ${'é'.repeat(33_000)}`, 'too_long'],
    ['$('.repeat(500), 'too_deep'],
    [`${'( '.repeat(60)} a ${') '.repeat(60)}`, 'too_deep'],
    ['sleep 1 & wait $x', 'construct'],
    ['a;'.repeat(600), 'too_many_commands'],
    ["ls 'a", 'syntax_error'],
    ['if a; then b', 'syntax_error'],
    ['l\\\ns', 'ambiguous'],
    ['ls &\\\n>f b', 'ambiguous'],
    ['echo 2>(rm x)', 'ambiguous'],
    ['a=($(rm x))x ls', 'ambiguous'],
    ["ls $'\\x41'", 'construct'],
    ['a[0]=1', 'construct'],
    ['a=([0]=1)', 'construct'],
    ['echo ${a[i]}', 'construct'],
    ['echo ${a[0]:1}', 'construct'],
    ['echo ${a[0]} ${#a[@]}', undefined],
    ['echo ${!x}', 'construct'],
    ['echo ${x@P}', 'construct'],
    ['echo $((x))', 'construct'],
    ["x='a[$(rm y)]'; echo $((x))", 'construct'],
    ['echo $((1 + $(rm x)))', 'construct'],
    ['x=1; read x; echo $((x))', 'construct'],
    ['[[ $x -eq 1 ]]', 'construct'],
    ['[[ -v x ]]', 'construct'],
    ['[[ a\n]]', 'construct'],
    ['[[ (a # b\n) ]]', 'construct'],
    ['[[ a\n== b ]]', 'construct'],
    ['[[ a ==\nb ]]', 'construct'],
    ['[[ -f\na ]]', 'construct'],
    ['ls {fd}>f', 'construct'],
    ['ls 300>f', 'construct'],
    ['ls >&f', 'construct'],
    ['ls <&-x', 'construct'],
    ['cat <<E\nx', 'construct'],
    ['cat <<"a b"\nx\na b', 'construct'],
    ['echo $(cat <<E | wc\nx\nE\n)', 'construct'],
    ["cat <<E\n$(ls 'a\\\n')\nE", 'ambiguous'],
    ["cat <<'E'\na\\\nE", undefined],
    ['coproc ls', 'construct'],
    ['select x in a; do ls; done', 'construct'],
    ['echo "`ls`"', 'construct'],
    ['echo `ls \\`pwd\\``', 'construct'],
    ['echo x<(ls)', 'ambiguous'],
    ["cat <<<<(ls)''", 'ambiguous'],
    ["ls >f'' a", undefined],
    ['ls @(a|b)', 'construct'],
    ['echo $"x"', 'construct'],
    ['$x', 'dynamic_command'],
    ['"$(ls)" a', 'dynamic_command'],
    ['~/bin/x', 'dynamic_command'],
    [':(){ :|:& };:', 'fork_bomb'],
    ['f() { g; }; g() { f & }; f', 'fork_bomb'],
    ['ls() { rm x; }; ls', 'construct'],
    ['f; f() { ls; }', 'ambiguous'],
    ['f() { ls; }; unset f; f', 'builtin'],
    ['if a; then f() { ls; }; fi', 'construct'],
  ])('%s', (source, code) => {
    expect(codeOf(source)).toBe(code);
  });

  it('has a sentence, and what was recognized', () => {
    const parsed = parseShell('ls; $x a');
    if (parsed.understood) throw new Error('understood');
    expect(parsed.problem.message).toMatch(/^\$x .*\.$/);
    expect(parsed.problem.span).toEqual({ start: 4, end: 6 });
    expect(parsed.problem.recognized.map((command) => command.words[0]?.value)).toEqual(['ls', undefined]);
  });
});

describe('functions', () => {
  it('are listed by their bodies, and their calls are marked', () => {
    const commands = commandsOf('f() { ls "$1"; }; f a; env f');
    expect(commands.map(({ words, callsFunction }) => [words[0]?.value, callsFunction])).toEqual([
      ['ls', undefined],
      ['f', true],
      ['env', undefined],
      ['f', undefined],
    ]);
  });
});

describe('an argument vector', () => {
  it('is static, whatever its words look like', () => {
    const parsed = parseArgv(['ls', '$x', '*', 'a b']);
    expect(parsed.understood && parsed.line.commands[0]?.words.map((word) => word.value)).toEqual([
      'ls',
      '$x',
      '*',
      'a b',
    ]);
    expect(parsed.understood && parsed.line.source).toBeUndefined();
  });

  it('has its runners unwrapped', () => {
    const parsed = parseArgv(['env', 'A=1', 'sh', '-c', 'ls | wc']);
    expect(parsed.understood && parsed.line.commands.map((command) => command.words[0]?.value)).toEqual([
      'env',
      'sh',
      'ls',
      'wc',
    ]);
  });

  it.each([[[]], [['']], [['a\0b']], [['sh', '-c', '$x']], [['eval\0']]])('%j is not understood', (argv) => {
    expect(parseArgv(argv).understood).toBe(false);
  });

  it('names no builtins', () => {
    expect(parseArgv(['test', '-v', 'a[1]']).understood).toBe(true);
  });
});
