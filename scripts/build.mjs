// Builds the package: the addon (cmake-js) and dist/ (esbuild, then the type declarations).
//   node scripts/build.mjs [--only native|ts]
// Both at once, as far as neither needs the other: a C++ compiler uses one processor, and so do most steps of dist/.
// A missing compiler does not fail the installation: the launcher then says that the addon is not there.
// npm runs this after `npm ci`, and npx of npm 9 and older before each `npx sandbox-run` in the checkout, which it links
// into a cache of its own each time: once is enough.
import { spawn } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bringSqlite, buildNative } from './build-native.mjs';
import { SQLITE } from './native-artifacts.mjs';
import { thirdPartyNotices } from './third-party-notices.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const only = process.argv[2] === '--only' ? process.argv[3] : undefined;
const require = createRequire(import.meta.url);
const NOTICES = 'dist/THIRD-PARTY-NOTICES.txt';
const GRAMMARS = 'src/judge/programs/grammars';

function binary(packageName, name = packageName) {
  const manifest = require.resolve(`${packageName}/package.json`);
  const { bin } = require(manifest);
  return join(dirname(manifest), typeof bin === 'string' ? bin : bin[name]);
}

/** Runs a script with Node; settles with its exit status and what it said. */
function run(script, args, { input = '', timeout } = {}) {
  const child = spawn(process.execPath, [script, ...args], { cwd: root, timeout });
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'])
    child[name].setEncoding('utf8').on('data', (text) => {
      said[name] += text;
    });
  // It may end before it has read that.
  child.stdin.on('error', () => {}).end(input);
  return new Promise((done, failed) => {
    child.once('error', failed);
    child.once('close', (status) => done({ status, ...said }));
  });
}

/** As `run`, of a script without which there is no package. */
async function mustRun(script, args) {
  const { status, stdout, stderr } = await run(script, args);
  if (status === 0) return stdout;
  throw new Error(`${relative(root, script)} ${args.join(' ')} failed\n${stdout}${stderr}`.trim());
}

const UNBUNDLED = ['toml-eslint-parser', '@anthropic-ai/sdk', 'ai', '@nats-io/*', '@opentelemetry/api'];
const COMMON = {
  absWorkingDir: root,
  outdir: 'dist',
  bundle: true,
  platform: 'node',
  target: 'node20',
  external: UNBUNDLED,
  // What is parsed at each start; names stay, for stack traces.
  minifyWhitespace: true,
  minifySyntax: true,
  // Of an error that nobody catches Node shows the line that threw it.
  lineLimit: 60,
  logLevel: 'warning',
};

const AS_COMMONJS = {
  format: 'cjs',
  // import() of a package would start the loader of ES modules.
  supported: { 'dynamic-import': false },
  define: { 'import.meta.url': '__moduleUrl' },
  banner: { js: "const __moduleUrl = require('node:url').pathToFileURL(__filename).href;" },
};

/** The entry points of the library, which package.json exports. */
const LIBRARY = {
  index: 'src/index.ts',
  openai: 'src/agents/openai.ts',
  ai: 'src/agents/ai.ts',
  fleet: 'src/fleet/create-fleet.ts',
  confine: 'src/containment.ts',
};

/**
 * The library, for require() and for import: small files that take it from the parts of dist/. So there is one of everything,
 * however it is loaded.
 */
async function buildLibrary(build) {
  const { loadCompiled } = require(join(root, 'dist/load.cjs'));
  for (const [name, source] of Object.entries(LIBRARY)) {
    const part = ['core', 'commands'].find((each) => source in loadCompiled(each));
    const exported = Object.keys(loadCompiled(part)[source]()).sort();
    const contents = [
      `import { loadCompiled } from './load-compiled.ts';`,
      `export const { ${exported.join(', ')} } = loadCompiled('${part}')['${source}']();`,
    ].join('\n');
    for (const [format, file] of [
      ['cjs', `dist/${name}.cjs`],
      ['esm', `dist/${name}.js`],
    ]) {
      await build({
        ...{ ...COMMON, outdir: undefined, outfile: file },
        ...(format === 'cjs' ? AS_COMMONJS : { format }),
        stdin: { contents, loader: 'js', resolveDir: join(root, 'src/run') },
      });
    }
  }
}

/** What the hook is used with once, as Claude Code sends it. */
const SAMPLE_CALL = JSON.stringify({
  session_id: 'build',
  hook_event_name: 'PreToolUse',
  tool_name: 'Bash',
  tool_input: { command: "grep -rn 'TODO' src | head -20", timeout: 1000, run_in_background: false },
  tool_use_id: 'build',
});

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
 * Modules of Node that take milliseconds to load, which most starts do not need: what imports one loads it on first use of
 * one of its names.
 */
const LATE_BUILTINS = {
  name: 'late-builtins',
  setup(setUp) {
    const filter = /^node:(?:child_process|crypto|net|readline|stream|tty)(?:$|\/)/;
    setUp.onResolve({ filter }, ({ path, kind }) =>
      kind === 'import-statement' ? { path, namespace: 'late' } : undefined,
    );
    setUp.onLoad({ filter: /.*/, namespace: 'late' }, ({ path }) => {
      const names = Object.keys(require(path)).map(
        (name) => `get ${name}() { return require('${path}').${name}; }`,
      );
      return { contents: `module.exports = { ${names.join(', ')} };` };
    });
  },
};

/** SQLite lies beside the addon, where the library of that name would look for it among its own files. */
const SQLITE_BESIDE_ADDON = {
  name: 'sqlite-beside-addon',
  setup(setUp) {
    setUp.onResolve({ filter: /^node-gyp-build$/ }, ({ path }) => ({ path, namespace: 'beside-addon' }));
    setUp.onLoad({ filter: /.*/, namespace: 'beside-addon' }, () => ({
      contents: [
        `import { createRequire } from 'node:module';`,
        `import { programBesideAddon } from './src/confine/native/load.ts';`,
        `export default () => createRequire(import.meta.url)(programBesideAddon('${SQLITE.file}'));`,
      ].join('\n'),
      loader: 'js',
      resolveDir: root,
    }));
  },
};

/** The programs: the file in dist/, and the module that starts it and loads the others. */
const PROGRAMS = [
  { file: 'cli', start: 'main', when: whenHandedOver(), words: '' },
  { file: 'sandbox-sh', start: 'sandbox-sh', when: ':', words: ' sandbox-sh' },
];
/**
 * What is done by a server of ours: what is asked of services, what the user wants, and any command while services run, which
 * it may have to reach. The last is known by a directory that is there as long as they are (src/cli/services/records.ts). No
 * variable of the shell is used, as it may be one that the command is to get.
 */
function whenHandedOver() {
  const places = [
    '/*) [ -e "$XDG_STATE_HOME/sandbox-run/services" ];;',
    '*) [ -e "$HOME/.local/state/sandbox-run/services" ];;',
  ];
  return `case "$1" in --warm|up|ps|logs|stop|restart);; *) case "$XDG_STATE_HOME" in ${places.join(' ')} esac;; esac`;
}

/**
 * The first lines of a program: for a shell a script, for Node a text and a remark. A start by the shell takes no longer than
 * one by env(1), and where a warm server is to be asked Node is not started at all: native/client is. `when`: words of the
 * shell that say whether; `words`: what it is, to the client.
 */
function firstLines(when, words) {
  const places = ['../build/Release', '../node_modules/@sandbox-run/*', '../../@sandbox-run/*'];
  const look = [
    `at=$(readlink -f "$0") && at=\${at%/*} && for c in ${places.map((place) => `"$at"/${place}/sandbox-run-client`).join(' ')}`,
    `do [ -x "$c" ] && exec "$c" node "$at/cli.cjs"${words} "$@"`,
    'done',
  ].join('; ');
  return `#!/bin/sh\n':' //; ${when} && { ${look}; }; exec node "$0" "$@"`;
}

/**
 * The programs: CommonJS, which Node loads about 15 ms sooner than the same code as ES modules. Files that do nothing but load
 * the parts.
 */
async function buildPrograms(build, parts) {
  for (const { start, file } of PROGRAMS) {
    await build({
      ...COMMON,
      ...AS_COMMONJS,
      entryPoints: { [file]: `src/cli/${start}.ts` },
      outExtension: { '.js': '.cjs' },
      plugins: [parts],
    });
  }
}

/** In processes of their own. Their output and their exit status do not matter: without the code the start is slower. */
async function compileParts(parts) {
  const script = join(root, 'scripts/compiled-code.mjs');
  await Promise.all(parts.map((name) => run(script, [name], { input: SAMPLE_CALL, timeout: 30_000 })));
}

/** The completions, out of the commands themselves. */
async function buildCompletions(build) {
  const program = join(root, 'dist/describe.mjs');
  await build({
    ...COMMON,
    entryPoints: { describe: 'src/cli/describe/generate.ts' },
    format: 'esm',
    outExtension: { '.js': '.mjs' },
    packages: 'external',
  });
  await mustRun(program, [join(root, 'src/cli/describe'), join(root, 'dist')]);
  rmSync(program);
}

/** `native` settles once the addon is built, or cannot be: some of the code that V8 compiles in advance uses it. */
async function buildTypeScript(native) {
  const esbuild = await import('esbuild');
  const { textImports } = await import('./text-imports.mjs');
  const { pastIndexesPlugin } = await import('./past-indexes.mjs');
  const inputs = new Set();
  const build = async ({ plugins = [], ...options }) => {
    const { metafile } = await esbuild.build({
      ...options,
      plugins: [textImports, SQLITE_BESIDE_ADDON, ...plugins, pastIndexesPlugin],
      metafile: true,
    });
    for (const input of Object.keys(metafile.inputs)) inputs.add(input);
    return { metafile };
  };
  rmSync(join(root, 'dist'), { recursive: true, force: true });
  const types = mustRun(binary('typescript', 'tsc'), ['-p', 'tsconfig.types.json']).then(
    copyTypesForCommonJs,
  );
  // Looked at below; until then its failure is nobody's.
  types.catch(() => {});
  // Read when they are needed (src/judge/programs/grammars.ts), beside the part that reads them.
  cpSync(join(root, GRAMMARS), join(root, 'dist/grammars'), { recursive: true });
  const starts = PROGRAMS.map(({ start }) => `src/cli/${start}.ts`);
  const common = {
    ...COMMON,
    ...AS_COMMONJS,
    external: UNBUNDLED,
    plugins: [WITHOUT_CHILD_PROCESS, LATE_BUILTINS],
  };
  const { buildParts, COMPILED } = await import('./build-parts.mjs');
  const parts = await buildParts({ starts, library: Object.values(LIBRARY) }, common, build);
  await buildLibrary(build);
  await buildPrograms(build, parts);
  await buildCompletions(build);
  for (const { file, when, words } of PROGRAMS) {
    const path = join(root, `dist/${file}.cjs`);
    writeFileSync(
      path,
      readFileSync(path, 'utf8').replace(/^#!.*/, () => firstLines(when, words)),
    );
    chmodSync(path, 0o755);
  }
  await types;
  await native;
  bringSqlite();
  await Promise.all([compileParts(COMPILED), writeSchemas()]);
  linkOwnPrograms();
  writeFileSync(join(root, NOTICES), thirdPartyNotices(root, inputs));
  console.log('sandbox-run: dist/ built');
}

/** The same declarations again, where the nearest package.json says that they are about CommonJS. */
function copyTypesForCommonJs() {
  const [from, to] = ['dist/types', 'dist/types-cjs'].map((name) => join(root, name));
  const copy = (file) => {
    if (existsSync(join(to, file))) return;
    // A package of ECMAScript modules only has to be asked for as such from there.
    const text = readFileSync(join(from, file), 'utf8').replace(
      /^(import type .* from 'unbash');$/gm,
      "$1 with { 'resolution-mode': 'import' };",
    );
    mkdirSync(dirname(join(to, file)), { recursive: true });
    writeFileSync(join(to, file), text);
    for (const [, imported] of text.matchAll(/(?:from |import\()["'](\.[^"']+)\.ts["']/g))
      copy(join(dirname(file), `${imported}.d.ts`));
  };
  for (const source of Object.values(LIBRARY)) copy(relative('src', source).replace(/\.ts$/, '.d.ts'));
  writeFileSync(join(to, 'package.json'), '{ "type": "commonjs" }\n');
}

/** What the program itself says that it reads and writes, as files for other programs. */
async function writeSchemas() {
  const said = async (...args) => JSON.parse(await mustRun(join(root, 'dist/cli.cjs'), args));
  const [all, serve] = await Promise.all([said('schema', '--all'), said('serve', '--schema')]);
  const schemas = { ...all, serve };
  mkdirSync(join(root, 'dist/schemas'));
  for (const [name, schema] of Object.entries(schemas))
    writeFileSync(join(root, `dist/schemas/${name}.json`), `${JSON.stringify(schema)}\n`);
}

// `npx sandbox-run` in the checkout: npm links the programs of dependencies only, and would install the checkout into
// a cache of its own on each first call.
function linkOwnPrograms() {
  const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const [name, file] of Object.entries(bin)) {
    const link = join(root, 'node_modules/.bin', name);
    if (!existsSync(dirname(link))) return;
    rmSync(link, { force: true });
    symlinkSync(join('../..', file), link);
  }
}

const isPreparedByNpx = process.env.npm_lifecycle_event === 'prepare' && process.env.npm_command === 'exec';
// What a build writes last.
if (isPreparedByNpx && existsSync(join(root, NOTICES))) process.exit(0);
const native = only === 'ts' ? undefined : buildNative();
if (only !== 'native') {
  try {
    await buildTypeScript(native);
  } catch (error) {
    // The compiler is not left to itself.
    await native;
    throw error;
  }
} else {
  // Asked for by name, a failure is a failure.
  if (!(await native)) process.exit(1);
  bringSqlite();
}
