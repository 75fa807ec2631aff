import type { HookAdapter } from '../hooks/hook-adapter.ts';
import type { Installer } from '../install/installer.ts';

/** All that is known of an agent: how its hooks are answered, and how they get into its settings. */
export interface Agent {
  readonly hooks: HookAdapter;
  readonly installer: Installer;
}
