// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is the shell that expands them
import { describe, expect, it } from 'vitest';
import { lossesCheck } from '../../../src/checks/losses.ts';
import { contextOf } from '../../support/check-context.ts';

/** Version control has nothing of what is there. */
const versions = {
  changedFrom: () => undefined,
  lostWith: (path: string) => path,
};

async function asks(source: string): Promise<boolean> {
  const context = { ...contextOf(source), autonomy: 'contained' as const, versions };
  const reasons = await lossesCheck.judge(context);
  return reasons.some(({ verdict }) => verdict === 'ask');
}

describe('what version control would not bring back is asked about', () => {
  it.each([
    'rm notes',
    'git rm notes',
    'git rm -rqf notes',
    'git rm -f "$f"',
    'mv notes /tmp/x',
    'mv -t /tmp notes',
    'mv --target-dir=/tmp notes',
    // Names of files, and not options.
    'rm -- --cached notes',
    'git rm -f -- --dry-run notes',
    // In whatever directory that is.
    'pushd sub && rm notes',
    'popd; rm notes',
    "trap 'rm -rf notes' EXIT",
    // Whatever the names are.
    'rm "$f"',
    'rm -rf "$dir"/*',
    'rm -rf /$dir',
    'rm -rf "${dir:-x}"',
    'rm $(ls)',
    'rm `ls`',
    'rm {a..c}',
    'rm {a.tmp,notes}',
    'd=no; rm -rf ${d}tes',
    'rm "$a-$b-$c"',
    'mv "$f" /tmp/',
    'f=notes; rm "$f"',
    'rm -rf "${d:?}"/*',
    'd=notes; rm -rf "${d:?not set}"',
    'd=$(mktemp); rm -rf "${d:+notes}"',
    'f=$(mktemp; ls); rm "$f"',
    "bash -c 'f=$(ls); g=$(mktemp); rm $f'",
    "bash -c 'f=$(mktemp | ls); rm $f'",
    'd=notes; f=$d/a.txt; rm "$f"',
    'export f=notes; rm "$f"',
    'f="a.tmp notes"; rm $f',
    'f="a.tmp notes"; g=$f; rm $g',
    'f="a.tmp $x"; rm $f',
    'f="a.tmp no"; rm ${f}tes',
    'for f in notes; do rm "$f"; done',
    'for f in *; do rm "$f"; done',
    'for f in a.tmp; do read f; rm "$f"; done',
    'while read -r f; do rm "$f"; done < list',
    'rm "$f"; f=$(mktemp)',
    'cleanup() { rm "$f"; }; cleanup',
    'cleanup() { rm "$f"; }; f=notes; cleanup',
    'f=$(mktemp); f=notes; rm "$f"',
    'f() { rm "$1"; }; f notes',
    'xargs rm < list',
    'ls | xargs rm -f',
    'ls | xargs -I{} rm {}',
    'parallel rm < list',
    "find . -name '*.txt' | xargs rm -rf",
    "find . -name '*.o' -o -name '*.txt' | xargs rm",
    "find . ! -name '*.o' | xargs rm",
    "find build -printf '%f\\n' | xargs rm",
    'find build -type f | xargs -I{} rm src/{}',
    "find build/../src -name '*.c' | xargs rm",
    "find . -name '*.o' | sed s/o$/c/ | xargs rm",
    "rm $(find . -name '*.txt')",
    'ls | sort | xargs rm',
    "find . -name '*.txt' | sort | xargs rm",
    "find . -name '*.pyc' | sort list - | xargs rm",
    "find . -name '*.pyc' | sort < list | xargs rm",
    "find . -name '*.pyc' | uniq -c | xargs rm",
    "find . -name '*.pyc' | head -c 3 | xargs rm",
    "find . -name '*.pyc' | grep -o no | xargs rm",
    "find . -name '*.pyc' | grep -r no | xargs rm",
    "find . -name '*.pyc' | grep -f list . | xargs rm",
    "find . -name '*.pyc' | tail -v | xargs rm",
    "find . -name '*.pyc'; ls | sort | xargs rm",
    "{ find . -name '*.pyc'; ls; } | sort | xargs rm",
    'rm $(ls | sort)',
    "find . -name '*.pyc' | sort $x | xargs rm",
    "find . -name '*.pyc' | cat <<<notes | xargs rm",
    "find . -name '*.pyc' | sort <<'END' | xargs rm\nnotes\nEND",
    "find . -name '*.pyc' | sort 0<&3 | xargs rm",
    "find . -name '*.pyc' | rgrep x | xargs rm",
    "find . -name '*.pyc' | xargs rm <<<notes",
    "find . -name '*.pyc' | xargs rm < notes",
    "find . -name '*.pyc' | xargs -a list rm",
    "find . -name '*.pyc' | xargs --arg-file=list rm",
    "find . -name '*.pyc' | xargs -d o rm",
    "find . -name '*.pyc' | xargs -I{} rm -rf {}/../notes",
    'bash -c "echo notes; find . -name \'*.pyc\'" | xargs rm',
    "find . -name '*.pyc' -exec echo notes \\; | xargs rm",
    // What is piped into a shell and can be read.
    "echo 'rm -rf notes' | sh",
    "printf '%s\\n' 'rm -rf notes' | bash",
    "bash <<< 'rm -rf notes'",
    "cat <<'END' | sh\nrm notes\nEND",
  ])('%s', async (source) => {
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
  ])('and this loses nothing: %s', async (source) => {
    expect(await asks(source)).toBe(false);
  });
});
