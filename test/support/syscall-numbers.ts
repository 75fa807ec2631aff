import { type SeccompArchitecture, SYSCALL_NUMBERS, syscallNumber } from '../../src/confine/kernel/index.ts';

/** Every system call of an architecture, with its number. */
export const syscallsOf = (architecture: SeccompArchitecture): readonly (readonly [string, number])[] =>
  Object.keys(SYSCALL_NUMBERS).flatMap((name) => {
    const number = syscallNumber(architecture, name);
    return number === undefined ? [] : [[name, number] as const];
  });
