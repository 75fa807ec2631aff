import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import { Script } from 'node:vm';

/**
 * Loads `dist/NAME.cjs` with the compiled code that the build left for this version of Node. Without it, or if V8
 * refuses it (other flags, another processor), the file is compiled as any other.
 */
export function loadCompiled(name: string): Readonly<Record<string, unknown>> {
  // This code is in dist/ or in one of its chunks.
  const directory = new URL(import.meta.url.includes('/dist/chunks/') ? '../' : './', import.meta.url);
  const filename = fileURLToPath(new URL(`${name}.cjs`, directory));
  const require = createRequire(filename);
  const cachedData = compiledCode(fileURLToPath(new URL(`${name}.${process.version}.code`, directory)));
  if (cachedData === undefined) return require(filename);
  // Written as ASCII, which is read without decoding.
  const source = readFileSync(filename, 'latin1');
  const script = new Script(wrapped(source), { filename, cachedData });
  const module = { exports: {} };
  script.runInThisContext()(module.exports, require, module, filename);
  return module.exports;
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
