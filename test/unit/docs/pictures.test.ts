import { readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { blocksOf } from '../../support/documented-blocks.ts';

const at = (name: string) => fileURLToPath(new URL(`../../../docs/${name}`, import.meta.url));

// test/integration/documented-blocks.test.ts runs the block again.
it('the picture of a terminal shows the first transcript of the page, as scripts/pictures.mjs made it', () => {
  const page = readFileSync(at('getting-started.md'), 'utf8');
  const [block] = blocksOf('getting-started.md', page).filter(({ language }) => language === 'console');
  const shown = [
    ...readFileSync(at('pictures/terminal.svg'), 'utf8').matchAll(/<text .*?>(.*)<\/text>/g),
  ].map(([, text = '']) => text.replaceAll('&lt;', '<').replaceAll('&amp;', '&'));
  expect(shown).toEqual(block?.text.trimEnd().split('\n'));
});

it('the picture of the page of approvals is a PNG of a whole page', () => {
  const png = readFileSync(at('pictures/approvals.png'));
  expect(png.subarray(1, 4).toString()).toBe('PNG');
  expect(png.readUInt32BE(16)).toBe(760);
  expect(statSync(at('pictures/approvals.png')).size).toBeLessThan(300_000);
});
