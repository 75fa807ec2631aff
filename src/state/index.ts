// The exports of this room for code outside of src: tests and scripts import nothing below it.
export type { Clock } from './clock.ts';
export { openState } from './open-state.ts';
