// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { innerTexts } from '../../../../src/gate/index.ts';
import type { RulesOfCommands } from '../../../../src/judge/checks/check.ts';
import { lossesCheck } from '../../../../src/judge/checks/losses.ts';
import { LOSING_LINES } from '../../../cases/losses.ts';
import { contextOf } from '../../../support/check-context.ts';

/** Version control has nothing of what is there. */
const versions = {
  changedFrom: () => undefined,
  stagedIn: () => undefined,
  changedSinceStop: () => ({ stopped: false }),
  lostWith: (path: string) => path,
  allLostWith: (path: string) => [path],
  keeps: () => false,
  ignores: () => false,
};

async function asks(
  source: string,
  more: Partial<RulesOfCommands> = {},
  others: Parameters<typeof contextOf>[1] = {},
): Promise<boolean> {
  const rules = { environment: ['PATH', 'APP_*', 'HOME'], ...more };
  const context = { ...contextOf(source, { ...others, rules }), autonomy: 'contained' as const, versions };
  const reasons = await lossesCheck.judge(context);
  return reasons.some(({ verdict }) => verdict === 'ask');
}

describe('what version control would not bring back is asked about', () => {
  it.each(LOSING_LINES)('%s', async (source) => {
    expect(await asks(source)).toBe(true);
  });

  it.each([
    'git rm --cached notes',
    'git rm -n notes',
    'git rm -n -f notes',
    'git rm -rn notes',
    'git mv notes sub',
    'mv notes sub',
    'tmp=$(mktemp -d); rm -rf "$tmp"',
    // When it runs, it is set.
    'cleanup() { rm -f "$tmp"; }; tmp=$(mktemp); trap cleanup EXIT',
    'trap \'rm -rf "$tmp"\' EXIT; tmp=$(mktemp -d)',
    // It fails where anything is in it.
    'rmdir notes',
    'rmdir "$d"',
    'tmp="$(mktemp)"; trap \'rm -f "$tmp"\' EXIT',
    'tmp=$(mktemp -d); d=$tmp/x; rm -rf "$d"',
    'bash -c \'tmp="$(mktemp -d)"; rm -rf "$tmp/x"\'',
    "sh <<'END'\ntmp=`mktemp`\nrm $tmp\nEND",
    'tmp=$(mktemp -d); rm -rf "${tmp:?}"/*',
    'rm -rf "$TMPDIR/x"',
    'rm -rf "$(mktemp -d)"',
    'rm -rf "$dir/node_modules"',
    'rm {a.tmp,b.log}',
    'rm -rf {a,b}/dist',
    'rm -f "${f%.c}.o"',
    'for f in a.tmp b.log; do rm "$f"; done',
    'f="a.tmp b.log"; rm $f',
    'f="a b.tmp"; rm "$f"',
    'for f in *.log; do rm "$f"; done',
    'for d in a b; do rm -rf "$d/dist"; done',
    'rm -rf /tmp/$x',
    "find . -name '*.pyc' | xargs rm -f",
    "find . -name '*.pyc' -print0 | xargs -0 rm -f",
    'find build -type f | xargs rm',
    "rm $(find . -name '*.pyc')",
    'fd -e pyc | xargs rm',
    "find . -name '*.pyc' | sort -u | head -20 | xargs rm",
    "find . -name '*.o' -print0 | sort -z | xargs -0 rm",
    "find . -name '*.o' | grep -v keep | grep -E 'a|b' | tail -n 3 | xargs rm -f",
    "rm $(find . -name '*.pyc' | sort)",
    "find . -name '*.pyc' | xargs -d '\\n' -r rm",
    "find . -name '*.pyc' | xargs -n 1 -I{} rm {}",
    "find . -name '*.pyc' 2>/dev/null | xargs rm 2>/dev/null",
    "find . -name '*.o' | parallel -j 4 rm",
    'pushd sub && rm -rf dist',
    "echo 'rm -rf dist' | sh",
    'tmp=$(mktemp -d); trap "rm -rf $tmp" EXIT',
    'tmp=$(mktemp -d); trap "rm -rf \'$tmp\'" EXIT',
    'd=dist; bash -c "rm -rf $d"',
    'd=dist; sh <<END\nrm -rf $d\nEND',
    'mv dist build; rm -rf build/dist',
    'git mv notes sub; rm -rf dist',
    'find dist -name \'*.map\' | while read f; do rm "$f"; done',
    "find . -name '*.pyc' -print0 | while IFS= read -r -d '' f; do rm \"$f\"; done",
    'find dist | grep -v keep | while read -r f; do rm "$f"; done',
    'while read -r f; do rm "$f"; done < <(find dist -name \'*.map\')',
    'ls dist/*.map | xargs rm',
    'ls -t *.log | tail -n +5 | xargs rm -f',
    'd=${OUT:-dist}; rm -rf "$d"',
    'rm -rf "${OUT:-dist}"/*',
    'f() { local f; f=dist; rm -rf "$f"; }; f',
    'git rm "$f"',
    'git rm -r -q "$d"/*',
    'find sub -type d -name dist | while read d; do rm -rf "$d"; done',
    'OUT=${OUT:-build}; rm -rf "$OUT"; mkdir -p "$OUT"',
    'unset d; d=dist; rm -rf "$d"',
    'find dist -type f | while read f; do rm "./$f"; done',
    ': "${OUT:=dist}"; rm -rf "$OUT"',
    'ls -d sub/*/dist | xargs rm -rf',
    'mv notes "$d"',
    'd=sub; mv notes "$d"',
    'tmp=$(mktemp); sort list > "$tmp" && mv "$tmp" list',
    'rsync -a --delete src/ build/lib/',
    'remove="rm -rf"; $remove dist',
    'PY=python3; $PY -m pytest notes',
    'for tool in ls wc; do "$tool" notes; done',
    '"$@"',
  ])('and this loses nothing: %s', async (source) => {
    expect(await asks(source)).toBe(false);
  });
});

describe('what undo does not cover is asked about by another name, too', () => {
  const paths = {
    resolve: (path: string) => ({ kind: 'other' as const, canonical: resolve(path), links: [] }),
    expand: () => [],
  };
  it.each([
    'ln -s ../data L && rm L/k',
    'ln -sf /data L; rm -rf L/*',
    'ln -sfn ../../data sub/L; rm sub/L/k',
    'ln -s ../data sub/; rm sub/data/k',
    'ln -s ../../data sub/L; rm sub/L/k',
    'ln -sr ../data sub/L; rm sub/L/k',
    'ln -s -t sub /data; rm sub/data/k',
    'ln -s /data; rm data/k',
    'ln -s ../data L; cd L && rm k',
    'ln -s ../data L; rm "L/$f"',
    'ln -s "$x" L; rm L/k',
    'ln -s "$x" L; rm "L/$f"',
    'd=/data; ln -s "$d" L; rm L/k',
    'ln -s ../data L; ln -s L M; rm M/k',
    'ln -s ../data L; mv L M; rm M/k',
    'ln -s ../data L; cp -P L M; rm M/k',
    'ln -s ../../data d/L; cp -a d e; rm e/L/k',
    'cp -s /data L; rm L/k',
    'ln -s ../data L; rm */k',
    'ln -s ../data L; find L/ -delete',
    "ln -s ../data L; bash -c 'rm L/k'",
    'trap "rm -f ../data/k" EXIT; echo hi',
    'trap -- "rm -f ../data/k" 0',
    'trap "rm ../data/k" DEBUG; :',
    'cd "$x"; rm ../data/k',
    "alias x='rm ../data/k'; x",
    'mapfile -C "rm ../data/k" -c 1 lines',
    'PROMPT_COMMAND="rm ../data/k" bash -i',
    'export PROMPT_COMMAND="rm ../data/k"; bash -i',
    'echo "rm ../data/k" > e; BASH_ENV=e bash -c :',
    'export ENV=./e; echo "rm ../data/k" > e; sh -i',
    'complete -C "rm ../data/k" x',
    'bind -x \'"a": rm ../data/k\'',
  ])('%s', async (source) => {
    expect(
      await asks(source, { isCopy: true, granted: ['/data'] }, { paths, inner: innerTexts(process.env) }),
    ).toBe(true);
  });

  it.each([
    'ln -s ../data L && rm L',
    'ln -s sub L && rm L/k',
    'cp -a sub other; rm other/k',
    'ln -s ../data L; ls L/k; rm k',
    "alias x='ls ../data/k'; x",
  ])('and this is not: %s', async (source) => {
    expect(
      await asks(source, { isCopy: true, granted: ['/data'] }, { paths, inner: innerTexts(process.env) }),
    ).toBe(false);
  });
});

it.each(['rm u; rm /data/k', 'rm u /data/k', 'git clean -fdx; rm u; rm -rf /data/*'])(
  'what undo does not cover is named first: %s',
  async (source) => {
    const rules = { granted: ['/data'] };
    const context = { ...contextOf(source, { rules }), autonomy: 'contained' as const, versions };
    const [first, ...others] = await lossesCheck.judge(context);
    expect(first?.message).toContain('/data');
    expect(others.map(({ code }) => code)).not.toContain('deletes_beside');
  },
);

describe('in a copy of a workspace', () => {
  it.each([
    ['rm notes', [], false],
    ['git clean -fdx', [], false],
    ['rm notes', ['/data'], false],
    // What has more than that place is not in the copy.
    ['rsync -a --delete src/ /data/notes/', ['/data'], true],
    ['rsync -a --delete src/ notes/', [], false],
  ] as const)('%s, where %j may be written too: %s', async (source, granted, expected) => {
    expect(await asks(source, { isCopy: true, granted })).toBe(expected);
    expect(await asks(source, { granted })).toBe(true);
  });
});
