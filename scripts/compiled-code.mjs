// Writes the V8 code cache of a part of dist/, for the version of Node that builds. It holds the functions that were called
// here, so that a start need not compile them. src/run/load-compiled.ts uses it.
//   node scripts/compiled-code.mjs NAME    uses dist/part-NAME.cjs once and writes its code cache
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire, Module } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import { decideSamples } from './warm-judgement.mjs';
import { useStatefulParts } from './warm-stateful-parts.mjs';
import { readSamples } from './warm-validation.mjs';

/** Loads a file, lets `warmUp` use what it exports, and writes the compiled code. */
export async function writeCompiledCode(file, warmUp) {
  const require = createRequire(file);
  const source = readFileSync(file, 'latin1');
  // Must be the same text as `wrapped` in load-compiled.ts makes, or V8 rejects the cache.
  const script = new Script(`(function (exports, require, module, __filename) {${source}\n})`, {
    filename: file,
  });
  const module = new Module(file);
  require.cache[file] = module;
  script.runInThisContext()(module.exports, require, module, file);
  await warmUp(module.exports);
  writeFileSync(file.replace(/\.cjs$/, `.${process.version}.code`), script.createCachedData());
}

/** Uses each part once. On a host that cannot confine commands, this compiles the code up to the error. */
const USES = {
  // Runs each entry point once. The hook reads the standard input of this process.
  core: async (workspace, part) => {
    await decideSamples(part['src/gate/decide/judgement.ts']());
    process.chdir(workspace);
    process.env.CLAUDE_PROJECT_DIR = workspace;
    process.env.SANDBOX_SH_WORKSPACE = workspace;
    await part['src/cli/dispatch.ts']().dispatch(['--', 'true']);
    await part['src/cli/hook/hook.ts']().hook(['claude-code', '--mode', 'rewrite']);
    await part['src/cli/sh/sh.ts']().shell(['-c', 'true']);
  },
  lists: (_, part) => {
    readSampleRules(part['src/run/listed-network.ts']());
    lookForSamples(part['src/run/hidden-files.ts']());
  },
  validation: (_, part) => readSamples(part['src/run/validation.ts']()),
  stateful: (_, part) => useStatefulParts(part['src/run/stateful-parts.ts']()),
};

function lookForSamples({ HiddenFinder }) {
  const workspace = join(import.meta.dirname, '../src/base');
  const roots = { workspace, own: [workspace], all: [workspace], home: '/nowhere' };
  new HiddenFinder(['.env', '**/*.pem', 'secrets/', '~/.ssh', 'url-[a-z]*.{js,ts}'], roots).look();
}

function readSampleRules({ readRules }) {
  readRules(
    { allow: ['@github', '*.example.org:443', '10.0.0.0/8', '[2001:db8::/32]:22'], deny: [] },
    () => [],
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , name] = process.argv;
  const directories = ['workspace', 'state'].map((use) =>
    mkdtempSync(join(realpathSync(tmpdir()), `sandbox-run-build-${use}-`)),
  );
  const [workspace, state] = directories;
  // Do not use the state of the user who builds.
  process.env.XDG_STATE_HOME = state;
  const part = join(dirname(import.meta.dirname), `dist/part-${name}.cjs`);
  await writeCompiledCode(part, (exports) => USES[name](workspace, exports));
  for (const directory of directories) rmSync(directory, { recursive: true, force: true });
  process.exitCode = 0;
}
