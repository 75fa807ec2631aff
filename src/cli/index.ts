// The exports of this room for code outside of src: tests and scripts import nothing below it.
export {
  type CollectedProgram,
  type CommandDescription,
  collectPrograms,
  describeAll,
  everyCommand,
  WORDS_OF_OPTIONS,
} from './describe/describe-programs.ts';
export { dispatch, SUBCOMMANDS } from './dispatch.ts';
export { doctorAttack } from './doctor/attack.ts';
export { examineHost } from './doctor/examine.ts';
export { EXAMPLE_LINES, exitStatuses, FILES } from './help/help.ts';
export { parseArguments, programOf } from './shared/parse.ts';
