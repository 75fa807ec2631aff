import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import GithubSlugger from 'github-slugger';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const PAGES = [
  'README.md',
  'SECURITY.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  'llms.txt',
  'native/README.md',
  ...readdirSync(join(ROOT, 'src'), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `src/${name}/README.md`),
  ...readdirSync(join(ROOT, 'docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

const textOf = (page: string) => readFileSync(join(ROOT, page), 'utf8');
/** Without blocks of code, in which nothing is a heading or a link. */
const proseOf = (page: string) => textOf(page).replace(/^```[\s\S]*?^```/gm, '');

function anchorsOf(page: string): ReadonlySet<string> {
  const slugger = new GithubSlugger();
  const headings = [...proseOf(page).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => heading);
  return new Set(headings.map((heading) => slugger.slug(heading.replace(/`/g, ''))));
}

/** Links of a page that lead nowhere. */
function brokenLinks(page: string, prose = proseOf(page)): readonly string[] {
  return [...prose.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .filter((link) => {
      const [path = '', anchor] = link.split('#');
      const target = path === '' ? page : relative(ROOT, join(ROOT, dirname(page), path));
      if (!existsSync(join(ROOT, target))) return true;
      return anchor !== undefined && !anchorsOf(target).has(anchor);
    });
}

describe('the documentation', () => {
  it.each(PAGES)('%s links to what is there', (page) => {
    expect(brokenLinks(page)).toEqual([]);
  });

  it('would be told of a link that leads nowhere', () => {
    const broken =
      '[a](docs/nothing.md) [b](docs/policy.md#nothing) [c](docs/policy.md) [d](https://example.org)';
    expect(brokenLinks('README.md', broken)).toEqual(['docs/nothing.md', 'docs/policy.md#nothing']);
  });

  it('has a README of at most 200 lines that leads to every page, as llms.txt does', () => {
    const readme = textOf('README.md');
    expect(readme.split('\n').length).toBeLessThanOrEqual(200);
    for (const page of PAGES.filter((name) => name.startsWith('docs/')))
      for (const text of [readme, textOf('llms.txt')]) expect(text).toContain(`](${page}`);
  });

  it.each(PAGES.filter((name) => name.startsWith('docs/')))('%s opens with a recipe', (page) => {
    const lines = textOf(page).split('\n');
    expect(lines[0]).toMatch(/^# /);
    expect(lines.findIndex((line) => line.startsWith('```'))).toBeLessThan(6);
  });
});
