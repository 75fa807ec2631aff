// Everything that judges: pure, and large. Compiling it would be the greater part of the command line's start, so that the
// build compiles what it needs in advance (scripts/build-parts.mjs).

export {
  CHECKS,
  CHECKS_IN_SESSION,
  commandOfTemplate,
  commandsOf,
  effectsOf,
  evaluate,
  isForeignTo,
  isIncomplete,
  isMissing,
  isPlainLine,
  isSameUnwritable,
  leavesDoubts,
  lostAmong,
  parseArgv,
  parseShell,
  reachOfLine,
  riskOfLine,
  secretAmong,
  stepsOf,
  useForApplication,
  variableRuleOfList,
} from '../../judge/index.ts';
