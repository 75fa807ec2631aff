#!/usr/bin/env node
import { enableCompileCache } from './compile-cache.ts';

enableCompileCache();
const { dispatch } = await import('./dispatch.ts');
process.exitCode = await dispatch(process.argv.slice(2));
