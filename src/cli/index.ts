// What others may import of this house; inside of it, files import each other. Its README says what it is for.

export { dispatch, SUBCOMMANDS } from './dispatch.ts';

// attack

export type { Attack, Place } from './attack/attack.ts';
export { ATTACKS, attackHost, type Prepare } from './attack/attack-host.ts';

// The commands, described

export {
  type CollectedProgram,
  type CommandDescription,
  collectPrograms,
  describeAll,
  everyCommand,
  WORDS_OF_OPTIONS,
} from './describe/describe-programs.ts';

// doctor

export { doctorAttack } from './doctor/attack.ts';
export { examineHost } from './doctor/examine.ts';

// Help

export { EXAMPLE_LINES, exitStatuses, FILES } from './help/help.ts';

// policy

export { explainProgram } from './policy/explain-program.ts';
export { policyTemplate } from './policy/init.ts';

// Calls

export { onBehalfOf } from './shared/caller.ts';

// Arguments

export { policyOptions } from './shared/options.ts';
export { parseArguments, programOf } from './shared/parse.ts';
export { describeReport } from './shared/show-plan.ts';
