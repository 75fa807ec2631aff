/** For vitest.config.ts: the types of text-imports.mjs. */
import type { Plugin } from 'vite';
export const textImportsOfTests: Plugin;
