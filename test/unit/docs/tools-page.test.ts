import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { TOOL_ROWS, TOOLS_WITHOUT_ROW } from '../../real-work/tools.ts';

const PAGE = fileURLToPath(new URL('../../../docs/tools.md', import.meta.url));

const packagesOf = (packages: string) =>
  packages
    .split(' ')
    .map((name) => (name.startsWith('npm:') ? `npm \`${name.slice('npm:'.length)}\`` : `\`${name}\``))
    .join(' ');

const worksIf = (differs: string | undefined, options: readonly string[] = []) =>
  differs !== undefined
    ? `no: ${differs}`
    : options.length === 0
      ? 'yes'
      : `yes, with \`${options.join(' ')}\``;

const ROWS = TOOL_ROWS.map(
  ({ tool, task, packages, options = [], differs, differsWithoutNamespaces = differs, ...row }) => {
    const option = options.map((word) => `\`${word}\``).join(' ');
    const works = `${worksIf(differs)} | ${worksIf(differsWithoutNamespaces, row.optionsWithoutNamespaces)}`;
    return `| ${tool} | ${task} | ${works} | ${option} | ${packagesOf(packages)} |`;
  },
);

const equal = (how: 'differs' | 'differsWithoutNamespaces') =>
  TOOL_ROWS.filter((row) => row.differs === undefined && row[how] === undefined).length;

const withOption = TOOL_ROWS.filter(
  (row) => row.optionsWithoutNamespaces !== undefined && row.differsWithoutNamespaces === undefined,
).length;

const TEXT = `# Tools

Each row is a task that is run three times as an ordinary user, in a fresh workspace in that user's home: by itself, with
\`sandbox-run -- …\`, and with the same on a host that refuses namespaces, where Landlock alone holds files. There is no policy file.
"yes" means that the exit status, the standard output and the files of the workspace were equal. On Debian, without network.

Of ${TOOL_ROWS.length} rows ${equal('differs')} are equal with namespaces and ${equal('differsWithoutNamespaces')} by Landlock alone, ${withOption} of these
with an option that the first failure names. One does not fail: by Landlock alone **jest by watchman ends with 0 and has run no test**, as
watchman is refused its socket and jest takes that for the end of its work. Run it with \`--net @own\`, or as \`jest --no-watchman\`.

The rows are \`test/real-work/tools.ts\`. \`npm run test:tools\` runs them all; a row whose program is absent is left out, and the end of
\`npm test\` and \`npm run test:full\` names that program. \`npm run test:full\` runs a third of them, another one each day.

| Tool | Task | Works with namespaces | By Landlock alone | Option that it needs | Packages |
|---|---|---|---|---|---|
${ROWS.join('\n')}

## Tools without a row

| Tool | Why |
|---|---|
${TOOLS_WITHOUT_ROW.map(({ tool, why }) => `| ${tool} | ${why} |`).join('\n')}
`;

// `npx vitest run test/unit/docs -u` writes it.
it('docs/tools.md has every row of the table', async () => {
  await expect(TEXT).toMatchFileSnapshot(PAGE);
});
