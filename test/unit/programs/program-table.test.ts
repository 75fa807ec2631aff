import { describe, expect, it, vi } from 'vitest';
import { explainProgram } from '../../../src/cli/policy/explain-program.ts';
import type { Parsed } from '../../../src/model/command-line.ts';
import type { ProgramRow } from '../../../src/programs/behaviour.ts';
import { describeCommand } from '../../../src/programs/describe.ts';
import { pathUses } from '../../../src/programs/path-uses.ts';
import { PROGRAM_ROWS } from '../../../src/programs/program-table.ts';
import { reachOfLine, riskOfLine } from '../../../src/programs/risk.ts';
import { parseShell } from '../../../src/shell/parse.ts';

// One row more than the table has. Nothing else knows of it.
vi.mock('../../../src/programs/families/system.ts', async (original) => {
  const { programs } = await import('../../../src/programs/behaviour.ts');
  const family = await original<{ readonly SYSTEM: readonly ProgramRow[] }>();
  const added = programs('spinner', 'low', 'local', {
    operands: 'none',
    launches: { operands: 1 },
    grammar: { stopAtOperand: true, flags: 'q quiet', writes: 'o log', networking: 'report' },
    loses: () => ({ what: 'always', message: 'would wear the disk out' }),
  });
  return { SYSTEM: [...family.SYSTEM, ...added] };
});

const commandsOf = (parsed: Parsed) => (parsed.understood ? parsed.line.commands : []);

describe('the table of programs', () => {
  it('has each program in one row', () => {
    const names = PROGRAM_ROWS.flatMap((row) => row.names.split(' '));
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
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

  it('is seen by people', () => {
    expect(explainProgram('spinner')).toEqual([
      'spinner: risk low, no network, runs commands that stand in its words, can lose what version control would not bring back',
      '  no operand is a path',
      '  of no concern: -q, --quiet',
      '  writes: -o …, --log …',
      '  uses the network: --report',
    ]);
  });

  it('is nothing where the table does not have it', () => {
    expect(explainProgram('no-such-spinner')).toBeUndefined();
    expect(commandsOf(parseShell('no-such-spinner 5 rm x'))).toHaveLength(1);
  });
});
