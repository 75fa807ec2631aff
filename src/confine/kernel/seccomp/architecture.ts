import table from './syscalls.gen.json' with { type: 'json' };

/** Number of each system call by name: on x64 and on arm64 (null: it has none), or one for both. */
export const SYSCALL_NUMBERS: Readonly<Record<string, number | readonly (number | null)[]>> = table.numbers;

/** A CPU architecture that filters can be made for, by Node's name for it (`process.arch`). */
export type SeccompArchitecture = (typeof SECCOMP_ARCHITECTURES)[number];

/** Every architecture that filters can be made for, in the order of the table of numbers. */
export const SECCOMP_ARCHITECTURES = ['x64', 'arm64'] as const;

/**
 * `seccomp_data.arch` of native calls (`AUDIT_ARCH_*` of linux/audit.h): the ELF machine number with the flags for
 * 64 bits (0x8000_0000) and little endian (0x4000_0000). x32 calls carry the x64 value, and in their number the bit
 * 0x4000_0000 (`__X32_SYSCALL_BIT`): it is above every known native one, so the check for unknown numbers covers it.
 */
export const AUDIT_ARCHITECTURES: Readonly<Record<SeccompArchitecture, number>> = {
  x64: 0xc000_003e,
  arm64: 0xc000_00b7,
};

/** The number of system call `name`, or undefined where the architecture does not have it. */
export function syscallNumber(architecture: SeccompArchitecture, name: string): number | undefined {
  const numbers = Object.hasOwn(SYSCALL_NUMBERS, name) ? SYSCALL_NUMBERS[name] : undefined;
  return typeof numbers === 'object'
    ? (numbers[SECCOMP_ARCHITECTURES.indexOf(architecture)] ?? undefined)
    : numbers;
}

/** Whether at least one architecture has a system call of this name; false means a typing error. */
export function isSyscallName(name: string): boolean {
  return Object.hasOwn(SYSCALL_NUMBERS, name);
}

/** The highest system call number that the generated table knows for the architecture. */
export function highestSyscallNumber(architecture: SeccompArchitecture): number {
  return Math.max(...Object.keys(SYSCALL_NUMBERS).map((name) => syscallNumber(architecture, name) ?? 0));
}
