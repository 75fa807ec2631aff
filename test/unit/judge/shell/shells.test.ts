import { describe, expect, it } from 'vitest';
import { SHELLS } from '../../../../src/judge/programs/families/shells.ts';
import { PROGRAM_ROWS, runnerOf } from '../../../../src/judge/programs/program-table.ts';
import { parseShell } from '../../../../src/judge/shell/parse.ts';

/** Programs of the tables whose names end like those of shells; rsh is one elsewhere, which the network keeps away. */
const NO_SHELLS: ReadonlySet<string> = new Set(['hash', 'trash', 'rsh']);

describe('shells', () => {
  it('each that the tables know has a runner', () => {
    const shells = [
      ...SHELLS.flatMap(({ names }) => names.split(' ')),
      ...PROGRAM_ROWS.flatMap(({ names }) => names.split(' ')).filter((name) =>
        /^[a-z]?(?:[a-z]?[abckz]|pd|mk)?sh$/.test(name),
      ),
    ].filter((name) => !NO_SHELLS.has(name));
    expect(shells.filter((name) => runnerOf(name, true) === undefined)).toEqual([]);
  });

  it.each([
    "tcsh -c 'rm x'",
    "csh -fc 'rm x'",
    'csh x.csh',
    "fish -c 'rm x'",
    "fish -C 'rm x' x.fish",
    'echo ls | tcsh',
    "/bin/csh -c 'rm x'",
    "env tcsh -c 'rm x'",
    "yash -c 'rm x'",
  ])('%s is not understood', (command) => {
    expect(parseShell(command).understood).toBe(false);
  });

  it('rbash is read as bash', () => {
    const parsed = parseShell("rbash -c 'rm x'");
    const commands = parsed.understood ? parsed.line.commands : [];
    expect(commands.map(({ words }) => words[0]?.value)).toEqual(['rbash', 'rm']);
  });

  it('asking a shell for its version runs nothing', () => {
    expect(parseShell('tcsh --version').understood).toBe(true);
  });
});
