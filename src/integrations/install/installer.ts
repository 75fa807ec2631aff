import type { HookOptions } from '../hooks/hook-options.ts';
import type { SettingsChange } from './hook-settings.ts';

/** Whose sessions the hooks are for. */
type InstallScope = 'user' | 'project';

/** How the hooks get into one agent's settings. */
export interface HookInstaller {
  readonly agent: string;
  readonly fileOf: (
    scope: InstallScope,
    places: { readonly home: string; readonly project: string },
  ) => string;
  /** `undefined`: they are to be taken out. */
  readonly changeOf: (options: HookOptions | undefined) => SettingsChange;
}
