#!/usr/bin/env node
import { enableCompileCache } from './compile-cache.ts';

enableCompileCache();
// Loaded afterwards, so that it comes from the cache. No top-level await: the program is built as CommonJS.
void import('./dispatch.ts')
  .then(({ dispatch }) => dispatch(process.argv.slice(2)))
  .then((status) => {
    process.exitCode = status;
  });
