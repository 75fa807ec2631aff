import { Module } from 'node:module';

type Import = (url: string) => Promise<Readonly<Record<string, unknown>>>;

/** What every loader of other languages uses, and no type declaration knows. */
type CompilingModule = Module & { _compile(code: string, filename: string): void };

/**
 * The `import()` of the language. Written out, it would become a `require()` in the program, which is built as CommonJS
 * and runs from compiled code that has no loader; the loader that node:vm offers says on each use that it is
 * experimental.
 */
export const importModule: Import = (url) => {
  const module = new Module('sandbox-run:import-module') as CompilingModule;
  module._compile('module.exports = (url) => import(url);', '/sandbox-run/import-module.cjs');
  return (module.exports as Import)(url);
};
