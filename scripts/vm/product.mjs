// The product's own modules in a virtual machine: one file with compiled code (cf. scripts/compiled-code.mjs), as every test
// process and every launcher loads them, and compiling them anew takes a second where a processor is emulated.
import { spawnSync } from 'node:child_process';
import { cpSync } from 'node:fs';
import { join, relative } from 'node:path';
import { build } from 'esbuild';
import { PROJECT } from './root.mjs';

/** Loads it, and so is in every bundle. */
const LOADER = 'src/run/load-compiled.ts';
const inProduct = (path) => path.startsWith('src/') && path !== LOADER;

/**
 * Builds `part-product.cjs` in a directory out of those modules that a bundle with `options` takes from it. Returns what each of
 * them exports, by path.
 */
export async function buildProduct(options, outdir) {
  const paths = await usedBy(options);
  const exports = await exportsOf(paths, options);
  const outfile = join(outdir, 'part-product.cjs');
  // They are read when they are needed, beside the file that reads them.
  cpSync(join(PROJECT, 'src/judge/programs/grammars'), join(outdir, 'grammars'), { recursive: true });
  await build({
    ...options,
    entryPoints: undefined,
    // Each is loaded when it is first asked for.
    stdin: {
      contents: `module.exports = {${paths.map((path) => `'${path}': () => require('./${path}')`)}};`,
      resolveDir: PROJECT,
    },
    outdir: undefined,
    outfile,
    outExtension: undefined,
    format: 'cjs',
    splitting: false,
    supported: { 'dynamic-import': false },
    charset: 'ascii',
    define: { 'import.meta.url': '__moduleUrl' },
    banner: { js: "const __moduleUrl = require('node:url').pathToFileURL(__filename).href;" },
  });
  const warmed = spawnSync(process.execPath, [join(PROJECT, 'scripts/vm/warm-product.mjs'), outfile], {
    encoding: 'utf8',
    timeout: 120_000,
  });
  if (warmed.status !== 0)
    throw new Error(
      `the product cannot be compiled: ${warmed.stderr || String(warmed.error ?? warmed.signal)}`,
    );
  return exports;
}

/** Makes a bundle take the modules from `part-product.cjs`, which has to lie beside it. */
export function fromProduct(exports) {
  return {
    name: 'product',
    setup({ onLoad }) {
      onLoad({ filter: /\.ts$/ }, ({ path }) => {
        const name = relative(PROJECT, path);
        if (exports[name] === undefined) return undefined;
        return {
          contents: [
            `import { loadCompiled } from './${LOADER}';`,
            // One for all of a process: they have a state.
            `const product = globalThis[Symbol.for('sandbox-run product')] ??= loadCompiled('product');`,
            `export const { ${exports[name].join(', ')} } = product['${name}']();`,
          ].join('\n'),
          resolveDir: PROJECT,
        };
      });
    },
  };
}

/** The modules of the product that are imported from outside it. */
async function usedBy(options) {
  const { inputs } = (await build({ ...options, absWorkingDir: PROJECT, metafile: true, write: false }))
    .metafile;
  const used = Object.entries(inputs)
    .filter(([path]) => !path.startsWith('src/'))
    .flatMap(([, { imports }]) => imports.map(({ path }) => path).filter(inProduct));
  return [...new Set(used)].sort();
}

async function exportsOf(paths, options) {
  const { outputs } = (
    await build({
      ...options,
      absWorkingDir: PROJECT,
      entryPoints: paths,
      metafile: true,
      write: false,
    })
  ).metafile;
  return Object.fromEntries(
    Object.values(outputs)
      .filter(({ entryPoint }) => paths.includes(entryPoint))
      .map(({ entryPoint, exports }) => [entryPoint, exports]),
  );
}
