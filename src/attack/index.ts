// The exports of this room for code outside of src: tests and scripts import nothing below it.

export type { Attack, Place } from './attack.ts';
export { ATTACKS, attackHost, type Prepare } from './attack-host.ts';
