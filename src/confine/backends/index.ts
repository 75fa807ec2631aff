// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { KERNEL_BACKENDS } from './kernel-backends.ts';
export { withoutNamespaces } from './refused-facility.ts';
