// Modules that become files of their own in dist/, each with compiled code for the Node that builds, so that the start of
// the command line need not compile them.
import { join } from 'node:path';
import { loadToCompile } from './compiled-code.mjs';
import { printInLines, READABLE } from './print-in-lines.mjs';
import { decideSamples } from './warm-judgement.mjs';
import { useStatefulParts } from './warm-stateful-parts.mjs';
import { readSamples } from './warm-validation.mjs';

/** By name; what uses them once. A module may use those before it. */
const MODULES = [
  { name: 'judgement', folder: 'decide', use: decideSamples },
  // With its libraries: finding and loading their files takes longer than what they do.
  { name: 'validation', use: readSamples, bundled: ['zod', 'smol-toml'] },
  { name: 'stateful-parts', use: useStatefulParts },
  // Loading it is all that every use has in common.
  { name: 'fleet-parts', use: () => {} },
  { name: 'listed-network', use: readSampleRules },
  { name: 'hidden-files', use: lookForSamples },
];

function lookForSamples({ HiddenFinder }) {
  const workspace = join(import.meta.dirname, '../src/util');
  const roots = { workspace, own: [workspace], all: [workspace], home: '/nowhere' };
  new HiddenFinder(['.env', '**/*.pem', 'secrets/', '~/.ssh', 'url-[a-z]*.{js,ts}'], roots).look();
}

function readSampleRules({ readRules }) {
  readRules(
    { allow: ['@github', '*.example.org:443', '10.0.0.0/8', '[2001:db8::/32]:22'], deny: [] },
    () => [],
  );
}

/**
 * Builds them. Returns plugins that make other bundles take them from there, and `writeCode`, which uses each module once
 * and writes its compiled code: after the addon is built, which some of them use.
 */
export async function buildCompiledModules(common, build) {
  const plugins = [];
  const toCompile = [];
  for (const { name, folder = 'run', use, bundled = [] } of MODULES) {
    const outfile = join(common.absWorkingDir, `dist/${name}.cjs`);
    await build({
      ...common,
      outdir: undefined,
      outfile,
      entryPoints: [`src/${folder}/${name}.ts`],
      external: common.external.filter((library) => !bundled.includes(library)),
      ...READABLE,
      format: 'cjs',
      supported: { 'dynamic-import': false },
      // One byte per character: read without decoding.
      charset: 'ascii',
      define: { 'import.meta.url': '__moduleUrl' },
      banner: { js: "const __moduleUrl = require('node:url').pathToFileURL(__filename).href;" },
      plugins: [...plugins],
    });
    await printInLines(outfile);
    const { exports, write } = loadToCompile(outfile);
    plugins.push(taken(folder, name, Object.keys(exports)));
    toCompile.push(() => write(use));
  }
  const writeCode = async () => {
    for (const write of toCompile) await write();
  };
  return { plugins, writeCode };
}

function taken(folder, name, exports) {
  return {
    name,
    setup({ onLoad }) {
      onLoad({ filter: new RegExp(`/src/${folder}/${name}\\.ts$`) }, ({ path }) => ({
        contents: [
          `import { loadCompiled } from '../run/load-compiled.ts';`,
          `export const { ${exports.join(', ')} } = loadCompiled('${name}');`,
        ].join('\n'),
        loader: 'js',
        resolveDir: join(path, '..'),
      }));
    },
  };
}
