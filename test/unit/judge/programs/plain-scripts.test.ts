import { describe, expect, it } from 'vitest';
import { isPlainAwk } from '../../../../src/judge/programs/families/awk.ts';
import { isPlainSed } from '../../../../src/judge/programs/families/sed.ts';
import { isPlainJq } from '../../../../src/judge/programs/families/text.ts';

describe('plain scripts', () => {
  it.each([
    'p',
    '1,5p',
    '$d',
    '/a/,/b/p',
    '/a/Id',
    's/a/b/',
    's/a/b/gI',
    's|/usr|/opt|g',
    's/a\\.b/c\\n&/2p',
    '/x/{s/a/b/;p}',
    '1!G;h;$!d',
    ':a;N;$!ba;s/\\n/ /g',
    'a appended text',
    '2i\\inserted',
    '10q',
    '0~3d',
    '/a/,+2d',
    'n;d',
    '=',
    '',
    '1,5!d',
    's/[a-z]*//',
  ])('sed: %s', (script) => {
    expect(isPlainSed(script)).toBe(true);
  });

  it.each([
    'w /etc/x',
    '1w x',
    'W x',
    'r /etc/passwd',
    'R x',
    'e id',
    'e',
    '1e id',
    's/a/b/e',
    's/a/b/ge',
    's/a/b/w /etc/x',
    's/a/b/gw x',
    's/a/b/;w x',
    's/a/b/\nw x',
    '{w x\n}',
    '/a/{e id\n}',
    // Where a bracket ends is read in two ways: the second finds a `w` or an `e`.
    's/[/x/w out]/y/',
    's/[/]/e;/',
    's,[,],w x,',
    's/a\\/b/c/',
    's/a\nb/c/',
    's/a/b\\\n/;w x',
    'y/a/b/;w x',
    'a text\\\nw x',
    'a text\nw x',
    'i\\\ntext\nw x',
    '}w x',
    '}\nw x',
    '#n\nw x',
    'v',
    'F;e',
    ':label;w x',
    'b;w x',
    'ba}w x',
    '1~2w x',
    '\\,a,w x',
    '$!{$!w x\n}',
    's a b w',
    'swawbw',
    's\\a\\b\\e',
    'p;p;p;e id',
    ' w x',
    ';;w x',
    '1,2,3w x',
    '\u2028w x',
    '\u00a0w x',
    'q1w',
    'l w x',
    'z\rw x',
  ])('sed refuses %j', (script) => {
    expect(isPlainSed(script)).toBe(false);
  });

  it('sed: thousands of commands take no time to speak of', () => {
    expect(isPlainSed('p;'.repeat(30_000))).toBe(true);
    expect(isPlainSed(`s/${'a*'.repeat(30_000)}/b`)).toBe(false);
    expect(isPlainSed(`${' '.repeat(60_000)}w`)).toBe(false);
    expect(isPlainSed(`1${' '.repeat(60_000)}w`)).toBe(false);
  });

  it.each([
    '{print $1}',
    '$3 > 5',
    '$3 > 5 {print $1}',
    'NR==2',
    '{s+=$1} END{print s}',
    'a || b',
    '$1<3{print}',
    'BEGIN{OFS=","} {$1=$1; print}',
    '/ERROR/ && length($0) < 80 {print "(total) x (y)", substr($1, 2)}',
    '{ printf "%s (%d)\\n", $1, ($2 + $3) / 2 }',
    '{ n[$1]++ } END { for (k in n) print k, n[k] }',
  ])('awk: %s', (program) => {
    expect(isPlainAwk(program)).toBe(true);
  });

  it.each([
    'BEGIN{system("id")}',
    'BEGIN { system ("id") }',
    '{print > "x"}',
    '{print >> "/etc/x"}',
    '{print "}" > "x"}',
    '{ if ($1 > 5) print }',
    '{print | "sh"}',
    '"id" | getline',
    'BEGIN{while((getline l < "/etc/passwd")>0)print l}',
    'BEGIN{"id"|getline x}',
    'BEGIN{ARGV[1]="/etc/passwd";ARGC=2}',
    '@include "x"',
    '@load "x"',
    'BEGIN{f="system";@f("id")}',
    'BEGIN{print |& "sh"}',
    'BEGIN{print ||| "sh"}',
    'BEGIN{sys\\\ntem("id")}',
    'BEGIN{extension("x.so")}',
    'BEGIN{SYMTAB["AR" "GV"][1]="/etc/shadow"} {print}',
    'BEGIN{for (k in SYMTAB) print k}',
    'BEGIN{awk::SYMTAB["x"]=1}',
    'function f(a){a[1]="x"} BEGIN{f(SY)}',
    'func f(a){a[1]="x"}',
    'BEGIN{FUNCTAB["x"]}',
    'BEGIN{ENVIRON["x"]="y"}',
    'BEGIN{PROCINFO["x"]="y"}',
    'BEGIN{ARGIND=1}',
    'BEGIN{bindtextdomain("/x"); print _"a"}',
    'BEGIN{unknown("x")}',
    'BEGIN{unknown ("x")}',
    '/"/ {unknown("x")} /"/',
    'BEGIN{close("x")}',
  ])('awk refuses %j', (program) => {
    expect(isPlainAwk(program)).toBe(false);
  });

  it('jq takes no modules', () => {
    expect(isPlainJq('.a | map(.b)')).toBe(true);
    for (const program of ['import "/etc/x" as $x; .', 'include "x"; .', '"x" | modulemeta'])
      expect(isPlainJq(program)).toBe(false);
  });
});
