// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { ATTACKS, attackHost, type Prepare } from './attack-host.ts';
export type { Place } from './attack.ts';
