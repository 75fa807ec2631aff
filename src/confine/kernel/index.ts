// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { type SeccompArchitecture, SYSCALL_NUMBERS, syscallNumber } from './seccomp/architecture.ts';
