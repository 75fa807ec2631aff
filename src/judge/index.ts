// What others may import of this house; inside of it, files import each other. Its README says what it is for.

// Checks

export { CHECKS, CHECKS_IN_SESSION, TEXT_CHECKS } from './checks/all-checks.ts';
export { isSameUnwritable } from './checks/autonomy.ts';
export {
  autonomyInForce,
  type CheckContext,
  commandsOf,
  type InnerTexts,
  type RulesOfCommands,
} from './checks/check.ts';
export { type CommandEffects, effectsOf, secretAmong } from './checks/effects.ts';
export { evaluate, isSettledByAutonomy, isUndoneInstead, refusalSentence } from './checks/evaluate.ts';
export { TOOL_NAME } from './checks/guards.ts';
export { isMissing } from './checks/leaves.ts';
export { isForeignTo } from './checks/locations.ts';
export { type Lost, lostAmong, type Taken } from './checks/losses.ts';
export { describeRule, isPreviewed, ruleMatchesLine } from './checks/own-rules.ts';
export { pathsCheck } from './checks/paths.ts';
export { isPlainLine } from './checks/plain-line.ts';
export { leavesDoubts } from './checks/shell-session.ts';

// What is known of programs

export {
  type Application,
  type Behaviour,
  type Grammar,
  type Program,
  type ProgramRow,
  programs,
} from './programs/behaviour.ts';
export { grammarOf } from './programs/grammars.ts';
export { optionTable } from './programs/options.ts';
export { pathUses } from './programs/path-uses.ts';
export {
  describeAs,
  findForApplication,
  findProgram,
  PROGRAM_ROWS,
  programName,
  runsSomething,
  useForApplication,
} from './programs/program-table.ts';
export { findingsOf, reachOfLine, riskOfLine } from './programs/risk.ts';
export { isListedVariable, variableRule, variableRuleOfList } from './programs/variables.ts';

// git

export { createGitGuard } from './programs/git/guard.ts';

// Reading the text of a command

export { parseArgv, parseShell } from './shell/parse.ts';
export { stepsOf } from './shell/steps.ts';
export { commandOfTemplate } from './shell/template.ts';

// adapter

export { isIncomplete } from './shell/adapter/read-shell.ts';
