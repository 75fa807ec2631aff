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
export type BpfComparison = 'jeq' | 'jgt' | 'jge';

/** One `struct sock_filter`. The jump offsets count instructions from the next one. */
export interface BpfInstruction {
  readonly code: number;
  readonly jt: number;
  readonly jf: number;
  readonly k: number;
}

/** `sizeof(struct sock_filter)`: u16 code, u8 jt, u8 jf, u32 k. */
const BPF_INSTRUCTION_BYTES = 8;

/** Most instructions the kernel takes in one program (BPF_MAXINSNS of linux/bpf_common.h). */
export const BPF_MAX_INSTRUCTIONS = 4096;

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
