/**
 * An interpreter for classic BPF as seccomp runs it, written from linux/filter.h and Documentation/networking/filter.rst
 * and sharing nothing with the assembler, so that the two check each other.
 */

/** The call that a filter judges (`struct seccomp_data`). Arguments are the full 64-bit registers. */
export interface SyscallData {
  readonly number: number;
  readonly architecture: number;
  readonly args: readonly bigint[];
}

/** What a run came to: the value returned and how many instructions that took. */
export interface BpfOutcome {
  readonly value: number;
  readonly steps: number;
}

const DATA_BYTES = 64;

/** `struct seccomp_data` in memory, little endian. */
export function encodeSyscallData(data: SyscallData): DataView {
  const view = new DataView(new ArrayBuffer(DATA_BYTES));
  view.setUint32(0, data.number >>> 0, true);
  view.setUint32(4, data.architecture >>> 0, true);
  view.setBigUint64(8, 0x7fff_dead_beefn, true);
  for (let index = 0; index < 6; index++) {
    view.setBigUint64(16 + 8 * index, BigInt.asUintN(64, data.args[index] ?? 0n), true);
  }
  return view;
}

/**
 * Runs the program on the call.
 *
 * @throws Error where the kernel's checker would have refused the program: unknown opcode, unaligned or outside load, a
 *   jump past the end, or running off the end.
 */
export function runBpf(program: Uint8Array, data: DataView): BpfOutcome {
  const code = new DataView(program.buffer, program.byteOffset, program.byteLength);
  const count = program.byteLength / 8;
  let accumulator = 0;
  let pc = 0;
  for (let steps = 1; ; steps++) {
    if (pc >= count) throw new Error(`ran off the end at ${pc}`);
    const opcode = code.getUint16(pc * 8, true);
    const k = code.getUint32(pc * 8 + 4, true);
    const branch = (taken: boolean): number => pc + 1 + code.getUint8(pc * 8 + (taken ? 2 : 3));
    switch (opcode) {
      case 0x20: // BPF_LD|BPF_W|BPF_ABS
        if (k % 4 !== 0 || k >= DATA_BYTES) throw new Error(`bad load offset ${k}`);
        accumulator = data.getUint32(k, true);
        pc++;
        break;
      case 0x54: // BPF_ALU|BPF_AND|BPF_K
        accumulator = (accumulator & k) >>> 0;
        pc++;
        break;
      case 0x05: // BPF_JMP|BPF_JA
        pc = pc + 1 + k;
        break;
      case 0x15: // BPF_JMP|BPF_JEQ|BPF_K
        pc = branch(accumulator === k);
        break;
      case 0x25: // BPF_JMP|BPF_JGT|BPF_K
        pc = branch(accumulator > k);
        break;
      case 0x35: // BPF_JMP|BPF_JGE|BPF_K
        pc = branch(accumulator >= k);
        break;
      case 0x45: // BPF_JMP|BPF_JSET|BPF_K
        pc = branch((accumulator & k) !== 0);
        break;
      case 0x06: // BPF_RET|BPF_K
        return { value: k, steps };
      default:
        throw new Error(`opcode 0x${opcode.toString(16)} at ${pc}`);
    }
  }
}
