import { readFileSync, writeFileSync } from 'node:fs';
import { transform } from 'esbuild';

/** For the build of a file that is printed in lines afterwards: statements stay as they are. */
export const READABLE = { minifySyntax: false };

/**
 * Prints a file of dist/ again, a line for each statement and without comments: of an error that nobody catches Node shows the
 * line that threw it.
 */
export async function printInLines(file) {
  const { code } = await transform(readFileSync(file, 'utf8'), { charset: 'ascii', target: 'node20' });
  writeFileSync(file, code);
}
