import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { explainProgram } from '../../../src/cli/policy/explain-program.ts';
import { PROGRAM_ROWS } from '../../../src/programs/program-table.ts';

const PAGE = fileURLToPath(new URL('../../../docs/programs.md', import.meta.url));

const ROWS = PROGRAM_ROWS.map(({ names }) => {
  const [first = ''] = names.split(' ');
  const [summary = '', second = ''] = explainProgram(first) ?? [];
  const says = summary.slice(first.length + 2);
  const refused = /^ {2}refused/.test(second) ? `; ${second.trim()}` : '';
  return `| ${names
    .split(' ')
    .map((name) => `\`${name}\``)
    .join(' ')} | ${says}${refused} |`;
});

const TEXT = `# Programs

\`sandbox-run policy explain-program git\` shows what is known of one program: its options by what they do, its verbs, which
of its words are paths, and what it runs.

The sandbox holds every program alike; this table is what questions, refusals and explanations go by. A program that is not
in it may do anything that the sandbox lets it do, with risk medium and its use of the network unknown. To add one, add a
row to the file of its family in \`src/programs/families/\`.

| Programs | What is known |
|---|---|
${ROWS.join('\n')}
`;

// `npx vitest run test/unit/docs -u` writes it.
it('docs/programs.md has every row of the table', async () => {
  await expect(TEXT).toMatchFileSnapshot(PAGE);
});
