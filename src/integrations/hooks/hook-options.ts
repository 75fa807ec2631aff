import type { SandboxOptions } from '../../model/options.ts';
/** What is done with a command that the policy allows. */
export const HOOK_MODES = ['decide', 'rewrite'] as const;
export type HookMode = (typeof HOOK_MODES)[number];

/** What the operator wrote behind `hook AGENT`. */
export interface HookOptions {
  /** `decide`: the agent runs it itself, confined by nothing; `rewrite`: it runs through this program. */
  readonly mode: HookMode;
  readonly sandbox: Pick<SandboxOptions, 'profile' | 'policy' | 'backend' | 'autonomy' | 'timeout'>;
  /** How this program was started: what a rewritten command begins with. */
  readonly program: readonly string[];
}
