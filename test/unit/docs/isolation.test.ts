import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const at = (name: string) => fileURLToPath(new URL(`../../../${name}`, import.meta.url));
const read = (name: string) => readFileSync(at(name), 'utf8');

interface Measured {
  readonly version?: string;
  readonly what?: string;
  readonly attacks: Readonly<Record<string, 'held' | 'open'>>;
  readonly work: Readonly<Record<string, 'works' | 'fails'>>;
}
/** Written by `node bench/isolation.mjs`. */
const REPORT = JSON.parse(read('bench/isolation.json')) as {
  readonly kernel: string;
  readonly node: string;
  readonly date: string;
  readonly sandboxes: Readonly<Record<string, Measured>>;
  readonly startMs: Readonly<Record<string, number>>;
};
const { outside, ...SANDBOXES } = REPORT.sandboxes;
const ALL = Object.entries(SANDBOXES);

const row = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`;
const table = (head: readonly string[], rows: readonly (readonly (string | number)[])[]) =>
  [row(head), `|${'---|'.repeat(head.length)}`, ...rows.map(row)].join('\n');
const count = (of: Readonly<Record<string, string>>, what: string) =>
  Object.values(of).filter((one) => one === what).length;
const perSandbox = (of: 'attacks' | 'work') =>
  table(
    ['', ...ALL.map(([name]) => name)],
    Object.keys(outside?.[of] ?? {}).map((what) => [
      what,
      ...ALL.map(([, measured]) => {
        const came = measured[of][what];
        return came === 'open' || came === 'fails' ? `**${came}**` : `${came}`;
      }),
    ]),
  );

const TABLES: Readonly<Record<string, string>> = {
  isolation: table(
    [
      '',
      `of ${Object.keys(outside?.attacks ?? {}).length} attacks held`,
      `of ${Object.keys(outside?.work ?? {}).length} everyday tasks work`,
      'start of `true`',
    ],
    [
      ...ALL.map(([name, { attacks, work }]) => [
        name,
        count(attacks, 'held'),
        count(work, 'works'),
        `${Math.round(REPORT.startMs[name] ?? Number.NaN)} ms${name === 'sandbox-run' ? ` (\`--warm\`: ${Math.round(REPORT.startMs['sandbox-run --warm'] ?? Number.NaN)} ms)` : ''}`,
      ]),
      ['Docker, dev containers, microVMs', ...Array<string>(3).fill('not measured')],
    ],
  ),
  'isolation-settings': `On ${REPORT.date}, Linux ${REPORT.kernel}, Node ${REPORT.node}, as an ordinary user:\n\n${table(
    ['', 'version', 'settings'],
    ALL.map(([name, { version = '', what = '' }]) => [name, version, what]),
  )}`,
  'isolation-attacks': perSandbox('attacks'),
  'isolation-work': perSandbox('work'),
  'isolation-start': table(
    ['', 'median of the start of `true`'],
    Object.entries(REPORT.startMs).map(([name, ms]) => [name, `${ms} ms`]),
  ),
};

// `npx vitest run test/unit/docs -u` writes them.
it.each(['README.md', 'docs/which-isolation.md'])('%s has what was measured', async (page) => {
  let found = 0;
  const made = read(page).replaceAll(
    /<!-- (isolation[a-z-]*):begin -->\n[\s\S]*?<!-- \1:end -->/g,
    (_, name: string) => {
      found += 1;
      return `<!-- ${name}:begin -->\n\n${TABLES[name]}\n\n<!-- ${name}:end -->`;
    },
  );
  expect(found).toBe(page === 'README.md' ? 1 : 4);
  await expect(made).toMatchFileSnapshot(at(page));
});

it('what was measured is what the script tries', () => {
  const script = read('bench/isolation.mjs');
  for (const of of ['attacks', 'work'] as const)
    for (const [what, came] of Object.entries(outside?.[of] ?? {})) {
      expect([what, script.includes(`'${what}': `)]).toEqual([what, true]);
      expect([what, came]).toEqual([what, of === 'attacks' ? 'open' : 'works']);
    }
  const tried = script.match(/^ {2}'.*': (?:\{|\(.*\) =>)/gm) ?? [];
  expect(tried.length).toBeGreaterThanOrEqual(Object.keys({ ...outside?.attacks, ...outside?.work }).length);
});
