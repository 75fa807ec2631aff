// Everything that judges: pure, and large. In dist/ it is a file of its own with its compiled code beside it, because
// compiling it would be the greater part of the command line's start (scripts/build-compiled.mjs).

export { CHECKS, CHECKS_IN_SESSION } from '../checks/all-checks.ts';
export { isSameUnwritable } from '../checks/autonomy.ts';
export { commandsOf } from '../checks/check.ts';
export { effectsOf, secretAmong } from '../checks/effects.ts';
export { evaluate } from '../checks/evaluate.ts';
export { isMissing } from '../checks/leaves.ts';
export { isForeignTo } from '../checks/locations.ts';
export { isPlainLine } from '../checks/plain-line.ts';
export { leavesDoubts } from '../checks/shell-session.ts';
export { useForApplication } from '../programs/program-table.ts';
export { reachOfLine, riskOfLine } from '../programs/risk.ts';
export { variableRuleOfList } from '../programs/variables.ts';
export { isIncomplete } from '../shell/adapter/read-shell.ts';
export { parseArgv, parseShell } from '../shell/parse.ts';
export { stepsOf } from '../shell/steps.ts';
export { commandOfTemplate } from '../shell/template.ts';
