// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { parseShell } from '../../../../src/judge/shell/parse.ts';
import { codeOf } from './fixtures.ts';

const directory = mkdtempSync(join(tmpdir(), 'numbers-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const CODE = 'a[$(touch p)]';

/** True if bash runs the code in a variable. */
function runsCode(script: string, env: Readonly<Record<string, string>> = {}): boolean {
  const mark = join(directory, 'p');
  rmSync(mark, { force: true });
  try {
    execFileSync('/bin/bash', ['--norc', '-c', script], {
      cwd: directory,
      env: { PATH: '/usr/bin:/bin', ...env },
      stdio: 'ignore',
    });
  } catch {
    // Many of these end with an error.
  }
  return existsSync(mark);
}

const names = ['RANDOM', 'SRANDOM', 'SECONDS', 'OPTIND', 'HISTCMD', 'BASHPID', 'LINENO'];
const ways: readonly ((name: string) => string)[] = [
  (name) => `${name}='${CODE}'`,
  (name) => `${name}+='${CODE}'`,
  (name) => `export ${name}='${CODE}'`,
  (name) => `declare ${name}='${CODE}'`,
  (name) => `readonly ${name}='${CODE}'`,
  (name) => `command export ${name}='${CODE}'`,
  (name) => `f() { local ${name}='${CODE}'; }; f`,
  (name) => `read ${name} <<< '${CODE}'`,
  (name) => `for ${name} in '${CODE}'; do :; done`,
  (name) => `mapfile -t ${name} <<< '${CODE}'`,
  (name) => `${name}=('${CODE}')`,
  (name) => `eval "${name}='${CODE}'"`,
  (name) => `${name}='${CODE}' eval :`,
  (name) => `printf -v ${name} %s '${CODE}'`,
  (name) => `unset ${name}; : "\${${name}:=${CODE}}"`,
];

describe('a variable that bash evaluates while it assigns to it', () => {
  const scripts = names.flatMap((name) => ways.map((way) => way(name)));
  it.each(scripts)('gets only numbers: %s', (script) => {
    expect(codeOf(script)).toBeDefined();
  });

  it('was found with the bash that is here', () => {
    const running = scripts.filter((script) => runsCode(script));
    for (const name of ['RANDOM', 'SRANDOM', 'OPTIND', 'HISTCMD', 'SECONDS', 'BASHPID'])
      expect(running.some((script) => script.includes(name))).toBe(true);
  });

  it('is each one that bash says is an integer', () => {
    const listed = execFileSync('/bin/bash', ['--norc', '-c', 'declare -pi'], { encoding: 'utf8' });
    const integers = [...listed.matchAll(/^declare -\w+ (\w+)/gm)].map((match) => match[1]);
    expect(integers).toContain('RANDOM');
    for (const name of integers) expect(codeOf(`${name}='${CODE}'`)).toBeDefined();
  });

  it.each([
    'SECONDS=0',
    'OPTIND=1',
    'RANDOM=42',
    'f() { local OPTIND opt; local OPTIND=1; }; f',
    'unset OPTIND',
  ])('may get a number: %s', (script) => expect(codeOf(script)).toBeUndefined());
});

describe('a number that is not surely there', () => {
  const running = [
    'echo $((x))',
    '( x=5 ); echo $((x))',
    'false && x=5; echo $((x))',
    'true || x=5; echo $((x))',
    'x=5 true; echo $((x))',
    'echo $((x)); x=5',
    'if false; then x=5; fi; [[ $x -eq 1 ]]',
    'if false; then x=5; elif false; then x=6; fi; echo $((x))',
    '( x=5 ); y=abc; echo ${y:x}',
    'x=5 & wait; echo $((x))',
    'x=5 | true; echo $((x))',
    'while false; do x=5; done; echo $((x))',
    'while break; x=5; do :; done; echo $((x))',
    'for x in $(seq 0); do :; done; echo $((x))',
    'case a in b) x=5;; esac; echo $((x))',
    'f() { x=5; }; echo $((x))',
    'f() { local x=5; }; f; echo $((x))',
    'local x=5; echo $((x))',
    'export x=5 y=$((x))',
    '{ x=5; } >/nonexistent/file; echo $((x))',
    'echo "$(x=5)"; echo $((x))',
    'y=1; (( y = 1 / 0, x = 5 )); echo $((x))',
    'false && (( x = 5 )); echo $((x))',
    ': $(( 0 && (x = 5) )); echo $((x))',
    ': $(( 1 ? 2 : (x = 5) )); echo $((x))',
    ': ${HOME:-$((x=5))}; echo $((x))',
    'echo $((1/0)); x=5\necho $((x))',
    'echo $((08)); x=5\necho $((x))',
    'UID=5; x=5\necho $((x))',
    'readonly z=1\nz=2; x=5\necho $((x))',
    'f() { readonly z=1; }; f\nz=2; x=5\necho $((x))',
    "eval 'readonly z=1'\nz=2; x=5\necho $((x))",
    "eval 'false && x=5'; echo $((x))",
    "( x=5 ); eval 'echo $((x))'",
    '/bin/ls >$((x=5)); echo $((x))',
    '! { false && x=5; }; echo $((x))',
    '{ x=5; } & wait; echo $((x))',
    'for i in 1; do break; x=5; done; echo $((x))',
    'x+=5; echo $((x))',
  ];
  it.each(running)('runs what it holds, and is refused: %j', (script) => {
    expect(runsCode(script, { x: CODE, HOME: '/' })).toBe(true);
    expect(codeOf(script)).toBeDefined();
  });

  it.each([
    'x=5 [ $x -eq 1 ]',
    'y=$((x=5)) true; echo $((x))',
    '( x=5 ); [ $x -eq 1 ]',
    'x=08; echo $((x))',
    'x=5 >/nonexistent/file; echo $((x))',
    'export -p x=5; echo $((x))',
  ])('is refused too where it does no harm with this bash: %j', (script) => {
    expect(codeOf(script)).toBeDefined();
  });
});

describe('numbers that are surely there', () => {
  const usual = [
    'for i in 1 2 3; do echo $((i)); done',
    'for i in {1..5}; do echo $((i * 2)); done; echo $((i))',
    'for i in $(seq 3); do [ $i -lt 2 ] && echo $((i + 1)); done',
    'i=0; while [ $i -lt 3 ]; do i=$((i+1)); done',
    'i=0\nwhile [ $i -lt 3 ]\ndo\n  echo $i\n  i=$((i + 1))\ndone\necho $((i))',
    'i=0; until [ $i -ge 3 ]; do ((i++)); done; echo $((i))',
    'for ((i=0; i<3; i++)); do echo $((i)); done',
    'n=0; for f in *.ts; do n=$((n+1)); done; echo $((n*2))',
    'count=0; f() { count=$((count+1)); }; f; f; echo $((count))',
    'f() { local n=0; n=$((n+1)); echo $((n)); }; f',
    'start=$(date +%s)\nsleep 1\nend=$(date +%s)\necho $((end - start))',
    'a=3; b=4\ntotal=$((a + b))\necho $((total * 2))',
    'export PORT=3000 && echo $((PORT + 1))',
    'if true; then n=1; else n=2; fi; echo $((n))',
    'true && n=5 && echo $((n))',
    'x=1; y=abc; echo ${y:x}',
    'n=5; ( echo $((n)) ); echo "$(echo $((n)))"',
    "n=5; eval 'echo $((n))'",
    'n=1; [[ $n -eq 1 ]] && echo one',
    'false; rc=$?; if [ $rc -ne 0 ]; then echo $((rc)); fi',
    'fail=0; for t in a b; do test -f "$t" || fail=1; done; exit $((fail))',
    'sleep 0 & pid=$!; wait $pid',
    'tries=0; while true; do tries=$((tries+1)); if [ $tries -gt 3 ]; then break; fi; done',
    'echo $((RANDOM % 10)) $((SECONDS)) $((LINENO)) $((UID))',
  ];
  it.each(usual)('are understood: %j', (script) => expect(codeOf(script)).toBeUndefined());

  it('are, in a session, not what an earlier command may have unset', () => {
    const problem = (script: string) => {
      const parsed = parseShell(script, { inSession: true });
      return parsed.understood ? undefined : parsed.problem.code;
    };
    for (const name of ['SECONDS', 'LINENO', 'BASHPID', 'RANDOM', 'SRANDOM'])
      expect(problem(`echo $((${name}))`)).toBe('construct');
    for (const name of ['UID', 'EUID', 'PPID']) expect(problem(`echo $((${name}))`)).toBeUndefined();
    expect(problem("bash -c 'echo $((SECONDS))'")).toBeUndefined();
  });
});
