// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { TEXT_CHECKS } from './all-checks.ts';
export type { CheckContext, RulesOfCommands } from './check.ts';
export { isForeignTo } from './locations.ts';
