import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { explainProgram } from '../../../../src/cli/index.ts';
import { effectsOf } from '../../../../src/judge/checks/effects.ts';
import type { ProgramRow } from '../../../../src/judge/programs/behaviour.ts';
import { BUILTINS } from '../../../../src/judge/programs/families/shells.ts';
import { pathUses } from '../../../../src/judge/programs/path-uses.ts';
import {
  describeCommand,
  findForApplication,
  PROGRAM_ROWS,
} from '../../../../src/judge/programs/program-table.ts';
import { reachOfLine, riskOfLine } from '../../../../src/judge/programs/risk.ts';
import { parseShell } from '../../../../src/judge/shell/parse.ts';
import type { Parsed } from '../../../../src/model/index.ts';
import { contextOf } from '../../../support/check-context.ts';
import { judgeText } from '../../../support/policy-world.ts';

// One row more than the table has. Nothing else knows of it.
await vi.hoisted(async () => {
  const { programs } = await import('../../../../src/judge/programs/behaviour.ts');
  const { SYSTEM } = await import('../../../../src/judge/programs/families/system.ts');
  const added = programs('spinner', 'low', 'local', () => ({
    operands: 'none',
    launches: { operands: 1 },
    grammar: { stopAtOperand: true, flags: 'q quiet melt', writes: 'o log', networking: 'report' },
    loses: () => ({ what: 'always', message: 'would wear the disk out' }),
    assigns: ({ operands: [first] }) => (first === undefined ? [] : [first.word]),
    dangers: ({ options }) =>
      options.some(({ name }) => name === 'melt')
        ? [{ effect: 'writes', code: 'device', message: 'would melt it', words: [] }]
        : [],
    interprets: 'script',
    application: {},
  }));
  // The table is made of it when its module is loaded, which is after this.
  (SYSTEM as ProgramRow[]).push(...added);
});

const commandsOf = (parsed: Parsed) => (parsed.understood ? parsed.line.commands : []);

describe('the table of programs', () => {
  it('has each program in one row', () => {
    const names = PROGRAM_ROWS.flatMap((row) => row.names.split(' '));
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });
});

describe('what reads the table', () => {
  it.each(['judge/checks', 'judge/shell'])('src/%s asks no program for its name', (folder) => {
    const known = new Set(PROGRAM_ROWS.flatMap((row) => row.names.split(' ')));
    // What these mean is the language of the shell.
    for (const name of ['time', ...BUILTINS.flatMap((row) => row.names.split(' '))]) known.delete(name);
    const root = new URL(`../../../../src/${folder}/`, import.meta.url);
    const asked = readdirSync(root, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .flatMap((file) =>
        [...readFileSync(new URL(file, root), 'utf8').matchAll(/[!=]== '([\w.-]+)'/g)]
          .filter(([, name = '']) => known.has(name))
          .map(([text]) => `${file}: ${text}`),
      );
    expect(asked).toEqual([]);
  });
});

describe('a program of one row', () => {
  const parsed = parseShell('spinner -qo spin.log 5 rm -rf build');
  const [spinner, ...run] = commandsOf(parsed);

  it('is seen by the shell layer: what it runs is listed', () => {
    expect(run.map(({ words }) => words.map(({ value }) => value).join(' '))).toEqual(['rm -rf build']);
    expect(parseShell('nice spinner 5 sh -c "touch x"').understood).toBe(true);
    expect(commandsOf(parseShell('spinner --wat 5 rm x'))).toEqual([]);
    expect(commandsOf(parseShell('spinner "$x" rm x'))).toEqual([]);
  });

  it('is seen by what asks for paths, risk and reach', () => {
    if (spinner === undefined) throw new Error('it was not understood');
    const paths = pathUses(spinner, describeCommand(spinner));
    expect(paths.map(({ argument, effect }) => [argument.text, effect])).toEqual([['spin.log', 'writes']]);
    expect(riskOfLine(parsed)).toBe('high');
    expect(riskOfLine(parseShell('spinner -q 5 true'))).toBe('low');
    expect(reachOfLine(parseShell('spinner -q 5 true'))).toBe('local');
    expect(reachOfLine(parseShell('spinner --report 5 true'))).toBe('network');
  });

  it('is seen by the checks', () => {
    const said = (text: string) =>
      judgeText(text).reasons.flatMap(({ check, code, verdict }) =>
        verdict === undefined ? [] : [`${check} ${code} ${verdict}`],
      );
    expect(said('spinner -q 5 true')).not.toContain('environment variable ask');
    expect(said('spinner -q LD_PRELOAD=./x true')).toContain('environment variable ask');
    expect(said('spinner --melt 5 true')).toContain('dangerous device deny');
    expect(said('spinner -o /etc/passwd 5 true').join()).toMatch(/paths \w+ (?:ask|deny)/);
    expect(effectsOf(contextOf('spinner'), [], 'spinner').parts[0]?.isOpen).toBe(true);
    expect(findForApplication('spinner')?.name).toBe('spinner');
  });

  it('is seen by people', () => {
    expect(explainProgram('spinner')).toEqual([
      'spinner: risk low, no network, runs commands that stand in its words, can lose what version control would not bring back',
      '  runs under the application backend, too, where its words show that it stays in the workspace',
      '  no operand is a path',
      '  of no concern: -q, --quiet, --melt',
      '  writes: -o …, --log …',
      '  uses the network: --report',
    ]);
  });

  it('is nothing where the table does not have it', () => {
    expect(explainProgram('no-such-spinner')).toBeUndefined();
    expect(commandsOf(parseShell('no-such-spinner 5 rm x'))).toHaveLength(1);
  });
});
