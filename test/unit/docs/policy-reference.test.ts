import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { PLACED_KEYS, type PlacedKey, whyNeverTrusted } from '../../../src/model/index.ts';
import { SYSTEM_LOOKED_AT, SYSTEM_SECRET_NAMES } from '../../../src/policy/index.ts';

const PAGE = fileURLToPath(new URL('../../../docs/policy.md', import.meta.url));

const LAYERS: Readonly<Record<PlacedKey['row']['layers'], string>> = {
  replace: 'takes the place of an earlier one',
  add: 'adds to earlier ones',
  'by-name': 'takes the place of earlier ones, name by name',
};

const NARROWING: Readonly<Record<NonNullable<PlacedKey['row']['workspace']>['narrow'], string>> = {
  strictest: 'the strictest value only',
  smaller: 'a smaller number',
  shorter: 'a shorter time',
  intersection: 'a part of the list',
  stricterAutonomy: 'a stricter level',
  narrowerNetwork: 'a narrower mode',
  strongerBackend: 'a stronger backend',
  adds: 'more of it',
};

function row(placed: PlacedKey): string {
  const {
    key,
    row: { text, example, layers, workspace, trust },
  } = placed;
  const cells = [
    `\`${key}\``,
    text,
    `\`${example}\``,
    LAYERS[layers],
    workspace === undefined ? '–' : NARROWING[workspace.narrow],
    trust === undefined ? `never: ${whyNeverTrusted(placed)}` : `${trust.opens} (risk ${trust.risk})`,
  ];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

const TABLE = [
  '| Key | Meaning | Example | A later layer | A file in the workspace | Once trusted |',
  '|---|---|---|---|---|---|',
  ...PLACED_KEYS.map(row),
].join('\n');

const names = (all: readonly string[]) => all.map((name) => `\`${name}\``).join(' ');

const SECRETS = [
  '| In /etc | May hold |',
  '|---|---|',
  ...Object.entries(SYSTEM_SECRET_NAMES).map(
    ([reason, listed]) => `| ${names(listed.split(/\s+/))} | ${reason} |`,
  ),
].join('\n');

// `npx vitest run test/unit/docs -u` writes it.
it('docs/policy.md has every key, as the table of keys has it, and what of /etc is not shown', async () => {
  const page = readFileSync(PAGE, 'utf8');
  const marked = /(<!-- policy-keys:begin[^>]*-->\n)[\s\S]*(<!-- policy-keys:end -->)/;
  expect(page).toMatch(marked);
  const secrets = /(<!-- system-secrets:begin -->\n)[\s\S]*(<!-- system-secrets:end -->)/;
  expect(page).toMatch(secrets);
  const made = page
    .replace(marked, (_, begin: string, end: string) => `${begin}\n${TABLE}\n\n${end}`)
    .replace(secrets, (_, begin: string, end: string) => `${begin}\n${SECRETS}\n\n${end}`);
  await expect(made).toMatchFileSnapshot(PAGE);
  expect(page).toContain(`of ${names([...SYSTEM_LOOKED_AT]).replaceAll(' ', ', ')}: a file`);
});
