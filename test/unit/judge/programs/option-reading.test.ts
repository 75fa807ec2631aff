import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Behaviour, Grammar } from '../../../../src/judge/programs/behaviour.ts';
import { grammarNamed, grammarOf } from '../../../../src/judge/programs/grammars.ts';
import { optionTable, parseOptions } from '../../../../src/judge/programs/options.ts';
import { pathUses } from '../../../../src/judge/programs/path-uses.ts';
import { describeCommand, findProgram, PROGRAM_ROWS } from '../../../../src/judge/programs/program-table.ts';
import { findingsOf } from '../../../../src/judge/programs/risk.ts';
import { variableRule } from '../../../../src/judge/programs/variables.ts';
import { parseShell } from '../../../../src/judge/shell/parse.ts';
import { literalWord } from '../../../../src/model/index.ts';
import { createOptionOracle, type DeclaredOption, type Reading } from '../../../support/option-oracle.ts';

/** `npm run fuzz:options` makes it longer. */
const SECONDS = Number(process.env.OPTIONS_FUZZ_SECONDS ?? '6');

const oracle = createOptionOracle();
afterAll(() => oracle[Symbol.dispose]());

/** On every Debian, and they call getopt of the C library. */
const ALWAYS = 'ls cat head tail cp mv rm ln mkdir touch sort cut wc grep sed diff env nice timeout'.split(
  ' ',
);

/** It reads options of its own only where its first word is one; else that word is a compiler. */
const READS_ELSEWHERE = new Set(['ccache']);

/** A program that can be asked. */
interface Asked {
  readonly name: string;
  readonly grammar: Grammar;
  readonly declared: readonly DeclaredOption[];
  readonly stopAtOperand: boolean;
}

/** Those of the table that are here: not those that it calls dangerous, nor those with verbs. Those that are everywhere come first. */
function findAsked(): readonly Asked[] {
  const rows = PROGRAM_ROWS.flatMap((row) => {
    const behaviour = row.behaviour();
    const grammar = grammarOf(behaviour);
    return grammar === undefined ||
      behaviour.danger !== undefined ||
      behaviour.verbs !== undefined ||
      grammar.style === 'single-dash'
      ? []
      : row.names.split(' ').map((name) => ({ name, grammar }));
  });
  const candidates = rows.filter(({ name }) => !READS_ELSEWHERE.has(name));
  const said = oracle.declared(candidates.map(({ name }) => name));
  const asked = candidates.flatMap((row, at) => {
    const declaration = said[at];
    return declaration === undefined
      ? []
      : [{ ...row, declared: declaration.options, stopAtOperand: declaration.stopAtOperand }];
  });
  return [...asked].sort((a, b) => Number(ALWAYS.includes(b.name)) - Number(ALWAYS.includes(a.name)));
}

let ASKED: readonly Asked[] = [];
beforeAll(() => {
  ASKED = findAsked();
}, 120_000);

const SPAN = { start: 0, end: 0 };

/** How our reader reads a list; `undefined`: it says that it is not certain. */
function ourReading(grammar: Grammar, list: readonly string[]): Reading {
  const words = list.map((text) => literalWord(text, SPAN));
  const { options, operands, doubt, next } = parseOptions(words, 0, grammar);
  if (doubt !== undefined) return undefined;
  return {
    options: options.map(({ name, value }) => ({ name, value: value?.text })),
    operands: grammar.stopAtOperand === true ? list.slice(next) : operands.map(({ text }) => text),
  };
}

/**
 * A reading with one name for each option, whatever it is called. A count (`-20`) is an option of digits to some programs, and no option
 * at all to our reader.
 */
function plain(
  reading: NonNullable<Reading>,
  declared: readonly DeclaredOption[],
  grammar: Grammar,
): Reading {
  const options = reading.options
    .filter(({ name }) => grammar.numeric !== true || !/^\d$/.test(name))
    .map(({ name, value }) => {
      // The table may list an abbreviation as a name.
      const own =
        declared.find((option) => option.name === name) ??
        declared.find((option) => name.length > 1 && option.name.startsWith(name));
      const first = declared.find(({ meaning, value }) => meaning === own?.meaning && value === own?.value);
      return { name: first?.name ?? name, value };
    });
  return { ...reading, options };
}

const OPERANDS = ['f', 'a b', '', '-', '--', '../x', 'x=y', '-5', '--5', '-7k', '---', '--=x', '-='];
const VALUES = ['v', '', '-v', '--', 'a=b', '5', '-', '../x'];

/** Argument lists of a program, from the options that it declares and those that our table has. */
function listsOf(declared: readonly DeclaredOption[], grammar: Grammar): fc.Arbitrary<string[]> {
  const names = [...new Set([...declared.map(({ name }) => name), ...optionTable(grammar).rules.keys()])];
  const shorts = names.filter((name) => name.length === 1);
  const longs = names.filter((name) => name.length > 1);
  const value = fc.constantFrom(...VALUES);
  const cluster = fc
    .tuple(
      fc.array(fc.constantFrom(...shorts, 'f'), { minLength: 1, maxLength: 4 }),
      fc.option(value, { nil: '' }),
    )
    .map(([letters, rest]) => `-${letters.join('')}${rest}`);
  const long = fc
    .tuple(
      fc.constantFrom(...longs, 'no', 'x'),
      fc.nat(24),
      fc.option(
        value.map((text) => `=${text}`),
        { nil: '' },
      ),
    )
    .map(([name, cut, rest]) => `--${cut % 3 === 0 ? name.slice(0, 1 + (cut % name.length)) : name}${rest}`);
  return fc.array(fc.oneof(cluster, long, value, fc.constantFrom(...OPERANDS)), { maxLength: 6 });
}

/** Has programs read lists, and expects our reader to read them so, or to say that it is not certain. Returns how many both have read. */
function compare(
  questions: readonly { readonly asked: Asked; readonly lists: readonly (readonly string[])[] }[],
): number {
  let alike = 0;
  const answers = oracle.read(questions.map(({ asked, lists }) => ({ program: asked.name, lists })));
  for (const [index, { asked, lists }] of questions.entries()) {
    const { name, grammar, declared } = asked;
    const theirs = answers[index] ?? [];
    expect(theirs, name).toHaveLength(lists.length);
    for (const [at, list] of lists.entries()) {
      const [their, ours] = [theirs[at], ourReading(grammar, list)];
      if (their === undefined || ours === undefined) continue;
      alike++;
      expect(plain(ours, declared, grammar), [name, ...list].join(' ')).toEqual(
        plain(their, declared, grammar),
      );
    }
  }
  return alike;
}

describe('the options of programs, as getopt of the C library reads them', () => {
  it('are asked of the programs that are everywhere', () => {
    const asked = new Set(ASKED.map(({ name }) => name));
    expect(ALWAYS.filter((name) => !asked.has(name))).toEqual([]);
  });

  it('end at the first operand where the table says so', () => {
    const wrong = ASKED.filter(
      ({ grammar, stopAtOperand }) => (grammar.stopAtOperand === true) !== stopAtOperand,
    );
    expect(wrong.map(({ name }) => name)).toEqual([]);
  });

  it('take values where the table says so', () => {
    const wrong = ASKED.flatMap(({ name, grammar, declared }) =>
      declared.flatMap((option) => {
        const rule = optionTable(grammar).rules.get(option.name);
        const isCount = grammar.numeric === true && /^\d$/.test(option.name);
        return rule === undefined || isCount || rule.value === option.value
          ? []
          : [`${name} ${option.name}: ${option.value}, not ${rule.value}`];
      }),
    );
    expect(wrong).toEqual([]);
  });

  it('end at the first operand under POSIXLY_CORRECT, which a line may not set unasked', () => {
    const lists = [['f', '-n', '../x']];
    const [usual, posix] = oracle.read([
      { program: 'head', lists },
      { program: 'head', lists, environment: { POSIXLY_CORRECT: '1' } },
    ]);
    expect(usual).toEqual([ourReading(grammarNamed('head'), lists[0] ?? [])]);
    expect(posix).toEqual([{ options: [], operands: ['f', '-n', '../x'] }]);
    expect(variableRule('POSIXLY_CORRECT', '1')).toBeDefined();
  });

  it('are read alike one by one, with and without a value, in every abbreviation', () => {
    const questions = ASKED.map((asked) => {
      const names = [
        ...new Set([...asked.declared.map(({ name }) => name), ...optionTable(asked.grammar).rules.keys()]),
      ];
      const written = names.flatMap((name) =>
        name.length === 1 ? [`-${name}`] : Array.from(name, (_, at) => `--${name.slice(0, at + 1)}`),
      );
      const lists = [...new Set(written)].flatMap((option) => {
        const attached = option.startsWith('--') ? `${option}=v` : `${option}v`;
        return [[option], [option, '../x', 'f'], [attached, '../x'], ['f', option, '--', '../x']];
      });
      return { asked, lists };
    });
    expect(compare(questions)).toBeGreaterThan(1000);
  });

  it(
    'are read alike together, or our reader says that it is not certain',
    () => {
      let alike = 0;
      const until = Date.now() + SECONDS * 1000;
      for (let rounds = 0; rounds === 0 || Date.now() < until; rounds++)
        for (const asked of ASKED) {
          const lists = fc.array(listsOf(asked.declared, asked.grammar), { minLength: 60, maxLength: 60 });
          const property = fc.property(lists, (these) => {
            alike += compare([{ asked, lists: these }]);
          });
          fc.assert(property, { numRuns: 1 });
          if (rounds > 0 && Date.now() > until) break;
        }
      expect(alike).toBeGreaterThan(100);
      if (process.env.OPTIONS_FUZZ_SECONDS !== undefined) process.stderr.write(`${alike} lists read alike\n`);
    },
    (SECONDS + 120) * 1000,
  );
});

const root = mkdtempSync(join(tmpdir(), 'option-reading-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

/** Options by name, from lines of a help: `  -f, --file=ARCHIVE`, `  -U[<n>], --unified[=<n>]`. */
function optionsOfHelp(text: string): readonly DeclaredOption[] {
  return text.split('\n').flatMap((line) => {
    const [, head = ''] = /^ {2,6}(-.*?)(?: {2,}.*)?$/.exec(line) ?? [];
    const names = [...head.matchAll(/(?:^|, )-(?:(\w)(?=[,[ ]|$)|-([a-z][\w-]*))/g)].map(
      ([, short, long]) => short ?? long ?? '',
    );
    const value = /^[^=]*\[=?[<A-Z(]/.test(head)
      ? 'optional'
      : /[= ][<A-Z(]|=[a-z]/.test(head)
        ? 'required'
        : 'none';
    return names.map((name) => ({ name, meaning: head, value }) as const);
  });
}

/** Options whose value the table has otherwise, as sentences. */
function misread(title: string, declared: readonly DeclaredOption[], grammar: Grammar): readonly string[] {
  return declared.flatMap(({ name, value }) => {
    const rule = optionTable(grammar).rules.get(name);
    return rule === undefined || rule.value === value
      ? []
      : [`${title} ${name}: ${value}, not ${rule.value}`];
  });
}

describe('the options of tar, as its help says them', () => {
  it('take values where the table says so', () => {
    const declared = optionsOfHelp(execFileSync('tar', ['--help']).toString());
    expect(declared.length).toBeGreaterThan(100);
    expect(misread('tar', declared, grammarNamed('tar'))).toEqual([]);
  });
});

/** Verbs of git with a grammar of their own, and the words that stand for them. */
function verbsOf(
  behaviour: Behaviour,
  words: readonly string[] = [],
): readonly { words: readonly string[]; grammar: Grammar }[] {
  return Object.entries(behaviour.verbs ?? {}).flatMap(([name, verb]) => {
    const grammar = grammarOf(verb);
    return [
      ...(grammar === undefined ? [] : [{ words: [...words, name], grammar }]),
      ...verbsOf(verb, [...words, name]),
    ];
  });
}

const GIT = findProgram('git');
const GIT_ENV = {
  // Else filter-branch waits for ten seconds before it says anything.
  FILTER_BRANCH_SQUELCH_WARNING: '1',
  PATH: process.env.PATH,
  HOME: root,
  GIT_CONFIG_NOSYSTEM: '1',
  LC_ALL: 'C',
};

describe('the options of git', () => {
  const repository = join(root, 'repository');
  execFileSync('git', ['init', '-q', repository], { env: GIT_ENV });
  const verbs = verbsOf(GIT ?? {});

  it('take values where the table says so', () => {
    let asked = 0;
    const script = verbs
      .map(
        ({ words }) =>
          `git ${words.join(' ')} --git-completion-helper-all; printf '\\0'; git ${words.join(' ')} -h; printf '\\0'`,
      )
      .join('\n');
    const { stdout } = spawnSync('sh', ['-c', `exec </dev/null 2>&-\n${script}`], {
      cwd: repository,
      env: GIT_ENV,
    });
    const said = stdout.toString().split('\0');
    const wrong = verbs.flatMap(({ words, grammar }, at) => {
      const completions = (said[2 * at] ?? '').split(/\s+/);
      // Only those that take a value in any case end with =.
      const declared = completions.flatMap((word) => {
        const [, name = '', equals] = /^--([a-z][\w-]*)(=?)$/.exec(word) ?? [];
        const rule = optionTable(grammar).rules.get(name);
        return rule === undefined || (equals === '' && rule.value !== 'required')
          ? []
          : [{ name, meaning: '', value: equals === '=' ? 'required' : 'none' } as const];
      });
      asked += declared.length;
      return [
        ...misread(words.join(' '), declared, grammar),
        ...misread(
          words.join(' '),
          optionsOfHelp(said[2 * at + 1] ?? '').filter(({ name }) => name.length === 1),
          grammar,
        ),
      ];
    });
    expect(asked).toBeGreaterThan(50);
    expect(wrong).toEqual([]);
  });

  it(
    'are read as git rev-parse --parseopt reads them, or our reader says that it is not certain',
    () => {
      let alike = 0;
      const choices = verbs.filter(({ grammar }) => optionTable(grammar).rules.size > 3);
      const property = fc.property(
        fc
          .constantFrom(...choices)
          .chain(({ grammar }) => fc.tuple(fc.constant(grammar), listsOf([], grammar))),
        ([grammar, list]) => {
          const their = readByGit(grammar, list);
          const ours = ourReading(grammar, list);
          if (their === undefined || ours === undefined) return;
          alike++;
          expect(plain(ours, [], grammar), list.join(' ')).toEqual(plain(their, [], grammar));
        },
      );
      fc.assert(property, { numRuns: 60 });
      const until = Date.now() + (SECONDS * 1000) / 4;
      while (Date.now() < until) fc.assert(property, { numRuns: 10 });
      expect(alike).toBeGreaterThan(3);
    },
    (SECONDS + 120) * 1000,
  );

  /** Of a verb with the options of a grammar. */
  function readByGit(grammar: Grammar, list: readonly string[]): Reading {
    const marks = { none: '', required: '=', optional: '?' };
    const options = [...optionTable(grammar).rules.values()].filter(
      ({ name }) => name !== 'h' && name !== 'help',
    );
    const specification = [
      'git x',
      '--',
      ...options.map(({ name, value }) => `${name}${marks[value]}! x`),
    ].join('\n');
    const stop = grammar.stopAtOperand === true ? ['--stop-at-non-option'] : [];
    const script =
      'said=$(git rev-parse --parseopt --stuck-long "$@") && eval "$said" && printf "%s\\0" "$@"';
    const { stdout, status } = spawnSync('sh', ['-c', script, 'sh', ...stop, '--', ...list], {
      ...{ cwd: repository, env: GIT_ENV, input: `${specification}\n` },
    });
    const words = stdout.toString().split('\0').slice(0, -1);
    const end = words.indexOf('--');
    if (status !== 0 || end === -1) return undefined;
    return {
      operands: words.slice(end + 1),
      options: words.slice(0, end).map((word) => {
        const [, long, longValue, short, rest] =
          /^(?:--([^=]+)(?:=([\s\S]*))?|-(.)([\s\S]*))$/.exec(word) ?? [];
        const name = long ?? short ?? '';
        // git prints a short option with an empty value as the option alone.
        const isEmpty = rest === '' && optionTable(grammar).rules.get(name)?.value !== 'required';
        return { name, value: longValue ?? (isEmpty ? undefined : rest) };
      }),
    };
  }
});

describe('the expression of find, as find -D opt prints it', () => {
  const FILES = { '-newer': 1, '-anewer': 1, '-cnewer': 1, '-samefile': 1 };
  const WRITES = { '-fprint': 1, '-fprint0': 1, '-fls': 1, '-fprintf': 2 };
  const TESTS = {
    '-name': 1,
    '-path': 1,
    '-type': 1,
    '-maxdepth': 1,
    '-perm': 1,
    '-regex': 1,
    '-printf': 1,
    '-newermt': 1,
  };
  const ALONE = [
    '-print',
    '-delete',
    '-depth',
    '-prune',
    '-o',
    '-a',
    '!',
    '(',
    ')',
    ',',
    '-not',
    '-ls',
    '-mount',
    '-true',
  ];
  const place = join(root, 'find');
  mkdirSync(join(place, 'sub'), { recursive: true });
  for (const name of ['f', 'g', '-x']) writeFileSync(join(place, name), '');

  const operand = fc.constantFrom('f', 'g', './-x', 'f', 'g', '-delete', '-fprint', '-exec', '-name', '1');
  const primary = fc.oneof(
    ...[FILES, WRITES, TESTS].map((group) =>
      fc
        .constantFrom(...Object.entries(group))
        .chain(([name, count]) =>
          fc.array(operand, { minLength: count, maxLength: count }).map((rest) => [name, ...rest]),
        ),
    ),
    fc.constantFrom(...ALONE).map((word) => [word]),
    fc
      .tuple(
        fc.constantFrom('-exec', '-execdir', '-ok'),
        fc.array(operand, { maxLength: 2 }),
        fc.constantFrom([';'], ['{}', '+']),
      )
      .map(([name, words, end]) => [name, 'true', ...words, ...end]),
  );
  const list = fc
    .tuple(
      fc.constantFrom([], ['-L'], ['-H']),
      fc.subarray(['sub', 'f', './-x', 'g']),
      fc.array(primary, { maxLength: 5 }),
    )
    .map(([before, starts, primaries]) => ({ before, starts, words: primaries.flat() }));

  /** The predicates with their operands; `undefined`: find refuses the words. It stops at once. */
  function readByFind({
    before,
    starts,
    words,
  }: {
    before: readonly string[];
    starts: readonly string[];
    words: readonly string[];
  }) {
    const { stderr, stdout } = spawnSync('find', [...before, '-D', 'opt', ...starts, '-quit', ...words], {
      cwd: place,
      env: { LC_ALL: 'C', PATH: '/usr/bin:/bin' },
    });
    const said = `${stdout}\n${stderr}`;
    const tree = /\nEval Tree:\n([\s\S]*?)\nNormalized Eval Tree/.exec(said)?.[1];
    return tree === undefined
      ? undefined
      : [...tree.matchAll(/pred=\[(.*?)\] type=/g)].map(([, one = '']) => one.split(' '));
  }

  it(
    'names the files, and runs the programs, that we read in it',
    () => {
      let alike = 0;
      const property = fc.property(list, (one) => {
        const predicates = readByFind(one);
        const parsed = parseShell(
          ['find', ...one.before, ...one.starts, '-quit', ...one.words].map((word) => `'${word}'`).join(' '),
        );
        const command = parsed.understood ? parsed.line.commands[0] : undefined;
        const use = command === undefined ? undefined : describeCommand(command);
        if (predicates === undefined || !parsed.understood || command === undefined || use === undefined)
          return;
        if (findingsOf(use).some(({ effect }) => effect === 'invalid')) return;
        alike++;
        const uses = pathUses(command, use);
        const named = (effect: string) =>
          uses
            .filter((path) => path.effect === effect)
            .map(({ argument }) => argument.text)
            .sort();
        const theirs = (group: object) =>
          predicates.flatMap(([name = '', file = '']) => (Object.hasOwn(group, name) ? [file] : [])).sort();
        const runs = predicates.filter(([name = '']) => /^-(?:exec|ok)/.test(name)).length;
        expect(
          {
            writes: named('writes'),
            reads: named('reads'),
            runs: parsed.line.commands.filter(({ runBy }) => runBy === 0).length,
            deletes: findingsOf(use).some(({ effect }) => effect === 'removes'),
          },
          JSON.stringify(one),
        ).toEqual({
          writes: theirs(WRITES),
          reads: [...theirs(FILES), ...one.starts].sort(),
          runs,
          deletes: predicates.some(([name]) => name === '-delete'),
        });
      });
      fc.assert(property, { numRuns: 100 });
      const until = Date.now() + (SECONDS * 1000) / 4;
      while (Date.now() < until) fc.assert(property, { numRuns: 10 });
      expect(alike).toBeGreaterThan(20);
    },
    (SECONDS + 120) * 1000,
  );
});
