import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';
import { SandboxError } from '../errors/sandbox-error.ts';

/**
 * Loads `dist/NAME.cjs` with the compiled code that the build left for this version of Node. Without it, or if V8
 * refuses it (other flags, another processor), the file is compiled as any other.
 * @throws {SandboxError} `package.incomplete`.
 */
export function loadCompiled(name: string): Readonly<Record<string, unknown>> {
  // A bundle of CommonJS has no such thing.
  const here: string | undefined = import.meta.url;
  const directory = here === undefined ? undefined : dirname(fileURLToPath(here));
  const filename = join(directory ?? '', `${name}.cjs`);
  if (directory === undefined || !existsSync(filename)) throw isBundled(directory);
  // Not imported: bundlers (webpack) put something else in its place.
  const require = process.getBuiltinModule('node:module').createRequire(filename);
  const cachedData = compiledCode(join(directory, `${name}.${process.version}.code`));
  if (cachedData === undefined) return require(filename);
  // Written as ASCII, which is read without decoding.
  const source = readFileSync(filename, 'latin1');
  const script = new Script(wrapped(source), { filename, cachedData });
  const module = { exports: {} };
  script.runInThisContext()(module.exports, require, module, filename);
  return module.exports;
}

function isBundled(directory: string | undefined): SandboxError {
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
