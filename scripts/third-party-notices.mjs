// The licences of what is built into dist/, which whoever passes it on has to pass on, too.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * The text of dist/THIRD-PARTY-NOTICES.txt.
 * @param root the checkout
 * @param inputs paths of files that were built in, relative to it, as esbuild's metafile names them
 */
export function thirdPartyNotices(root, inputs) {
  const packages = new Set();
  for (const input of inputs) {
    const [, place] = /^((?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(input) ?? [];
    if (place !== undefined) packages.add(place);
  }
  const notices = [...packages].sort().map((place) => {
    const { name, version, license } = JSON.parse(readFileSync(join(root, place, 'package.json'), 'utf8'));
    const file = readdirSync(join(root, place)).find((each) => /^(licen[cs]e|copying)(\.|$)/i.test(each));
    const text = file === undefined ? `Licence: ${license}` : readFileSync(join(root, place, file), 'utf8');
    return `${name} ${version} (${license})\n\n${text.trim()}\n`;
  });
  return `Built into the programs and the library of sandbox-run:\n\n${notices.join(`\n${'-'.repeat(78)}\n\n`)}`;
}
