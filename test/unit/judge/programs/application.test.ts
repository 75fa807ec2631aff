import { describe, expect, it } from 'vitest';
import { grammarOf } from '../../../../src/judge/programs/grammars.ts';
import { optionTable } from '../../../../src/judge/programs/options.ts';
import { findForApplication, PROGRAM_ROWS } from '../../../../src/judge/programs/program-table.ts';

const found = PROGRAM_ROWS.flatMap(({ names }) => names.split(' ')).flatMap(
  (name) => findForApplication(name) ?? [],
);

describe('programs of the application backend', () => {
  it('are these and no others: nothing else would hold one that is let through by mistake', () => {
    expect(found.map(({ name }) => name).sort()).toEqual(
      '[ arch awk b2sum base32 base64 basename cat cksum cmp comm cp cut date diff dirname du echo egrep expr false fgrep file find fold git grep head id join jq ls md5sum mkdir mv nl nproc paste printenv printf pwd readlink realpath rev rg rm rmdir sed seq sha1sum sha224sum sha256sum sha384sum sha512sum shuf sleep sort stat tac tail tee test touch tr true uname uniq wc which whoami yes'.split(
        ' ',
      ),
    );
    for (const name of ['awk-5', 'gawk', 'gsed', 'zgrep', 'toString'])
      expect(findForApplication(name)).toBeUndefined();
  });

  it('leave out only options that they have: a misspelt one would be let through', () => {
    const unknown = found.flatMap(({ name, application, ...row }) =>
      (application.without?.split(' ') ?? [])
        .filter((option) => !optionTable(grammarOf(row) ?? {}).rules.has(option))
        .map((option) => `${name} ${option}`),
    );
    expect(unknown).toEqual([]);
  });
});
