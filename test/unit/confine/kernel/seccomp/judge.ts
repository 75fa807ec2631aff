import {
  AUDIT_ARCHITECTURES,
  syscallNumber,
} from '../../../../../src/confine/kernel/seccomp/architecture.ts';
import { assembleFilter, type SeccompProgram } from '../../../../../src/confine/kernel/seccomp/assemble.ts';
import { buildFilter } from '../../../../../src/confine/kernel/seccomp/filter.ts';
import type { SeccompGroupName } from '../../../../../src/confine/kernel/seccomp/groups.ts';
import { formatActionValue } from '../../../../../src/confine/kernel/seccomp/ir.ts';
import { encodeSyscallData, runBpf } from '../../../../support/bpf-interpreter.ts';

/** The x64 program of the named groups. */
export function programOf(...groups: readonly SeccompGroupName[]): SeccompProgram {
  return assembleFilter(buildFilter(groups), 'x64');
}

/** What the program makes of a native call, as text: `ALLOW`, `ERRNO EPERM`, ... */
export function judge(
  program: SeccompProgram,
  syscall: string,
  ...args: readonly (number | bigint)[]
): string {
  const number = syscallNumber(program.architecture, syscall);
  if (number === undefined) throw new Error(`no ${syscall} on ${program.architecture}`);
  const architecture = AUDIT_ARCHITECTURES[program.architecture];
  const data = encodeSyscallData({ number, architecture, args: args.map(BigInt) });
  return formatActionValue(runBpf(program.bytes, data).value);
}
