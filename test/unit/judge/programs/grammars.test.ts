import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Behaviour } from '../../../../src/judge/programs/behaviour.ts';
import { GROUP_NAMES, grammarNamed } from '../../../../src/judge/programs/grammars.ts';
import { PROGRAM_ROWS } from '../../../../src/judge/programs/program-table.ts';

const SOURCES = new URL('../../../../src/judge/programs/', import.meta.url);
const FILES = new URL('grammars/', SOURCES);

type Entry = Readonly<Record<string, string | boolean>>;
const entries = readdirSync(FILES).flatMap((file) =>
  Object.entries<Entry>(JSON.parse(readFileSync(new URL(file, FILES), 'utf8'))).map(
    ([name, entry]) => ({ file, name, entry }) as const,
  ),
);

/** The grammars that a row and its verbs name. */
function namedBy(behaviour: Behaviour): readonly Behaviour['grammar'][] {
  return [
    ...(behaviour.grammar === undefined ? [] : [behaviour.grammar]),
    ...Object.values(behaviour.verbs ?? {}).flatMap(namedBy),
  ];
}

const named = PROGRAM_ROWS.map((row) => row.behaviour()).flatMap((behaviour) => [
  ...namedBy(behaviour),
  ...(behaviour.application?.grammar === undefined ? [] : [behaviour.application.grammar]),
]);

describe('the files of options', () => {
  it('have the grammars of the program by whose name they are called', () => {
    expect(entries.filter(({ file, name }) => file !== `${name.split(' ')[0]}.options.json`)).toEqual([]);
  });

  it('have all that the rows name, and rows have no options of their own', () => {
    const known = new Set(entries.map(({ name }) => name));
    expect(named.filter((name) => typeof name !== 'string' || !known.has(name))).toEqual([]);
  });

  it('have nothing that no code and no other grammar names', () => {
    const code = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(new URL(file, SOURCES), 'utf8'))
      .join('\n');
    const used = new Set([
      ...named,
      ...[...code.matchAll(/grammarNamed\('([^']+)'\)/g)].map(([, name]) => name),
      ...entries.map(({ entry }) => entry.like),
    ]);
    expect(entries.map(({ name }) => name).filter((name) => !used.has(name))).toEqual([]);
  });

  it('list each option once in a group, separated by single blanks', () => {
    const wrong = entries.flatMap(({ name, entry }) =>
      GROUP_NAMES.filter((group) => {
        const names = entry[group] === undefined ? [] : String(entry[group]).split(' ');
        return names.includes('') || new Set(names).size < names.length;
      }).map((group) => `${name}: ${group}`),
    );
    expect(wrong).toEqual([]);
  });
});

describe('a grammar that is like another one', () => {
  it('has its options, and its own as it lists them', () => {
    const log = grammarNamed('git log');
    const shortlog = grammarNamed('git shortlog');
    expect(log.values?.split(' ')).toContain('n');
    expect(shortlog.values?.split(' ')).not.toContain('n');
    expect(shortlog.flags?.split(' ')).toEqual(expect.arrayContaining(['n', 'oneline']));
    expect(shortlog.numeric).toBe(true);
  });
});

describe('a grammar that cannot be read', () => {
  it('is an error, so that nothing is allowed for want of it', () => {
    for (const name of ['no-such-program', 'git no-such-verb'])
      expect(() => grammarNamed(name)).toThrow(
        expect.objectContaining({
          code: 'package.incomplete',
          message: expect.stringContaining('install sandbox-run again'),
        }),
      );
  });
});
