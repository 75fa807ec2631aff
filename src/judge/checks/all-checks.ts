import { allowList } from './allow-list.ts';
import { applicationCheck } from './application.ts';
import { argumentsCheck } from './arguments.ts';
import { autonomy } from './autonomy.ts';
import { budget } from './budget.ts';
import type { Check } from './check.ts';
import { dangerousCheck } from './dangerous.ts';
import { environmentCheck } from './environment.ts';
import { gitGuard, hooks } from './guards.ts';
import { leavesCheck } from './leaves.ts';
import { lossesCheck } from './losses.ts';
import { ownRules } from './own-rules.ts';
import { pathsCheck } from './paths.ts';
import { reach } from './reach.ts';
import { riskCheck } from './risk.ts';
import { shellSession } from './shell-session.ts';
import { syntaxCheck } from './syntax.ts';

/** The checks that judge the text of a command, in the order of the registry. */
export const TEXT_CHECKS: readonly Check[] = [
  syntaxCheck,
  argumentsCheck,
  dangerousCheck,
  pathsCheck,
  environmentCheck,
  leavesCheck,
  lossesCheck,
  riskCheck,
];

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

/** All checks for a line of a shell session, which earlier lines may have changed. */
export const CHECKS_IN_SESSION: readonly Check[] = [...CHECKS, shellSession];
