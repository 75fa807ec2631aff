// Everything that judges: pure, and large. In dist/ it is a file of its own with its compiled code beside it, because
// compiling it would be the greater part of the command line's start (scripts/build-compiled.mjs).

export { CHECKS, CHECKS_IN_SESSION } from '../policy/checks/all-checks.ts';
export { isForeignTo } from '../policy/checks/locations.ts';
export { isMissing } from '../policy/checks/missing.ts';
export { leavesDoubts } from '../policy/checks/shell-session.ts';
export { reachOfLine } from '../policy/commands/reach.ts';
export { riskOfLine } from '../policy/commands/risk.ts';
export { effectsOf, secretAmong } from '../policy/effects.ts';
export { evaluate } from '../policy/evaluate.ts';
export { isPlainLine } from '../policy/plain-line.ts';
export { isIncomplete } from '../shell/adapter/incomplete.ts';
export { parseArgv, parseShell } from '../shell/parse.ts';
export { stepsOf } from '../shell/steps.ts';
