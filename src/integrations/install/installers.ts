import type { HookInstaller } from './installer.ts';

/** THE registry of agents that hooks can be installed for. */
export const HOOK_INSTALLERS: Readonly<Record<string, () => Promise<HookInstaller>>> = {
  'claude-code': async () => (await import('./claude-code-settings.ts')).claudeCodeInstaller,
};
