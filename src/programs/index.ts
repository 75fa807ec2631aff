// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { programName } from './program-table.ts';
export { reachOfLine, riskOfLine } from './risk.ts';
