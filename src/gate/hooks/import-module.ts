import { constants, Script } from 'node:vm';

type Import = (url: string) => Promise<Readonly<Record<string, unknown>>>;

/**
 * The `import()` of the language. Written out, it would become a `require()` in the program, which is built as CommonJS
 * and runs from compiled code that has no loader; and bundlers look for the module.
 */
export const importModule: Import = (url) =>
  new Script('(url) => import(url)', {
    importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  }).runInThisContext()(url);
