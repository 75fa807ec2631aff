import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { TOOL_ROWS } from '../../real-work/tools.ts';

const PAGE = fileURLToPath(new URL('../../../docs/tools.md', import.meta.url));

const packagesOf = (packages: string) =>
  packages
    .split(' ')
    .map((name) => (name.startsWith('npm:') ? `npm \`${name.slice('npm:'.length)}\`` : `\`${name}\``))
    .join(' ');

const ROWS = TOOL_ROWS.map(({ tool, task, packages, options = [], differs }) => {
  const works = differs === undefined ? 'yes' : `no: ${differs}`;
  const option = options.map((word) => `\`${word}\``).join(' ');
  return `| ${tool} | ${task} | ${works} | ${option} | ${packagesOf(packages)} |`;
});

const TEXT = `# Tools

Each row is a task that is run twice as an ordinary user, in a fresh workspace in that user's home: by itself and with
\`sandbox-run -- …\`, without a policy file. "yes" means that the exit status, the standard output and the files of the workspace
were equal both times. With namespaces, on Debian, without network.

The rows are \`test/real-work/tools.ts\`. \`npm run test:tools\` runs them all; a row whose program is absent is left out, and the end of
\`npm test\` and \`npm run test:full\` names that program. \`npm run test:full\` runs a third of them, another one each day.

| Tool | Task | Works | Option that it needs | Packages |
|---|---|---|---|---|
${ROWS.join('\n')}
`;

// `npx vitest run test/unit/docs -u` writes it.
it('docs/tools.md has every row of the table', async () => {
  await expect(TEXT).toMatchFileSnapshot(PAGE);
});
