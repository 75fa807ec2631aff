// Code that V8 has compiled, kept beside a file of dist/ for the Node that builds: what has been called before is in it,
// so that a start need not compile it. src/run/load-compiled.ts uses it.
//   node scripts/compiled-code.mjs dispatch|hook|sh    writes that of dist/NAME.cjs, after using it once
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';

/** Loads a file, lets `warmUp` use what it exports, and writes the compiled code; returns the exports. */
export async function writeCompiledCode(file, warmUp) {
  const { exports, write } = loadToCompile(file);
  await write(warmUp);
  return exports;
}

/** Loads a file now; the compiled code is written later, by `write(warmUp)`. */
export function loadToCompile(file) {
  const require = createRequire(file);
  const source = readFileSync(file, 'latin1');
  // The same text as in load-compiled.ts: V8 compares.
  const script = new Script(`(function (exports, require, module, __filename) {${source}\n})`, {
    filename: file,
  });
  const module = { exports: {} };
  script.runInThisContext()(module.exports, require, module, file);
  const write = async (warmUp) => {
    await warmUp(module.exports);
    writeFileSync(file.replace(/\.cjs$/, `.${process.version}.code`), script.createCachedData());
  };
  return { exports: module.exports, write };
}

/** What uses each of the files once. Where nothing can be confined it says so, and what was needed for that is compiled. */
const USES = {
  dispatch: (workspace, { dispatch }) => dispatch(['--workspace', workspace, '--', 'true']),
  // Its input is that of this process. Whatever it remembers is not that of whoever builds.
  hook: (workspace, { hook }) => {
    process.env.XDG_STATE_HOME = join(workspace, 'state');
    process.env.CLAUDE_PROJECT_DIR = workspace;
    return hook(['claude-code', '--mode', 'rewrite']);
  },
  sh: (workspace, { shell }) => {
    process.chdir(workspace);
    process.env.SANDBOX_SH_WORKSPACE = workspace;
    return shell(['-c', 'true']);
  },
};

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [, , name = 'dispatch'] = process.argv;
  const workspace = mkdtempSync(join(realpathSync(tmpdir()), 'sandbox-run-build-'));
  const program = join(dirname(import.meta.dirname), `dist/${name}.cjs`);
  await writeCompiledCode(program, (exports) => USES[name](workspace, exports));
  rmSync(workspace, { recursive: true, force: true });
  process.exitCode = 0;
}
