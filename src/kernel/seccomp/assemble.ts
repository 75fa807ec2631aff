import { ALLOW, actionValue, type SeccompAction } from './action.ts';
import {
  AUDIT_ARCHITECTURES,
  highestSyscallNumber,
  type SeccompArchitecture,
  syscallNumber,
} from './architecture.ts';
import { BPF_MAX_INSTRUCTIONS, encodeInstructions, SECCOMP_DATA } from './bpf.ts';
import type { SeccompFilter, SeccompRule } from './ir.ts';
import { type JumpTarget, type Label, layOut, type SymbolicInstruction } from './layout.ts';
import { compileRules } from './rules.ts';
import { validateFilter } from './validate.ts';

/** A seccomp filter in the form that the kernel takes. */
export interface SeccompProgram {
  /** The only architecture whose calls it judges. */
  readonly architecture: SeccompArchitecture;
  /** The `struct sock_filter[]`, little endian. */
  readonly bytes: Uint8Array;
  /** Number of instructions, for `struct sock_fprog.len`. */
  readonly length: number;
}

/** What is known about one system call: for each layer that names it, its rules in order. */
interface TreeEntry {
  readonly number: number;
  readonly layers: readonly (readonly SeccompRule[])[];
}

/** More comparisons in a row than this are split by a comparison of order. */
const MAX_LEAF_ENTRIES = 3;

/**
 * Compiles the filter for one architecture: the architecture first, then too-high numbers (x32 is among them), then a
 * binary search over the numbers that any rule names. The shape matters for speed: when a filter is installed, the kernel
 * runs it once per system call and architecture to find those that are always allowed, which then cost nothing.
 *
 * @throws RangeError when the filter is malformed (see validateFilter) or compiles to more instructions than the
 *   kernel takes.
 */
export function assembleFilter(filter: SeccompFilter, architecture: SeccompArchitecture): SeccompProgram {
  validateFilter(filter);
  const code: SymbolicInstruction[] = [];
  let labels = 0;
  const newLabel = (): Label => labels++;
  const native = newLabel();
  const known = newLabel();
  code.push(
    { kind: 'load', offset: SECCOMP_DATA.architecture },
    branch('jeq', AUDIT_ARCHITECTURES[architecture], native, 'next'),
    returning(filter.foreignArchitecture),
    { kind: 'label', label: native },
    { kind: 'load', offset: SECCOMP_DATA.number },
    branch('jgt', highestSyscallNumber(architecture), 'next', known),
    returning(filter.unknownSyscall),
    { kind: 'label', label: known },
  );
  emitTree(code, newLabel, treeEntries(filter, architecture));
  const instructions = layOut(code);
  if (instructions.length > BPF_MAX_INSTRUCTIONS) {
    throw new RangeError(
      `seccomp filter has ${instructions.length} instructions, more than ${BPF_MAX_INSTRUCTIONS}`,
    );
  }
  return { architecture, bytes: encodeInstructions(instructions), length: instructions.length };
}

/** The system calls of the architecture that some rule names, by ascending number. */
function treeEntries(filter: SeccompFilter, architecture: SeccompArchitecture): readonly TreeEntry[] {
  const byNumber = new Map<number, (readonly SeccompRule[])[]>();
  for (const layer of filter.layers) {
    for (const syscall of new Set(layer.rules.map((rule) => rule.syscall))) {
      const number = syscallNumber(architecture, syscall);
      if (number === undefined) continue;
      const rules = layer.rules.filter((rule) => rule.syscall === syscall);
      byNumber.set(number, [...(byNumber.get(number) ?? []), rules]);
    }
  }
  return [...byNumber]
    .map(([number, layers]) => ({ number, layers }))
    .sort((left, right) => left.number - right.number);
}

function emitTree(code: SymbolicInstruction[], newLabel: () => Label, entries: readonly TreeEntry[]): void {
  if (entries.length <= MAX_LEAF_ENTRIES) {
    emitLeaf(code, newLabel, entries);
    return;
  }
  const middle = Math.ceil(entries.length / 2);
  const upper = newLabel();
  code.push(branch('jge', entries[middle]?.number ?? 0, upper, 'next'));
  emitTree(code, newLabel, entries.slice(0, middle));
  code.push({ kind: 'label', label: upper });
  emitTree(code, newLabel, entries.slice(middle));
}

function emitLeaf(code: SymbolicInstruction[], newLabel: () => Label, entries: readonly TreeEntry[]): void {
  const blocks: SymbolicInstruction[] = [];
  const returns = new Map<number, Label>();
  for (const entry of entries) {
    const settled = settledAction(entry.layers);
    const known = settled === undefined ? undefined : returns.get(actionValue(settled));
    const label = known ?? newLabel();
    code.push(branch('jeq', entry.number, label, 'next'));
    if (known !== undefined) continue;
    blocks.push({ kind: 'label', label });
    if (settled === undefined) {
      blocks.push(...compileRules(entry.layers, newLabel));
    } else {
      returns.set(actionValue(settled), label);
      blocks.push(returning(settled));
    }
  }
  code.push(returning(ALLOW), ...blocks);
}

/** The action that the first layer takes whatever the arguments; later layers then have no say. */
function settledAction(layers: TreeEntry['layers']): SeccompAction | undefined {
  const first = layers[0]?.[0];
  return first?.when.length === 0 && first.action.kind !== 'allow' ? first.action : undefined;
}

function branch(
  compare: 'jeq' | 'jgt' | 'jge',
  k: number,
  onTrue: JumpTarget,
  onFalse: JumpTarget,
): SymbolicInstruction {
  return { kind: 'branch', compare, k, onTrue, onFalse };
}

function returning(action: SeccompAction): SymbolicInstruction {
  return { kind: 'return', value: actionValue(action) };
}
