import {
  AUDIT_ARCHITECTURES,
  highestSyscallNumber,
  isSyscallName,
  type SeccompArchitecture,
  syscallNumber,
} from './architecture.ts';
import {
  ALLOW,
  type ArgumentCondition,
  actionValue,
  type FullWidthCondition,
  type LowWordCondition,
  type SeccompAction,
  type SeccompFilter,
  type SeccompLayer,
  type SeccompRule,
} from './ir.ts';
import {
  encodeInstructions,
  type JumpTarget,
  type Label,
  layOut,
  SECCOMP_DATA,
  type SymbolicInstruction,
} from './layout.ts';

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

/** Most instructions the kernel takes in one program (BPF_MAXINSNS of linux/bpf_common.h). */
const BPF_MAX_INSTRUCTIONS = 4096;

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

/**
 * Refuses a filter that cannot mean what its author meant.
 *
 * @throws RangeError on a system call name that no architecture has, a rule behind an unconditional one of the same
 *   layer (it could never decide), or a condition without values, with a value outside its mask or beyond its width.
 */
function validateFilter(filter: SeccompFilter): void {
  for (const layer of filter.layers) validateLayer(layer);
}

function validateLayer(layer: SeccompLayer): void {
  const settled = new Set<string>();
  for (const rule of layer.rules) {
    const where = `seccomp layer ${layer.name}, system call ${rule.syscall}`;
    if (!isSyscallName(rule.syscall)) throw new RangeError(`${where}: no architecture has it`);
    if (settled.has(rule.syscall)) throw new RangeError(`${where}: rule behind an unconditional one`);
    if (rule.when.length === 0) settled.add(rule.syscall);
    for (const condition of rule.when) validateCondition(condition, where);
  }
}

function validateCondition(condition: ArgumentCondition, where: string): void {
  if (condition.values.length === 0) throw new RangeError(`${where}: condition without values`);
  const mask = BigInt(condition.mask);
  const limit = 1n << BigInt(condition.width);
  if (mask <= 0n || mask >= limit) throw new RangeError(`${where}: mask out of range`);
  for (const value of condition.values) {
    // A negative number has infinitely many high bits as a bigint, so this refuses it as well.
    if ((BigInt(value) & ~mask) !== 0n) throw new RangeError(`${where}: value ${value} outside the mask`);
  }
}

const WORD = 0xffff_ffff;

/** Code that judges one system call by its arguments: runs when its number is known, ends in a return. */
function compileRules(
  layers: readonly (readonly SeccompRule[])[],
  newLabel: () => Label,
): readonly SymbolicInstruction[] {
  const code: SymbolicInstruction[] = [];
  for (const rules of layers) {
    const nextLayer = newLabel();
    for (const rule of rules) {
      const nextRule = newLabel();
      code.push(
        ...rule.when.flatMap((condition) => compileCondition(condition, nextRule, newLabel)),
        // An allow is only this layer's word; the next layer may still refuse.
        rule.action.kind === 'allow' ? { kind: 'goto', target: nextLayer } : returning(rule.action),
        { kind: 'label', label: nextRule },
      );
    }
    if (!letsSomethingPass(rules)) return code;
    code.push({ kind: 'label', label: nextLayer });
  }
  return [...code, returning(ALLOW)];
}

/** Whether a call can get past a layer's rules for it, so that later layers have a say. */
function letsSomethingPass(rules: readonly SeccompRule[]): boolean {
  return rules.every((rule) => rule.when.length > 0) || rules.some((rule) => rule.action.kind === 'allow');
}

/** Falls through where the condition holds and jumps to `failed` where it does not. */
function compileCondition(
  condition: ArgumentCondition,
  failed: Label,
  newLabel: () => Label,
): readonly SymbolicInstruction[] {
  return condition.width === 32
    ? compileLowWord(condition, failed, newLabel())
    : compileFullWidth(condition, failed, newLabel);
}

function compileLowWord(
  condition: LowWordCondition,
  failed: Label,
  matched: Label,
): readonly SymbolicInstruction[] {
  const last = condition.values.length - 1;
  return [
    ...loadMasked(SECCOMP_DATA.lowHalf(condition.arg), condition.mask),
    ...condition.values.map((value, index) =>
      condition.test === 'none-of'
        ? compare(value, failed, 'next')
        : compare(value, matched, index === last ? failed : 'next'),
    ),
    { kind: 'label', label: matched },
  ];
}

function compileFullWidth(
  condition: FullWidthCondition,
  failed: Label,
  newLabel: () => Label,
): readonly SymbolicInstruction[] {
  const matched = newLabel();
  const [hit, miss] = condition.test === 'any-of' ? [matched, failed] : [failed, matched];
  const code = condition.values.flatMap((value): readonly SymbolicInstruction[] => {
    const nextValue = newLabel();
    return [
      ...loadMasked(SECCOMP_DATA.highHalf(condition.arg), highWord(condition.mask)),
      compare(highWord(value), 'next', nextValue),
      ...loadMasked(SECCOMP_DATA.lowHalf(condition.arg), lowWord(condition.mask)),
      compare(lowWord(value), hit, nextValue),
      { kind: 'label', label: nextValue },
    ];
  });
  return [...code, { kind: 'goto', target: miss }, { kind: 'label', label: matched }];
}

function loadMasked(offset: number, mask: number): readonly SymbolicInstruction[] {
  const load: SymbolicInstruction = { kind: 'load', offset };
  return mask === WORD ? [load] : [load, { kind: 'and', mask }];
}

function compare(k: number, onTrue: JumpTarget, onFalse: JumpTarget): SymbolicInstruction {
  return { kind: 'branch', compare: 'jeq', k, onTrue, onFalse };
}

function highWord(value: bigint): number {
  return Number(value >> 32n);
}

function lowWord(value: bigint): number {
  return Number(value & BigInt(WORD));
}
