import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import {
  describeAs,
  findingsOf,
  findProgram,
  type Program,
  type ProgramRow,
  pathUses,
  programs,
} from '../../../src/judge/index.ts';
import { commandIn } from '../../support/simple-command.ts';

const PAGE = readFileSync(new URL('../../../docs/adding-a-command.md', import.meta.url), 'utf8');

it('the row that docs/adding-a-command.md shows says what its table says', () => {
  const block = (language: string) =>
    new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(PAGE)?.[1] ?? '';
  const [row] = new Function('programs', `return ${block('ts')}`)(programs) as readonly ProgramRow[];
  if (row === undefined) throw new Error('no row');
  const { names: name, risk, reach, behaviour } = row;
  expect(behaviour().grammar).toBe(name);
  // As it would be read from its file.
  const program: Program = { ...behaviour(), name, risk, reach, grammar: JSON.parse(block('json'))[name] };
  // Else the example would be an honest program.
  expect(findProgram(program.name)).toBeUndefined();

  const lines = [...PAGE.matchAll(/^\| `(frob [^`]*)` \| (.*) \|$/gm)];
  expect(lines.length).toBeGreaterThan(5);
  for (const [, line = '', told = ''] of lines) {
    const command = commandIn(line);
    const use = describeAs(command, program);
    const known = [
      ...pathUses(command, use).map(({ argument, effect }) => `${effect} ${argument.text}`),
      ...findingsOf(use).flatMap(({ effect, code }) => (effect === 'reads' ? [] : [code])),
      ...use.unknown.map(({ source }) => `unknown ${source}`),
    ];
    expect(known.join(', '), line).toBe(told);
  }
});
