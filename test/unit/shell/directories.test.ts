import { describe, expect, it } from 'vitest';
import { directoriesOf } from './fixtures.ts';

describe('directories in force', () => {
  it.each([
    ['ls', ['ls: ./']],
    ['cd a && ls', ['cd a: ./', 'ls: ./a']],
    ['cd a; ls', ['cd a: ./', 'ls: ./ ./a']],
    ['cd a || ls', ['cd a: ./', 'ls: ./']],
    ['cd a || exit; ls', ['cd a: ./', 'exit: ./', 'ls: ./a']],
    ['cd a || exit 1 2; ls', ['cd a: ./', 'exit 1 2: ./', 'ls: ./ ./a']],
    ['cd a && cd b && ls', ['cd a: ./', 'cd b: ./a', 'ls: ./a/b']],
    ['(cd a && ls); pwd', ['cd a: ./', 'ls: ./a', 'pwd: ./']],
    ['{ cd a; } && ls', ['cd a: ./', 'ls: ./a']],
    ['cd a | ls; pwd', ['cd a: ./', 'ls: ./', 'pwd: ./']],
    ['cd a & ls', ['cd a: ./', 'ls: ./']],
    ['! cd a && ls', ['cd a: ./', 'ls: ./']],
    ['if cd a; then ls; else pwd; fi', ['cd a: ./', 'ls: ./a', 'pwd: ./']],
    ['case x in a) cd a;; esac; ls', ['cd a: ./', 'ls: ./ ./a']],
    ['x=$(cd a && ls); pwd', [': ./', 'cd a: ./', 'ls: ./a', 'pwd: ./']],
    ['for d in a b; do cd $d; ls; done; pwd', ['cd ?parameter: -', 'ls: -', 'pwd: -']],
    ['for d in a b; do (cd $d && ls); done; pwd', ['cd ?parameter: ./', 'ls: ./?parameter', 'pwd: ./']],
    ['true | for d in a b; do ls; cd b; done; pwd', ['true: ./', 'ls: -', 'cd b: -', 'pwd: ./']],
    ['cd "$x" && ls', ['cd ?parameter: ./', 'ls: ./?parameter']],
    ['cd && ls', ['cd: ./', 'ls: ./?tilde']],
    ['cd - && ls', ['cd -: ./', 'ls: -']],
    ['cd -- a && ls', ['cd -- a: ./', 'ls: ./a']],
    ['pushd a; ls', ['pushd a: ./', 'ls: -']],
    ['CDPATH=/ && cd a && ls', [': -', 'cd a: -', 'ls: -']],
    ['export HOME=/; cd; ls', ['export HOME=/: -', 'cd: -', 'ls: -']],
    ['for CDPATH in /; do ls; done', ['ls: -']],
    ["eval 'HOME=/'; cd && ls", ['eval HOME=/: ./', ': -', 'cd: -', 'ls: -']],
    [
      "env CDPATH=/ bash -c 'cd a && ls'",
      ['env CDPATH=/ bash -c cd a && ls: -', 'bash -c cd a && ls: -', 'cd a: -', 'ls: -'],
    ],
    ['source x; ls', ['source x: ./', 'ls: -']],
    ['source .venv/bin/activate; ls', ['source .venv/bin/activate: ./', 'ls: ./']],
    ['command cd a && ls', ['command cd a: ./', 'cd a: ./', 'ls: ./ ./a']],
    ['eval "cd a" && ls', ['eval cd a: ./', 'cd a: ./', 'ls: ./ ./a']],
    ["sh -c 'cd a && ls'; pwd", ['sh -c cd a && ls: ./', 'cd a: ./', 'ls: ./a', 'pwd: ./']],
    ['env -C a ls', ['env -C a ls: ./', 'ls: ./a']],
    ['find . -execdir ls \\;', ['find . -execdir ls ;: ./', 'ls: -']],
    ['f() { ls; }; cd a; f', ['ls: -', 'cd a: ./', 'f: ./ ./a']],
    ['f() { ls; }; f; pwd', ['ls: ./', 'f: ./', 'pwd: ./']],
    ["trap 'rm x' EXIT; ls", ['trap rm x EXIT: ./', 'rm x: -', 'ls: ./']],
    ['exit; ls', ['exit: ./', 'ls: -']],
    [
      'cd a; cd b; cd c; cd d; ls',
      [
        'cd a: ./',
        'cd b: ./ ./a',
        'cd c: ./ ./a ./a/b ./b',
        'cd d: ./ ./a ./a/b ./a/b/c ./a/c ./b ./b/c ./c',
        'ls: -',
      ],
    ],
  ])('%s', (source, expected) => {
    expect(directoriesOf(source)).toEqual(expected);
  });
});
