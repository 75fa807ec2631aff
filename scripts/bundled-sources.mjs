// What tests import of src/, made by esbuild once for a whole run. Through vite's module runner each test file evaluates some
// three hundred modules of src, one request to the main process for each; as chunks that Node itself loads it is a tenth of that.
import { createHash } from 'node:crypto';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { pastIndexes } from './past-indexes.mjs';
import { textImports } from './text-imports.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const SOURCES = join(root, 'src/');
/** Other chunks come of another state of these. */
const OWN_FILES = ['bundled-sources.mjs', 'past-indexes.mjs'].map((name) => join(import.meta.dirname, name));
/** In node_modules: vitest leaves to Node what lies there. */
const KEPT = join(root, 'node_modules/.sandbox-run-sources');
/** Bundles of other states of src that may still be in use by another run. */
const IN_USE_MS = 24 * 60 * 60 * 1000;

/** The plugin for vitest. Not for watching: what changes in src afterwards would not be seen. */
export async function bundledSources() {
  const files = readdirSync(SOURCES, { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.ts') && !name.includes('/web/browser/'))
    .map((name) => join(SOURCES, name));
  const directory = await bundle(files);
  const known = new Set(files);
  return {
    name: 'bundled-sources',
    enforce: 'pre',
    resolveId(path, importer) {
      if (importer === undefined || !path.startsWith('.') || !path.endsWith('.ts')) return undefined;
      const file = join(importer, '..', path);
      if (!known.has(file)) return undefined;
      return join(directory, relative(SOURCES, file).replace(/\.ts$/, '.js'));
    },
  };
}

/** Makes the chunks unless they are there for this state of src; returns their directory. */
async function bundle(files) {
  // The chunks have the paths of their sources in them: a copy of the checkout makes its own.
  const state = createHash('sha256').update(`${root}\0`);
  for (const file of [...files, ...OWN_FILES, join(root, 'package-lock.json')].sort())
    state.update(`${relative(root, file)}\0${readFileSync(file, 'latin1')}\0`);
  for (const name of readdirSync(SOURCES, { recursive: true, encoding: 'utf8' }).sort()) {
    if (/\.(css|html|svg)$|\/web\/browser\//.test(name) && lstatSync(join(SOURCES, name)).isFile())
      state.update(`${name}\0${readFileSync(join(SOURCES, name), 'latin1')}\0`);
  }
  const directory = join(KEPT, state.digest('hex').slice(0, 16));
  if (existsSync(directory)) return directory;
  mkdirSync(KEPT, { recursive: true });
  for (const name of readdirSync(KEPT)) {
    if (Date.now() - lstatSync(join(KEPT, name)).mtimeMs > IN_USE_MS)
      rmSync(join(KEPT, name), { recursive: true, force: true });
  }
  const making = mkdtempSync(join(KEPT, 'making-'));
  await build({
    absWorkingDir: root,
    entryPoints: files,
    outbase: SOURCES,
    outdir: making,
    bundle: true,
    splitting: true,
    packages: 'external',
    platform: 'node',
    format: 'esm',
    target: 'node20',
    logLevel: 'error',
    plugins: [textImports, { name: 'sources', setup: loadSources }],
  });
  try {
    renameSync(making, directory);
  } catch (error) {
    // Another run was sooner.
    if (!existsSync(directory)) throw error;
    rmSync(making, { recursive: true, force: true });
  }
  return directory;
}

/** A module goes on finding what lies beside its source, and imports the files of a house that it uses, past its index. */
function loadSources({ onLoad }) {
  onLoad({ filter: /^.*\/src\/.*\.ts$/ }, ({ path }) => {
    const text = readFileSync(path, 'utf8');
    const url = JSON.stringify(pathToFileURL(path).href);
    return { contents: pastIndexes(path, text).replaceAll('import.meta.url', url), loader: 'ts' };
  });
}
