import type { HookAdapter } from './hooks/hook-adapter.ts';
import type { HookInstaller } from './install/hook-settings.ts';

/** THE registry of agents whose hooks are answered. */
export const HOOK_ADAPTERS: Readonly<Record<string, () => Promise<HookAdapter>>> = {
  'claude-code': async () => (await import('./hooks/claude-code.ts')).claudeCodeHooks,
};

/** THE registry of agents that hooks can be installed for. */
export const HOOK_INSTALLERS: Readonly<Record<string, () => Promise<HookInstaller>>> = {
  'claude-code': async () => (await import('./install/claude-code-settings.ts')).claudeCodeInstaller,
};
