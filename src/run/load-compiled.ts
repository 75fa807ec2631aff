import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import { SandboxError } from '../base/errors/sandbox-error.ts';

/** A part of dist/: by the source path of each module, a function that evaluates it and returns its exports. */
type Part = Readonly<Record<string, () => Readonly<Record<string, unknown>>>>;

/**
 * Loads `part-NAME.cjs` of dist/ once per process, with the code cache that the build wrote for this version of Node. Without
 * one, or if V8 rejects it (other flags, another processor), Node compiles the file.
 * @throws {SandboxError} `package.incomplete`: the file is missing.
 */
export function loadCompiled(name: string): Part {
  // Undefined in a CommonJS bundle.
  const here: string | undefined = import.meta.url;
  if (here === undefined) throw isBundled();
  const directory = dirname(fileURLToPath(here));
  // Prefixed, so that it matches no file of a program whose bundle contains this module.
  const filename = join(directory, `part-${name}.cjs`);
  // Not an import: bundlers such as webpack replace node:module.
  const Module = process.getBuiltinModule('node:module');
  const require = Module.createRequire(filename);
  const loaded = require.cache[filename];
  if (loaded !== undefined) return loaded.exports;
  if (!existsSync(filename)) throw isBundled(directory);
  const cachedData = compiledCode(join(directory, `part-${name}.${process.version}.code`));
  if (cachedData === undefined) return require(filename);
  // Written as ASCII, which is read without decoding.
  const source = readFileSync(filename, 'latin1');
  const script = new Script(wrapped(source), { filename, cachedData });
  const module = new Module.Module(filename);
  // Cache it as Node does, for later loads.
  require.cache[filename] = module;
  script.runInThisContext()(module.exports, require, module, filename);
  module.loaded = true;
  return module.exports;
}

function isBundled(directory?: string): SandboxError {
  const where = directory === undefined ? '' : ` (looked for in ${directory})`;
  return new SandboxError(
    'package.incomplete',
    `the files of sandbox-run are missing${where}: it cannot be part of a bundle, so leave it out of yours and install it beside that (esbuild: --external:sandbox-run; webpack, rollup, vite: externals or external with sandbox-run)`,
  );
}

/** A CommonJS module as a function, as Node wraps it. */
export function wrapped(source: string): string {
  return `(function (exports, require, module, __filename) {${source}\n})`;
}

function compiledCode(path: string): Buffer | undefined {
  try {
    return readFileSync(path);
  } catch {
    return undefined;
  }
}
