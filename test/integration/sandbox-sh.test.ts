// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { expectNothingLeft } from '../support/leftovers.ts';
import { type Ended, makeShellPlace, runProgram, type ShellStart } from './sandbox-sh-support.ts';

const place = makeShellPlace();
afterAll(async () => {
  await expectNothingLeft(place);
  place.dispose();
});

const file = (name: string, text: string | Uint8Array, mode = 0o644) =>
  writeFileSync(join(place.workspace, name), text, { mode });
mkdirSync(join(place.workspace, 'sub'));
file('plain.sh', 'echo plain "$0" "$#" "$@"\n');
file('crlf.txt', 'a\r\nb\r\n');
file('status.sh', 'exit 9\n');
file('empty.sh', '');
file('no-newline.sh', 'echo last');
file('errexit.sh', 'set -e\nfalse\necho not reached\n');
file('option.sh', 'set -u\necho ${nope}\n');
file('return.sh', 'echo a\nreturn 3\necho b\n');
file('lines.sh', 'echo $LINENO\n\necho $LINENO\n');
file('syntax.sh', 'if then\n');
file('stdin.sh', 'read x; echo "got $x"; cat\n');
file('here.sh', 'cat <<EOF\nhere $0\nEOF\n');
file('trap.sh', 'trap "echo bye" EXIT\necho work\nexit 4\n');
file('where.sh', 'echo "$(dirname "${BASH_SOURCE[0]}")"; f() { echo "${BASH_SOURCE[0]} $LINENO"; }; f\n');
file('binary.sh', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1, 2, 10]));
file('latin.sh', Buffer.from("printf '\xe9\\n'\n", 'latin1'));
file('utf8.sh', 'echo grüße\n');
file('- odd.sh', 'echo odd\n');
file('big.sh', `${'# a comment that is there to be long\n'.repeat(5000)}echo big\n`);

type Row = readonly [argv: readonly string[], more?: ShellStart & { readonly stderr?: false }];

/**
 * What is different because the text of a script is given to bash as text, so that what was judged is what runs: what bash
 * says before a syntax error, and its status where `set -u` finds a variable that is not set.
 */
const AS_FOR_TEXT: Readonly<Record<string, (real: Ended) => Ended>> = {
  'syntax.sh': (real) => ({
    ...real,
    stderr: real.stderr.replaceAll('syntax.sh: ', 'syntax.sh: -c: '),
  }),
  'option.sh': (real) => ({ ...real, status: 127 }),
};

/** What a real bash and ours are called with. `stderr: false`: what bash says is about itself. */
const ROWS: readonly Row[] = [
  [['-c', 'echo hello']],
  [['-c', '']],
  [['-c', 'exit 7']],
  [['-c', 'true']],
  [['-c', 'false']],
  [['-c', 'echo out; echo err >&2; exit 5']],
  [['-c', 'echo "$0" "$1" "$#"']],
  [['-c', 'echo "$0" "$1" "$#"', 'name']],
  [['-c', 'echo "$0" "$1" "$#"', 'name', 'a b', '']],
  [['-c', 'printf "<%s>" "$@"', '_', '*', '$x', "'", '"', '\n', '-c', '--']],
  [['-c', '--', 'echo dashes']],
  [['-c', '-', 'echo dash']],
  [['-lc', 'echo login']],
  [['-l', '-c', 'echo login']],
  [['--login', '-c', 'echo login']],
  [['--noprofile', '--norc', '-c', 'echo none']],
  [['-ec', 'false; echo no']],
  [['-e', '-c', 'false || true; echo yes']],
  [['-c', '-e', 'false; echo no']],
  [['-uc', 'echo ${nope}; echo no']],
  [['-xc', 'echo traced $((1 + 1))']],
  // The parts of a pipeline are traced in any order.
  [['-euo', 'pipefail', '-c', 'false | true; echo no']],
  [['-euxo', 'pipefail', '-c', 'echo yes; (exit 3); echo no']],
  [['-o', 'pipefail', '-c', 'false | true']],
  [['-o', 'errexit', '-o', 'nounset', '-c', 'echo $-']],
  [['+e', '-c', 'false; echo yes']],
  [['-fc', 'echo *']],
  [['-nc', 'echo never']],
  [['-vc', 'echo loud']],
  [['-ac', 'x=1; env | grep ^x=']],
  [['-Cc', 'echo a > clobber; echo b > clobber; cat clobber; rm clobber']],
  [['-Eec', 'trap "echo caught" ERR; f() { false; }; f']],
  [['-c', 'nosuchprogram']],
  [['-c', './plain.sh']],
  [['-c', 'kill -TERM $$']],
  [['-c', 'kill -9 $$']],
  [['-c', '(kill -INT $BASHPID); echo $?']],
  [['-c', 'if then']],
  [['-c', 'echo "unclosed']],
  [['-c', 'echo a\necho b\nexit 3']],
  [['-c', 'cat'], { input: 'through\n' }],
  [['-c', 'cat | od -An -c'], { input: Buffer.from([0, 1, 255, 254, 10, 13, 128]) }],
  [['-c', 'cat'], { input: Buffer.alloc(300_000, 'binary\xff\x00', 'latin1') }],
  [['-c', 'read a; read b; echo "$b $a"'], { input: 'one\ntwo\n' }],
  [['-c', 'head -c 3'], { input: 'abcdef' }],
  [['-c', 'cat <<E\nhere $0\nE'], { input: 'unread' }],
  [['-c', 'cat <<<"a string"']],
  [['-c', 'cat < <(echo substituted)']],
  [['-c', 'a=(1 2 3); echo ${#a[@]} ${a[-1]}; [[ x == x ]] && echo $BASH_VERSION']],
  [['-c', 'umask']],
  [['-c', 'umask; pwd'], { cwd: join(place.workspace, 'sub') }],
  [['-c', 'echo "$LANG" "${NOT_PASSED-unset}"']],
  [['-c', 'trap "echo bye" EXIT; exit 2']],
  [['-c', 'sleep 0.1 & wait; echo waited']],
  [['-c', 'exec echo replaced']],
  [['-c', 'f() { return 6; }; f']],
  [['-c', 'echo grüße | tr a-z A-Z']],
  [['-c', 'yes | head -n 2; echo ${PIPESTATUS[@]}']],
  [['-c', 'set -o pipefail; cat crlf.txt | od -c']],
  [['-c', 'echo $SHLVL']],
  [['-c', 'test -t 0 || test -t 1 || echo no terminal']],
  [['-c', 'echo x >&3']],
  [['-c']],
  [['--nosuch'], { stderr: false }],
  [['-Q'], { stderr: false }],
  [['-c', '--norc', 'x'], { stderr: false }],
  [['-o', 'nosuch', '-c', 'x'], { stderr: false }],
  [['plain.sh']],
  [['./plain.sh', 'a', 'b c']],
  [[join(place.workspace, 'plain.sh'), '-x']],
  [['-x', 'plain.sh', 'a']],
  [['--', 'plain.sh', '-c']],
  [['--', '- odd.sh']],
  [['status.sh']],
  [['empty.sh']],
  [['no-newline.sh']],
  [['errexit.sh']],
  [['option.sh']],
  [['return.sh']],
  [['lines.sh']],
  [['syntax.sh']],
  [['stdin.sh'], { input: 'first\nsecond\n' }],
  [['here.sh'], { input: 'unread' }],
  [['trap.sh']],
  [['where.sh']],
  [['../where.sh'], { cwd: join(place.workspace, 'sub') }],
  [['binary.sh'], { stderr: false }],
  [['latin.sh']],
  [['utf8.sh']],
  [['big.sh', 'a']],
  [['nosuch.sh'], { stderr: false }],
  [['sub'], { stderr: false }],
  [[], { input: 'echo one\necho two\nexit 3\n' }],
  [[], { input: '' }],
  [[], { input: 'echo no newline' }],
  [[], { input: 'cat <<E\nhere\nE\nfor i in 1 2\ndo echo $i\ndone\n' }],
  [['-s'], { input: 'echo $# $1\n' }],
  [['-s', 'a', 'b'], { input: 'echo $# $1\n' }],
  [['-es'], { input: 'false\necho no\n' }],
  [['-'], { input: 'echo dash\n' }],
  [['-l'], { input: 'echo login\n' }],
];

describe('sandbox-sh does what bash does', () => {
  it(`in ${ROWS.length} invocations, of which there are at least 60`, () =>
    expect(ROWS.length).toBeGreaterThanOrEqual(60));

  it.each(ROWS.map(([argv, more = {}]) => ({ argv, more })))('$argv', async ({ argv, more }) => {
    const start = { ...more, env: { ...more.env, SANDBOX_SH_WORKSPACE: place.workspace } };
    const said = await runProgram(place, ['/bin/bash', ...argv], start);
    const real = AS_FOR_TEXT[argv[0] ?? '']?.(said) ?? said;
    const ours = await runProgram(place, [place.shell, ...argv], start);
    if (more.stderr === false || real.stderr.includes('option requires an argument')) {
      expect(ours.stderr).toMatch(/^(?:sandbox-sh: [^\n]+\n)?$/);
      expect({ ...ours, stderr: '' }).toEqual({ ...real, stderr: '' });
    } else expect(ours).toEqual(real);
  });
});
