import type { SeccompAction } from './action.ts';

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
