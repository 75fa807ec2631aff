import type { Attack } from './attack.ts';
import { FILE_ATTACKS } from './file-attacks.ts';
import { KERNEL_ATTACKS } from './kernel-attacks.ts';
import { NETWORK_ATTACKS } from './network-attacks.ts';
import { OWN_ATTACKS } from './own-attacks.ts';
import { PROCESS_ATTACKS } from './process-attacks.ts';
import { WORKSPACE_ATTACKS } from './workspace-attacks.ts';

/** THE registry of attacks: to add one, add a row to one of these, and a move to native/attack/ if it needs a new one. */
export const ATTACKS: readonly Attack[] = [
  ...FILE_ATTACKS,
  ...WORKSPACE_ATTACKS,
  ...NETWORK_ATTACKS,
  ...PROCESS_ATTACKS,
  ...KERNEL_ATTACKS,
  ...OWN_ATTACKS,
];
