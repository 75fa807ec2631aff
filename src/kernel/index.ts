// The exports of this room for code outside of src: tests and scripts import nothing below it.
export { type SeccompArchitecture, syscallNumber } from './seccomp/architecture.ts';
export { SYSCALL_NUMBERS } from './seccomp/syscalls.gen.ts';
