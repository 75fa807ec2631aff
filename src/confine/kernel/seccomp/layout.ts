/** Opcodes of classic BPF that a filter uses (linux/bpf_common.h; all operands are 32-bit constants). */
export const BPF_OPCODES = {
  /** A = 32-bit word of seccomp_data at k (BPF_LD | BPF_W | BPF_ABS). */
  load: 0x20,
  /** A &= k (BPF_ALU | BPF_AND | BPF_K). */
  and: 0x54,
  /** pc += k (BPF_JMP | BPF_JA). */
  goto: 0x05,
  /** Branch on A == k, A > k, A >= k, unsigned (BPF_JMP | BPF_JEQ, BPF_JGT, BPF_JGE | BPF_K). */
  jeq: 0x15,
  jgt: 0x25,
  jge: 0x35,
  /** End with k (BPF_RET | BPF_K). */
  return: 0x06,
} as const;

/** A comparison that a conditional jump makes. */
type BpfComparison = 'jeq' | 'jgt' | 'jge';

/** One `struct sock_filter`. The jump offsets count instructions from the next one. */
export interface BpfInstruction {
  readonly code: number;
  readonly jt: number;
  readonly jf: number;
  readonly k: number;
}

/** `sizeof(struct sock_filter)`: u16 code, u8 jt, u8 jf, u32 k. */
const BPF_INSTRUCTION_BYTES = 8;

/** Offsets into `struct seccomp_data`, in bytes. Both architectures are little endian: the low half comes first. */
export const SECCOMP_DATA = {
  number: 0,
  architecture: 4,
  lowHalf: (arg: number): number => 16 + 8 * arg,
  highHalf: (arg: number): number => 16 + 8 * arg + 4,
} as const;

/** The instructions as the bytes of a `struct sock_filter[]`, little endian. */
export function encodeInstructions(instructions: readonly BpfInstruction[]): Uint8Array {
  const bytes = new Uint8Array(instructions.length * BPF_INSTRUCTION_BYTES);
  const view = new DataView(bytes.buffer);
  instructions.forEach((instruction, index) => {
    const offset = index * BPF_INSTRUCTION_BYTES;
    view.setUint16(offset, instruction.code, true);
    view.setUint8(offset + 2, instruction.jt);
    view.setUint8(offset + 3, instruction.jf);
    view.setUint32(offset + 4, instruction.k, true);
  });
  return bytes;
}

/** A place in the program that jumps can name. */
export type Label = number;

/** Where a jump goes: a place further down, or the next instruction. */
export type JumpTarget = Label | 'next';

/** An instruction whose jumps name labels instead of distances. A `label` marks a place and takes no space. */
export type SymbolicInstruction =
  | { readonly kind: 'label'; readonly label: Label }
  | { readonly kind: 'load'; readonly offset: number }
  | { readonly kind: 'and'; readonly mask: number }
  | Branch
  | { readonly kind: 'goto'; readonly target: Label }
  | { readonly kind: 'return'; readonly value: number };

interface Branch {
  readonly kind: 'branch';
  readonly compare: BpfComparison;
  readonly k: number;
  readonly onTrue: JumpTarget;
  readonly onFalse: JumpTarget;
}

/** The two distances of a conditional jump are bytes. */
const MAX_BRANCH_DISTANCE = 255;

/**
 * Turns labels into distances, from the end to the start: as classic BPF only jumps forward, whatever a jump can reach is
 * in place when the jump is placed. A conditional jump that reaches too far gets an unconditional one (whose distance has
 * 32 bits) right behind it to land on.
 *
 * @throws RangeError on a jump to a label that does not exist or lies behind.
 */
export function layOut(program: readonly SymbolicInstruction[]): readonly BpfInstruction[] {
  const placed: BpfInstruction[] = [];
  // How many instructions follow each label; they are counted from the end while `placed` grows.
  const labels = new Map<Label, number>();
  const distance = (target: JumpTarget): number => {
    if (target === 'next') return 0;
    const following = labels.get(target);
    if (following === undefined) throw new RangeError(`BPF jump to label ${target} is not forward`);
    return placed.length - following;
  };
  for (let index = program.length - 1; index >= 0; index--) {
    const item = program[index];
    if (item === undefined) continue;
    switch (item.kind) {
      case 'label':
        labels.set(item.label, placed.length);
        break;
      case 'load':
        placed.push(plain(BPF_OPCODES.load, item.offset));
        break;
      case 'and':
        placed.push(plain(BPF_OPCODES.and, item.mask));
        break;
      case 'goto':
        placed.push(plain(BPF_OPCODES.goto, distance(item.target)));
        break;
      case 'return':
        placed.push(plain(BPF_OPCODES.return, item.value));
        break;
      case 'branch':
        placed.push(...placeBranch(item, distance(item.onTrue), distance(item.onFalse)));
        break;
    }
  }
  return placed.reverse();
}

/** The branch and what it lands on, last instruction first. The distances are those without landings in between. */
function placeBranch(item: Branch, onTrue: number, onFalse: number): readonly BpfInstruction[] {
  const code = BPF_OPCODES[item.compare];
  // A landing for one side pushes the other side's target one further, perhaps beyond reach.
  const farthest = Math.max(onTrue, onFalse);
  if (farthest <= MAX_BRANCH_DISTANCE) return [{ code, jt: onTrue, jf: onFalse, k: item.k }];
  if (Math.min(onTrue, onFalse) + 1 > MAX_BRANCH_DISTANCE) {
    return [
      plain(BPF_OPCODES.goto, onFalse),
      plain(BPF_OPCODES.goto, onTrue + 1),
      { code, jt: 0, jf: 1, k: item.k },
    ];
  }
  const landing = plain(BPF_OPCODES.goto, farthest);
  return onTrue > onFalse
    ? [landing, { code, jt: 0, jf: onFalse + 1, k: item.k }]
    : [landing, { code, jt: onTrue + 1, jf: 0, k: item.k }];
}

function plain(code: number, k: number): BpfInstruction {
  return { code, jt: 0, jf: 0, k };
}
