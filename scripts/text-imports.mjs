// Files that a module has as text: `import { text } from './page.css?text'`. Of TypeScript it is the script that browsers
// get, with all that it imports.
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new URL('..', import.meta.url));
const SUFFIX = '?text';

async function moduleOf(path) {
  const text = path.endsWith('.ts') ? await scriptOf(path) : await readFile(path, 'utf8');
  return `export const text = ${JSON.stringify(text)};`;
}

/** Not minified: who is asked for approvals may want to read what asks. */
async function scriptOf(path) {
  const { outputFiles } = await build({
    absWorkingDir: root,
    entryPoints: [path],
    bundle: true,
    write: false,
    platform: 'browser',
    format: 'iife',
    target: 'es2022',
    logLevel: 'warning',
  });
  return outputFiles[0].text;
}

/** For esbuild. */
export const textImports = {
  name: 'text-imports',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /\?text$/ }, ({ path, resolveDir }) => ({
      path: join(resolveDir, path.slice(0, -SUFFIX.length)),
      namespace: 'text',
    }));
    onLoad({ filter: /./, namespace: 'text' }, async ({ path }) => ({ contents: await moduleOf(path) }));
  },
};

/** For vitest. */
export const textImportsOfTests = {
  name: 'text-imports',
  enforce: 'pre',
  // Under a name that says nothing of its kind, or it would be taken for a style sheet.
  resolveId: (path, importer) =>
    path.endsWith(SUFFIX) ? `\0text:${join(dirname(importer), path.slice(0, -SUFFIX.length))}:` : undefined,
  load: (id) => (id.startsWith('\0text:') ? moduleOf(id.slice('\0text:'.length, -1)) : undefined),
};
