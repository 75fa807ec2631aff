import {
  AUDIT_ARCHITECTURES,
  type SeccompArchitecture,
} from '../../../../../src/confine/kernel/seccomp/architecture.ts';
import type { SeccompProgram } from '../../../../../src/confine/kernel/seccomp/assemble.ts';
import { formatActionValue } from '../../../../../src/confine/kernel/seccomp/ir.ts';
import {
  BPF_OPCODES,
  type BpfInstruction,
  SECCOMP_DATA,
} from '../../../../../src/confine/kernel/seccomp/layout.ts';
import { syscallsOf } from '../../../../support/syscall-numbers.ts';

/** What the accumulator holds at an instruction: text of the last load, or undefined where ways that differ meet. */
type Operand = string | undefined;

const COMPARISONS: ReadonlyMap<number, string> = new Map([
  [BPF_OPCODES.jeq, '=='],
  [BPF_OPCODES.jgt, '>'],
  [BPF_OPCODES.jge, '>='],
]);

/**
 * The program as text, one numbered line per instruction, with names for system calls, errors and `seccomp_data` fields:
 *
 * ```
 *    3  load number
 *    4  if number > rseq_slice_yield goto 5 else 6
 * ```
 */
export function disassemble(program: SeccompProgram): string {
  const instructions = decodeInstructions(program.bytes);
  const operands = accumulatorAt(instructions);
  return instructions
    .map((instruction, index) => {
      const text = describe(instruction, index, operands[index], program.architecture);
      return `${String(index).padStart(4)}  ${text}\n`;
    })
    .join('');
}

/** Follows the accumulator along all jumps; one pass does, as they only lead forward. */
function accumulatorAt(instructions: readonly BpfInstruction[]): readonly Operand[] {
  const seen: Set<Operand>[] = instructions.map(() => new Set());
  const only = (index: number): Operand => {
    const values = [...(seen[index] ?? [])];
    return values.length === 1 ? values[0] : undefined;
  };
  instructions.forEach((instruction, index) => {
    const after = accumulatorAfter(instruction, only(index));
    for (const next of successors(instruction, index)) seen[next]?.add(after);
  });
  return instructions.map((_, index) => only(index));
}

function accumulatorAfter({ code, k }: BpfInstruction, before: Operand): Operand {
  if (code === BPF_OPCODES.load) return fieldName(k);
  if (code !== BPF_OPCODES.and || before === undefined) return before;
  return `(${before} & 0x${k.toString(16)})`;
}

function successors(instruction: BpfInstruction, index: number): readonly number[] {
  if (instruction.code === BPF_OPCODES.return) return [];
  if (instruction.code === BPF_OPCODES.goto) return [index + 1 + instruction.k];
  if (COMPARISONS.has(instruction.code)) return [index + 1 + instruction.jt, index + 1 + instruction.jf];
  return [index + 1];
}

function describe(
  instruction: BpfInstruction,
  index: number,
  operand: Operand,
  architecture: SeccompArchitecture,
): string {
  const { code, jt, jf, k } = instruction;
  const comparison = COMPARISONS.get(code);
  if (comparison !== undefined) {
    const constant = constantName(k, operand, architecture);
    return `if ${operand ?? 'A'} ${comparison} ${constant} goto ${index + 1 + jt} else ${index + 1 + jf}`;
  }
  if (code === BPF_OPCODES.load) return `load ${fieldName(k)}`;
  if (code === BPF_OPCODES.and) return `mask 0x${k.toString(16)}`;
  if (code === BPF_OPCODES.goto) return `goto ${index + 1 + k}`;
  if (code === BPF_OPCODES.return) return `return ${formatActionValue(k)}`;
  return `unknown code 0x${code.toString(16)} k 0x${k.toString(16)}`;
}

function constantName(k: number, operand: Operand, architecture: SeccompArchitecture): string {
  const hexadecimal = `0x${k.toString(16)}`;
  if (operand === 'number') return syscallName(architecture, k) ?? hexadecimal;
  if (operand === 'architecture' && k === AUDIT_ARCHITECTURES[architecture]) return architecture;
  return hexadecimal;
}

function fieldName(offset: number): string {
  if (offset === SECCOMP_DATA.number) return 'number';
  if (offset === SECCOMP_DATA.architecture) return 'architecture';
  const argument = Math.floor((offset - SECCOMP_DATA.lowHalf(0)) / 8);
  if (argument < 0) return `data[${offset}]`;
  return `args[${argument}].${offset === SECCOMP_DATA.lowHalf(argument) ? 'low' : 'high'}`;
}

/** `sizeof(struct sock_filter)`. */
const BPF_INSTRUCTION_BYTES = 8;

/**
 * The instructions in the bytes of a `struct sock_filter[]`.
 *
 * @throws RangeError when the length is not a multiple of an instruction.
 */
function decodeInstructions(bytes: Uint8Array): readonly BpfInstruction[] {
  if (bytes.length % BPF_INSTRUCTION_BYTES !== 0) throw new RangeError('truncated BPF program');
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return Array.from({ length: bytes.length / BPF_INSTRUCTION_BYTES }, (_, index) => {
    const offset = index * BPF_INSTRUCTION_BYTES;
    return {
      code: view.getUint16(offset, true),
      jt: view.getUint8(offset + 2),
      jf: view.getUint8(offset + 3),
      k: view.getUint32(offset + 4, true),
    };
  });
}

/** The name of system call `number`, or undefined for a number without a name in the table. */
export function syscallName(architecture: SeccompArchitecture, number: number): string | undefined {
  return syscallsOf(architecture).find((entry) => entry[1] === number)?.[0];
}
