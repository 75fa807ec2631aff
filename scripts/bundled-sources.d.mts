import type { Plugin } from 'vite';

export function bundledSources(): Promise<Plugin>;
