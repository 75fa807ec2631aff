// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { BACKENDS } from './all-backends.ts';
export { probeFirejail } from './firejail/probe.ts';
export { withoutNamespaces } from './refused-facility.ts';
