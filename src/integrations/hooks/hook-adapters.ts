import type { HookAdapter } from './hook-adapter.ts';

/** THE registry of agents whose hooks are answered. */
export const HOOK_ADAPTERS: Readonly<Record<string, () => Promise<HookAdapter>>> = {
  'claude-code': async () => (await import('./claude-code.ts')).claudeCodeHooks,
};
