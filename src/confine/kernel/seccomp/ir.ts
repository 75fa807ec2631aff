/**
 * Error numbers that a filter may return, by name (asm-generic/errno-base.h and errno.h; x64 and arm64 share them).
 * Add a row to use another one.
 */
const SECCOMP_ERRNOS = {
  EPERM: 1,
  EACCES: 13,
  EINVAL: 22,
  ENOSYS: 38,
  EPROTONOSUPPORT: 93,
  EOPNOTSUPP: 95,
  EAFNOSUPPORT: 97,
} as const;

/** Name of an error that a filter may return. */
export type SeccompErrno = keyof typeof SECCOMP_ERRNOS;

/** What happens to a system call: it runs, it fails with an error, or it ends the whole process by SIGSYS. */
export type SeccompAction =
  | { readonly kind: 'allow' }
  | { readonly kind: 'errno'; readonly errno: SeccompErrno }
  | { readonly kind: 'kill-process' };

/** The call runs. */
export const ALLOW: SeccompAction = { kind: 'allow' };

/** The process ends by SIGSYS, uncatchable (`SECCOMP_RET_KILL_PROCESS`, Linux 4.14). */
export const KILL_PROCESS: SeccompAction = { kind: 'kill-process' };

/** The call does not run and fails with the named error. */
export function refuseWith(errno: SeccompErrno): SeccompAction {
  return { kind: 'errno', errno };
}

const RET_KILL_PROCESS = 0x8000_0000;
const RET_ERRNO = 0x0005_0000;
const RET_ALLOW = 0x7fff_0000;

/** The 32-bit value that a filter program returns for the action (`SECCOMP_RET_*` of linux/seccomp.h). */
export function actionValue(action: SeccompAction): number {
  switch (action.kind) {
    case 'allow':
      return RET_ALLOW;
    case 'errno':
      return RET_ERRNO + SECCOMP_ERRNOS[action.errno];
    case 'kill-process':
      return RET_KILL_PROCESS;
  }
}

/** Text of a filter's return value, as in `ALLOW`, `ERRNO EPERM`, `KILL_PROCESS`; hexadecimal if not one of ours. */
export function formatActionValue(value: number): string {
  if (value === RET_ALLOW) return 'ALLOW';
  if (value === RET_KILL_PROCESS) return 'KILL_PROCESS';
  const errno = Object.entries(SECCOMP_ERRNOS).find((entry) => RET_ERRNO + entry[1] === value);
  return errno === undefined ? `0x${value.toString(16)}` : `ERRNO ${errno[0]}`;
}

/** Position of a system call argument. */
export type ArgumentIndex = 0 | 1 | 2 | 3 | 4 | 5;

interface ConditionOn<Width extends 32 | 64, Value> {
  /** Which argument is looked at. */
  readonly arg: ArgumentIndex;
  /** How many of its low bits are looked at. */
  readonly width: Width;
  /** Bits that take part in the comparison. */
  readonly mask: Value;
  /** Whether the masked argument must be one of `values` or none of them. */
  readonly test: 'any-of' | 'none-of';
  /** At least one; none may have a bit outside `mask`. */
  readonly values: readonly Value[];
}

/**
 * A condition on the low 32 bits of an argument. This is the usual kind: the kernel truncates an argument that it
 * declares as `int` (SYSCALL_DEFINEx casts), so a comparison of all 64 bits could be dodged by garbage in the high half.
 */
export type LowWordCondition = ConditionOn<32, number>;

/** A condition on all 64 bits, only for arguments that the kernel reads as `unsigned long`, `u64` or a pointer. */
export type FullWidthCondition = ConditionOn<64, bigint>;

/** A condition on one argument. Memory that an argument points to cannot be looked at by a filter. */
export type ArgumentCondition = LowWordCondition | FullWidthCondition;

/** What is to happen to a system call when all the conditions hold; with no condition, always. */
export interface SeccompRule {
  /** Name as in the generated table. On an architecture without this system call, the rule says nothing. */
  readonly syscall: string;
  readonly when: readonly ArgumentCondition[];
  readonly action: SeccompAction;
}

/**
 * An independent set of rules. Of a layer's rules for one system call, the first whose conditions hold decides; where
 * none does, the layer allows.
 */
export interface SeccompLayer {
  /** Shown in messages; the group's name where the layer comes from one. */
  readonly name: string;
  readonly rules: readonly SeccompRule[];
}

/**
 * A filter that allows whatever nothing refuses. Layers add up: the first layer that does not allow a call decides what is
 * done with it, so no layer can open what another one closes, and the order matters only for which refusal is seen.
 */
export interface SeccompFilter {
  readonly layers: readonly SeccompLayer[];
  /** For calls of another architecture than the program's (32-bit programs, `int 0x80`). */
  readonly foreignArchitecture: SeccompAction;
  /** For numbers above the highest known one, and so for all x32 calls. */
  readonly unknownSyscall: SeccompAction;
}

const LOW_WORD = 0xffff_ffff;

/** The low 32 bits of the argument are one of `values`. */
export function equals(arg: ArgumentIndex, ...values: readonly number[]): LowWordCondition {
  return { arg, width: 32, mask: LOW_WORD, test: 'any-of', values };
}

/** The low 32 bits of the argument are none of `values`. */
export function differs(arg: ArgumentIndex, ...values: readonly number[]): LowWordCondition {
  return { arg, width: 32, mask: LOW_WORD, test: 'none-of', values };
}

/** The argument's bits in `mask` are one of `values`. */
export function maskedEquals(
  arg: ArgumentIndex,
  mask: number,
  ...values: readonly number[]
): LowWordCondition {
  return { arg, width: 32, mask, test: 'any-of', values };
}

/** At least one of the argument's bits in `mask` is set. */
export function hasAnyBit(arg: ArgumentIndex, mask: number): LowWordCondition {
  return { arg, width: 32, mask, test: 'none-of', values: [0] };
}

/** All 64 bits of the argument are one of `values`; see {@link FullWidthCondition} for when this is right. */
export function equals64(arg: ArgumentIndex, ...values: readonly bigint[]): FullWidthCondition {
  return { arg, width: 64, mask: 0xffff_ffff_ffff_ffffn, test: 'any-of', values };
}
