// Test files made ready for a virtual machine, where compilers are too slow: bundled, and the programs that they compile
// compiled beforehand.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { build } from 'esbuild';
import { textImports } from '../text-imports.mjs';
import { buildProduct, fromProduct } from './product.mjs';
import { PROJECT } from './root.mjs';

const SUITES = ['test/enforcement', 'test/conformance'];
const HERE = join(PROJECT, 'scripts/vm/tests');
/** Has a binary that it finds beside its own files. */
const NATIVE = '@photostructure/sqlite';

/** Puts the suites' files into `/app/dist/tests` of a root; with one of `wanted` in their names. Returns the names. */
export async function addTests(root, wanted) {
  const files = SUITES.filter((suite) => existsSync(join(PROJECT, suite))).flatMap((suite) =>
    readdirSync(join(PROJECT, suite), { recursive: true })
      .filter((name) => name.endsWith('.test.ts') && wanted.some((text) => name.includes(text)))
      .map((name) => join(PROJECT, suite, name)),
  );
  const outdir = join(root, 'app/dist/tests');
  const options = {
    entryPoints: [...files, join(HERE, 'run.mjs'), join(HERE, 'prebuild.ts')].map((file) => ({
      in: file,
      out: file.includes('/test/') ? basename(file, '.ts') : basename(file).replace(/\.\w+$/, ''),
    })),
    outdir,
    bundle: true,
    splitting: true,
    // Half as much to read.
    minifySyntax: true,
    minifyWhitespace: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    outExtension: { '.js': '.mjs' },
    alias: { vitest: join(HERE, 'vitest.mjs'), esbuild: join(HERE, 'esbuild.mjs') },
    external: [NATIVE],
    plugins: [textImports],
    banner: { js: 'import { createRequire as cr } from "node:module"; const require = cr(import.meta.url);' },
    logLevel: 'error',
  };
  mkdirSync(join(root, 'prebuilt'));
  const product = await buildProduct(options, outdir);
  // For the bundles that tests make: tests/esbuild.mjs.
  writeFileSync(join(root, 'prebuilt/product.json'), JSON.stringify(product));
  await build({ ...options, plugins: [fromProduct(product), textImports] });
  // What tests read of test/cases stands beside their folder, as it does here.
  cpSync(join(PROJECT, 'test/cases'), join(root, 'app/dist/cases'), { recursive: true });
  for (const name of packagesOf(NATIVE)) {
    cpSync(join(PROJECT, 'node_modules', name), join(root, 'app/node_modules', name), {
      recursive: true,
      dereference: true,
      filter: (source) => !/\/(src|doc|test|prebuilds\/(?!linux-x64))/.test(source.slice(PROJECT.length)),
    });
  }
  const names = files.map((file) => basename(file, '.ts'));
  prebuild(root, outdir, names);
  return names;
}

/** Loads every file here once, which compiles what it needs. */
function prebuild(root, outdir, names) {
  mkdirSync(join(root, 'prebuilt/bin'));
  cpSync(join(HERE, 'gcc'), join(root, 'prebuilt/bin/gcc'));
  const which = spawnSync('bash', ['-c', 'type -P gcc'], { encoding: 'utf8' });
  // Loaded tests make directories that they remove at the end of a run, which does not come.
  const tmp = `${root}.tmp`;
  mkdirSync(tmp);
  const env = {
    ...process.env,
    TMPDIR: tmp,
    PATH: `${join(root, 'prebuilt/bin')}:${process.env.PATH}`,
    SANDBOX_RUN_PREBUILT: join(root, 'prebuilt'),
    SANDBOX_RUN_GCC: which.stdout.trim(),
    SANDBOX_RUN_PROJECT: PROJECT,
  };
  const files = ['prebuild', ...names].map((name) => join(outdir, `${name}.mjs`));
  const done = spawnSync(process.execPath, [join(outdir, 'run.mjs'), '--collect', ...files], {
    env,
    encoding: 'utf8',
    timeout: 300_000,
  });
  rmSync(tmp, { recursive: true, force: true });
  if (done.status !== 0)
    throw new Error(
      `the tests cannot be loaded: ${(done.stderr || done.stdout || String(done.error)).slice(-2000)}`,
    );
}

/** A package and those that it needs, by name. */
function packagesOf(name, seen = new Set()) {
  const { dependencies = {} } = JSON.parse(
    readFileSync(join(PROJECT, 'node_modules', name, 'package.json'), 'utf8'),
  );
  seen.add(name);
  for (const next of Object.keys(dependencies)) if (!seen.has(next)) packagesOf(next, seen);
  return seen;
}
