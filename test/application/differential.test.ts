import { spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createSandbox, type Sandbox } from '../../src/index.ts';

const root = mkdtempSync(join(realpathSync(tmpdir()), 'application-differential-'));
const open: Sandbox[] = [];
let count = 0;

afterAll(async () => {
  await Promise.all(open.map((sandbox) => sandbox.close()));
  rmSync(root, { recursive: true, force: true });
});

/** Two directories of the same length and content: names are printed by some programs. */
function scratch(kind: 'one' | 'two'): string {
  const directory = join(root, `${count}-${kind}`);
  mkdirSync(join(directory, 'sub'), { recursive: true });
  writeFileSync(join(directory, 'a.txt'), 'foo 1\nbar 2\nfoo 3\nbaz 10\n');
  writeFileSync(join(directory, 'sub/inner.txt'), 'inner\nfoo\n');
  writeFileSync(join(directory, 'noend'), 'no end');
  writeFileSync(join(directory, 'big'), 'line\n'.repeat(100_000));
  return directory;
}

function filesOf(directory: string): Record<string, string> {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort();
  return Object.fromEntries(
    names.map((name) => {
      const path = join(directory, name);
      const info = statSync(path);
      return [
        name,
        info.isDirectory()
          ? 'directory'
          : `${(info.mode & 0o777).toString(8)} ${plain(name === 'big' ? `${info.size}` : readFileSync(path, 'latin1'))}`,
      ];
    }),
  );
}

/** Who says it differs; what is said does not. */
const plain = (text: string) =>
  text
    .replaceAll(/^(?:\/bin\/bash: line \d+: |sandbox-run-steps: )/gm, '')
    .replaceAll(/\/\d+-(?:one|two)\b/g, '/scratch')
    // bash names the builtin, and in another order.
    .replaceAll(/^cd: (\S+: )/gm, '$1');

async function bothRun(source: string) {
  count += 1;
  const [one, two] = [scratch('one'), scratch('two')];
  const bash = spawnSync('/bin/bash', ['--noprofile', '--norc', '-c', '--', source], {
    cwd: one,
    encoding: 'utf8',
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    maxBuffer: 1 << 26,
  });
  const sandbox = await createSandbox({
    workspace: two,
    backend: 'application',
    policyFiles: false,
    autonomy: 'autonomous',
    maxOutput: 1 << 24,
    policy: { environment: { set: { PATH: '/usr/bin:/bin', LC_ALL: 'C' } }, limits: { umask: '022' } },
  });
  open.push(sandbox);
  const result = await sandbox.run(source, { approved: true });
  return {
    bash: {
      status: bash.status,
      stdout: plain(bash.stdout),
      stderr: plain(bash.stderr),
      files: filesOf(one),
    },
    ours: {
      status: result.exitCode ?? null,
      stdout: plain(result.stdout),
      stderr: plain(result.stderr),
      files: filesOf(two),
    },
    result,
  };
}

const FIXED = [
  'true',
  'false',
  'false || echo no',
  'false && echo yes',
  'false && echo a || echo b',
  'true || echo a && echo b',
  'false; true',
  'true; false',
  'grep -n foo a.txt | head -3 > out.txt && wc -l out.txt',
  'grep -c nothing a.txt',
  'grep nothing a.txt | cat',
  'cat missing',
  'cat missing | wc -l',
  'cat < missing',
  'cat < missing | wc -l',
  'echo x | cat < missing',
  'cat < missing || echo failed',
  'cat 2>/dev/null < missing',
  'cat < missing 2> err',
  'cat 2> err < missing',
  'cat < missing > out',
  'cat > out < missing',
  'cat a.txt missing 2>&1 | sort',
  'cat a.txt missing > both 2>&1',
  'cat a.txt missing 2>&1 > one',
  'cat missing a.txt &> both',
  'cat missing &>> both; cat missing &>> both',
  'cat missing |& wc -l',
  'cat missing 2> err |& wc -l',
  'echo out >&2',
  'echo one > f; echo two >> f; cat f',
  'echo one > f; echo two >| f; cat f',
  'echo long text > f; echo x 1<> f; cat f',
  '> empty',
  'true > a.txt',
  '>> a.txt',
  '< a.txt',
  '< missing',
  'cat < a.txt > copy && cmp a.txt copy && echo same',
  'cat <a.txt <sub/inner.txt',
  'echo x > one > two',
  'echo x 3> three >&3',
  'echo x 3>&1 >f >&3',
  'echo x >&-',
  'cat <&-',
  'echo x >&7',
  'cat <<< "a  b"',
  "cat <<'E'\n$x `y` \\z\n\nE",
  'cat <<-E\n\tindented\n\tE\necho after',
  'cat <<A; cat <<B\none\nA\ntwo\nB',
  'cat <<A <<B\none\nA\ntwo\nB',
  'cat <<E | tr a-z A-Z > up\nhello\nE',
  'cat - 3<<E <&3\nthree\nE',
  'cat noend; echo',
  'yes | head -1',
  'yes | head -100000 | wc -l',
  'cat big | head -2',
  'cat big | sort | uniq -c',
  'cat big | tail -1 | wc -c',
  'seq 5 | sed 1d | sed -n "2p"',
  'echo a | cat | cat | cat | cat | cat',
  'false | true',
  'true | false',
  'cd sub && cat inner.txt',
  'cd sub && cat ../a.txt',
  'cd sub && cat inner.txt && cd .. && ls',
  'cd sub && echo x > made; ls',
  'cd sub && cd .. && ls',
  'cd missing && ls',
  'cd missing || ls',
  'cd missing; ls',
  'cd a.txt && ls',
  'cd sub/../sub && pwd',
  'cd sub && echo up > ../up.txt',
  'mkdir -p new/deep && touch new/deep/file && ls new/deep',
  'mkdir new; cd new && echo x > y',
  'cp a.txt b.txt && rm a.txt && ls',
  'cp -r sub copy',
  'mv a.txt b.txt',
  'rm -rf sub && ls',
  'tee one two < a.txt | wc -l',
  'sort -k2n a.txt -o sorted; cat sorted',
  "sed -i 's/foo/FOO/' a.txt && cat a.txt",
  "sed -n '/foo/,$p' a.txt",
  "awk '{s+=$2} END{print s}' a.txt",
  "awk '$2 > 2 {print $1}' a.txt",
  'printf "%s-%s\\n" a b c',
  "printf '%b' 'a\\tb\\n'",
  'echo -n x; echo -e "a\\nb"; echo -E "a\\nb"',
  'echo \'\' "" a\\ b',
  'echo "*" \'$x\' \\*',
  "echo $'a\\nb'",
  '[ -f a.txt ] && echo file',
  '[ -d a.txt ] || echo none',
  'test -e missing; echo status',
  '[ 1 -lt 2 ] && [ a = a ] && echo both',
  'test a = b || false',
  'expr 1 + 2',
  'basename /a/b.txt .txt',
  'dirname /a/b/c',
  'find . -name "*.txt" | sort',
  'find . -type f -name "*n*" -print0 | wc -c',
  'cut -d " " -f1 a.txt | sort | uniq -c | sort -rn',
  'paste a.txt a.txt | tr "\\t" ,',
  'diff a.txt sub/inner.txt',
  'diff a.txt a.txt && echo same',
  'md5sum a.txt',
  'du -b a.txt',
  'stat -c %s a.txt',
  'grep -rn foo . | sort',
  'grep -q foo a.txt && echo found',
  'grep',
  'head -c 3 a.txt; tail -c 3 a.txt',
  'ls -1 missing sub 2>&1',
  'sleep 0; echo done',
  'echo a;echo b\necho c # comment\n\necho d',
  'echo a \\\n  b',
  'tac a.txt | nl',
  'realpath sub/..',
  'cat /dev/null; echo x > /dev/null; cat < /dev/null',
  'cat a.txt > /dev/null 2>&1 && echo ok',
];

/** Strings made of parts that are all accepted, always the same ones. */
function generated(howMany: number): readonly string[] {
  let state = 20_261_122;
  const random = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
  const pick = (options: readonly string[]): string => options[random(options.length)] ?? '';
  const commands = [
    'cat a.txt',
    'cat',
    'cat missing',
    'grep foo',
    'grep -v foo a.txt',
    'echo hi',
    "printf '%s\\n' x y",
    'true',
    'false',
    'wc -l',
    'sort',
    'sort -r a.txt',
    'head -1',
    'tail -1 a.txt',
    "sed 's/o/0/g'",
    'tr a-z A-Z',
    'ls',
    'ls missing',
    'test -f a.txt',
    'rev',
    'cd sub',
    'cd missing',
  ];
  const redirects = [
    '> out',
    '>> out',
    '2> err',
    '2>&1',
    '>&2',
    '< a.txt',
    '< missing',
    '&> both',
    '< noend',
    '> sub/out',
    '3> three',
    '>&3',
    '2>/dev/null',
    '> /dev/null',
    '<<< word',
    '> missing/x',
    '> sub',
    '2>&-',
    '1>&-',
  ];
  const command = (alone: boolean): string => {
    const text = pick(commands);
    if (text.startsWith('cd')) return alone ? text : 'cat';
    let whole = text;
    for (let more = random(3); more > 0; more -= 1) whole += ` ${pick(redirects)}`;
    return whole;
  };
  return Array.from({ length: howMany }, () => {
    const parts: string[] = [];
    for (let left = 1 + random(4); left > 0; left -= 1) {
      const stages = 1 + random(3);
      // What reads nothing must not wait for the terminal.
      const first = `${command(stages === 1)}`;
      const rest = Array.from({ length: stages - 1 }, () => command(false));
      parts.push([first, ...rest].join(pick([' | ', ' | ', ' |& '])));
    }
    return parts.reduce((text, part) => `${text}${pick([' && ', ' || ', '; ', '\n'])}${part}`);
  });
}

/** Two stages that write to one place do so in any order. */
const isOrdered = (source: string) =>
  !/\|[^|]/.test(source.replaceAll('||', ';')) || !/missing|>&2|2>&1|\|&|out|both|err|three/.test(source);

describe('what is accepted does what bash does', () => {
  it.each(FIXED)('%j', async (source) => {
    const { bash, ours, result } = await bothRun(source);
    expect(result.status, result.error?.message).toBe('exited');
    expect(ours).toEqual(bash);
  });

  it('and so do strings that a generator makes', { timeout: 200_000 }, async () => {
    let compared = 0;
    for (const source of generated(120)) {
      const { bash, ours, result } = await bothRun(source);
      if (result.status === 'denied') continue;
      compared += 1;
      const what = ({ status, stdout, stderr, files }: typeof bash) =>
        isOrdered(source)
          ? { source, status, stdout, stderr, files }
          : { source, status, files: Object.keys(files) };
      expect(what(ours)).toEqual(what(bash));
    }
    expect(compared).toBeGreaterThan(60);
  });
});
