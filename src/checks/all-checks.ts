import { allowList } from './allow-list.ts';
import { applicationCheck } from './application.ts';
import { autonomy } from './autonomy.ts';
import { budget } from './budget.ts';
import type { Check } from './check.ts';
import { gitGuard } from './git-guard.ts';
import { hooks } from './hooks.ts';
import { ownRules } from './own-rules.ts';
import { reach } from './reach.ts';
import { shellSession } from './shell-session.ts';
import { TEXT_CHECKS } from './text-checks.ts';

/**
 * THE registry of checks, in the order of the trace. All run and the strictest wins, so the order decides only which of
 * two equally strict reasons is said first, and that plug-ins are asked last.
 */
export const CHECKS: readonly Check[] = [
  budget,
  autonomy,
  allowList,
  applicationCheck,
  ...TEXT_CHECKS,
  ownRules,
  reach,
  gitGuard,
  hooks,
];

/** The same for a line that a shell gets which has run others before. */
export const CHECKS_IN_SESSION: readonly Check[] = [...CHECKS, shellSession];
