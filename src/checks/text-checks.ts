import { argumentsCheck } from './arguments.ts';
import type { Check } from './check.ts';
import { dangerousCheck } from './dangerous.ts';
import { environmentCheck } from './environment.ts';
import { leavesCheck } from './leaves.ts';
import { lossesCheck } from './losses.ts';
import { pathsCheck } from './paths.ts';
import { riskCheck } from './risk.ts';
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
