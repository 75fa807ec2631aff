import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { ERROR_CODES } from '../../src/base/errors/codes.ts';
import {
  type CollectedProgram,
  type CommandDescription,
  collectPrograms,
  describeAll,
  EXAMPLE_LINES,
  everyCommand,
  exitStatuses,
  programOf,
  SUBCOMMANDS,
  WORDS_OF_OPTIONS,
} from '../../src/cli/index.ts';
import { callsIn, parseAsCalled } from '../support/parse-example.ts';

const DIST = new URL('../../dist/', import.meta.url);
const built = (name: string) => readFileSync(new URL(name, DIST), 'utf8');

let commands: readonly CommandDescription[] = [];
/** What a help shows below the options, of every command. */
let allNotes: readonly { readonly path: string; readonly isLeaf: boolean; readonly notes: string }[] = [];
beforeAll(async () => {
  const programs = await collectPrograms();
  commands = everyCommand(describeAll(programs));
  allNotes = notesBelow(programs);
});

/** Commander tells what was added to a help only by printing it. */
function notesBelow({ path, program, subcommands }: CollectedProgram): typeof allNotes {
  let printed = '';
  program.configureOutput({
    writeOut: (text) => {
      printed += text;
    },
  });
  program.outputHelp();
  const notes = printed.slice(program.helpInformation().length).trim();
  return [
    { path: path.join(' '), isLeaf: subcommands.length === 0, notes },
    ...subcommands.flatMap(notesBelow),
  ];
}

/** What a help shows as examples. */
const examplesOf = (notes: string) =>
  [...notes.matchAll(/^Examples:\n((?: {2}.*\n?)+)/gm)].flatMap(([, lines = '']) =>
    lines
      .trimEnd()
      .split('\n')
      .map((line) => line.trim()),
  );

describe('the commands describe themselves', () => {
  it('every subcommand of every level is there, with what it does', async () => {
    const paths = commands.map(({ path }) => path.join(' '));
    expect(new Set(paths).size).toBe(paths.length);
    for (const [name, load] of Object.entries(SUBCOMMANDS)) {
      expect(paths).toContain(name);
      const program = await programOf(await load(), []);
      expect(program.name()).toBe(`sandbox-run ${name}`);
      for (const inner of program.commands) expect(paths).toContain(`${name} ${inner.name()}`);
    }
    for (const { summary, path } of commands) expect(summary, path.join(' ')).not.toBe('');
  });

  it('no help says a default twice', async () => {
    const all = (program: CollectedProgram): readonly CollectedProgram[] => [
      program,
      ...program.subcommands.flatMap(all),
    ];
    for (const { path, program } of all(await collectPrograms()))
      expect(program.helpInformation().replace(/\s+/g, ' '), path.join(' ')).not.toMatch(
        /\(default[^)]*\) \(default/,
      );
  });

  it('one that parses by a program of its own is described by that', () => {
    const run = commands.find(({ path }) => path.join(' ') === 'session run');
    expect(run?.options.flatMap(({ names }) => names)).toContain('--taint');
    expect(run?.arguments.map(({ value }) => value.kind)).toEqual(['text', 'command']);
  });

  it('every option says what it is for, and none is described by words that no command has', () => {
    const options = commands.flatMap(({ path, options }) => options.map((option) => ({ path, ...option })));
    for (const { path, names, summary } of options) expect(summary, `${path} ${names}`).not.toBe('');
    for (const name of Object.keys(WORDS_OF_OPTIONS))
      expect(options.some(({ names }) => names.includes(name))).toBe(true);
  });

  it('a command that does not parse is an error, and not left out', async () => {
    await expect(programOf(async () => 0, ['x'])).rejects.toMatchObject({ code: 'usage.invalid' });
  });
});

describe('what is built of the descriptions', () => {
  it.each(['completions/sandbox-run.bash', 'completions/sandbox-run.zsh', 'completions/sandbox-run.fish'])(
    '%s has every subcommand and every option',
    (file) => {
      const text = built(file);
      expect(text).not.toMatch(/^\s*# @/m);
      for (const { path, options } of commands) {
        expect(text).toContain(path.at(-1) ?? '');
        for (const { names } of options) expect(text).toContain(`'${path.join(' ')}|opt|${names.join(' ')}|`);
      }
    },
  );
});

describe('exit statuses', () => {
  it('each error code belongs to one that is described', () => {
    const described = exitStatuses().flatMap(({ codes }) => codes);
    expect([...described].sort()).toEqual(Object.keys(ERROR_CODES).sort());
  });

  it('docs/command-line.md has the same table', () => {
    const readme = readFileSync(new URL('../../docs/command-line.md', import.meta.url), 'utf8');
    const rows = exitStatuses().map(({ status, meaning }) => `| ${status} | ${meaning} |\n`);
    expect(rows.filter((row) => !readme.includes(row))).toEqual([]);
  });

  it('a subcommand that has some of its own says them', () => {
    for (const { path, isLeaf, notes } of allNotes) {
      if (isLeaf && !path.includes(' ')) expect(notes, path).toMatch(/Exit status: /);
    }
  });
});

describe('examples are accepted by the parser', () => {
  it('those of sandbox-run examples', async () => {
    for (const [, line] of Object.values(EXAMPLE_LINES).flat()) {
      const calls = callsIn(line);
      expect(calls, line).not.toHaveLength(0);
      for (const args of calls) await expect(parseAsCalled(args), line).resolves.toBeUndefined();
    }
  });

  it('those of every help', async () => {
    const lines = allNotes.flatMap(({ notes }) => examplesOf(notes));
    expect(lines.length).toBeGreaterThan(20);
    for (const line of lines) {
      const calls = callsIn(line);
      if (line.startsWith('sandbox-run ')) expect(calls, line).not.toHaveLength(0);
      for (const args of calls) await expect(parseAsCalled(args), line).resolves.toBeUndefined();
    }
  });

  it('and what is wrong is not', async () => {
    await expect(parseAsCalled(['check', '--nope', 'x'])).rejects.toThrow('--nope');
    await expect(parseAsCalled(['policy', 'shwo'])).rejects.toThrow('shwo');
    await expect(parseAsCalled(['approvals', 'show'])).rejects.toThrow('id');
  });
});
