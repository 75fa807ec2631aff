// Builds the package: the addon (cmake-js) and dist/ (esbuild, then the type declarations).
//   node scripts/build.mjs [--only native|ts]
// A missing compiler does not fail the installation: the launcher then says that the addon is not there.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, rmSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const only = process.argv[2] === '--only' ? process.argv[3] : undefined;
const require = createRequire(import.meta.url);

function binary(packageName, name = packageName) {
  const manifest = require.resolve(`${packageName}/package.json`);
  const { bin } = require(manifest);
  return join(dirname(manifest), typeof bin === 'string' ? bin : bin[name]);
}

function run(script, args, options = {}) {
  return spawnSync(process.execPath, [script, ...args], { cwd: root, encoding: 'utf8', ...options });
}

function buildNative() {
  const built = run(binary('cmake-js'), ['build', '--log-level', 'error']);
  const isThere = (name) => existsSync(join(root, 'build/Release', name));
  if (built.status === 0 && isThere('sandbox_run.node') && isThere('sandbox-run-warden')) {
    console.log('sandbox-run: addon built');
    return true;
  }
  console.error(`${built.stdout ?? ''}${built.stderr ?? ''}`.trim().split('\n').slice(-15).join('\n'));
  console.error(
    'sandbox-run: the native addon could not be built (see above); it needs g++ 11 or newer and cmake 3.18 or newer. ' +
      'Installation goes on; until `npm rebuild` succeeds, sandbox-run says that it has no addon.',
  );
  return false;
}

const COMMON = {
  absWorkingDir: root,
  outdir: 'dist',
  bundle: true,
  platform: 'node',
  target: 'node20',
  external: ['zod', 'smol-toml', 'toml-eslint-parser', '@photostructure/sqlite', '@anthropic-ai/sdk'],
  // What is parsed at each start; names stay, for stack traces.
  minifyWhitespace: true,
  minifySyntax: true,
  logLevel: 'warning',
};

/** The library: ES modules in pieces, because some are loaded only when they are needed. */
function buildLibrary(build, compiled) {
  return build({
    ...COMMON,
    plugins: compiled,
    entryPoints: { index: 'src/index.ts' },
    splitting: true,
    format: 'esm',
    chunkNames: 'chunks/[name]-[hash]',
    // CommonJS dependencies that are bundled call require().
    banner: {
      js: "import { createRequire as __createRequire } from 'node:module'; const require = __createRequire(import.meta.url);",
    },
  });
}

/** Commander wants it for subcommands that are programs of their own, which there are none of; it loads all of node:net. */
const WITHOUT_CHILD_PROCESS = {
  name: 'without-child-process',
  setup(setUp) {
    setUp.onResolve({ filter: /^node:child_process$/ }, ({ importer }) =>
      importer.includes('/commander/') ? { path: 'none', namespace: 'nothing' } : undefined,
    );
    setUp.onLoad({ filter: /^none$/, namespace: 'nothing' }, () => ({ contents: 'module.exports = {};' }));
  },
};

/**
 * The program: CommonJS, which Node loads about 15 ms sooner than the same code as ES modules. A file that does nothing
 * but load the others, one for running a command, one for each subcommand.
 */
async function buildProgram(build, compiled) {
  const files = new Set(['main']);
  const apart = {
    name: 'files-apart',
    setup(setUp) {
      setUp.onResolve({ filter: /^\.\/[a-z-]+\.ts$/ }, ({ path, kind, importer }) => {
        const isStart = /\/src\/cli\/(main|dispatch)\.ts$/.test(importer);
        if (kind !== 'dynamic-import' || !isStart || path === './run.ts') return undefined;
        const name = path.slice(2, -3);
        files.add(name);
        return name === 'dispatch' ? undefined : { path: `./${name}.cjs`, external: true };
      });
      setUp.onLoad({ filter: /\/src\/cli\/dispatch\.ts$/ }, ({ path }) => {
        if (setUp.initialOptions.entryPoints.dispatch !== undefined) return undefined;
        const contents = [
          `import { loadCompiled } from '../run/load-compiled.ts';`,
          `export const { dispatch } = loadCompiled('dispatch');`,
        ].join('\n');
        return { contents, loader: 'js', resolveDir: dirname(path) };
      });
    },
  };
  const bundle = (name) =>
    build({
      ...COMMON,
      entryPoints: { [name === 'main' ? 'cli' : name]: `src/cli/${name}.ts` },
      format: 'cjs',
      outExtension: { '.js': '.cjs' },
      // import() of a package would start the loader of ES modules.
      supported: { 'dynamic-import': false },
      define: { 'import.meta.url': '__moduleUrl' },
      banner: { js: "const __moduleUrl = require('node:url').pathToFileURL(__filename).href;" },
      plugins: [apart, ...compiled, WITHOUT_CHILD_PROCESS],
    });
  // A set grows while it is walked: each file may name further ones.
  for (const name of files) await bundle(name);
  // In a process of its own, whose output and end are nobody's business. Without the code the start is slower.
  spawnSync(process.execPath, [join(root, 'scripts/compiled-code.mjs')], {
    stdio: 'ignore',
    timeout: 30_000,
  });
}

async function buildTypeScript() {
  const { build } = await import('esbuild');
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  const { buildCompiledModules } = await import('./build-compiled.mjs');
  const compiled = await buildCompiledModules(COMMON, build);
  await buildLibrary(build, compiled);
  await buildProgram(build, compiled);
  const types = run(binary('typescript', 'tsc'), ['-p', 'tsconfig.types.json'], { stdio: 'inherit' });
  if (types.status !== 0) process.exit(1);
  chmodSync(join(root, 'dist/cli.cjs'), 0o755);
  linkOwnProgram();
  console.log('sandbox-run: dist/ built');
}

// `npx sandbox-run` in the checkout: npm links the programs of dependencies only, and would install the checkout into
// a cache of its own on each first call.
function linkOwnProgram() {
  const link = join(root, 'node_modules/.bin/sandbox-run');
  if (!existsSync(dirname(link))) return;
  rmSync(link, { force: true });
  symlinkSync('../../dist/cli.cjs', link);
}

if (only !== 'ts') {
  const built = buildNative();
  // Asked for by name, a failure is a failure.
  if (!built && only === 'native') process.exit(1);
}
if (only !== 'native') await buildTypeScript();
