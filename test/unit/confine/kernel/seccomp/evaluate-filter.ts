import type {
  ArgumentCondition,
  SeccompAction,
  SeccompFilter,
} from '../../../../../src/confine/kernel/seccomp/ir.ts';
import type { SyscallData } from '../../../../support/bpf-interpreter.ts';
import { syscallsOf } from '../../../../support/syscall-numbers.ts';

const NATIVE = { x64: 0xc000003e, arm64: 0xc00000b7 };

/** Names by number; a number without a name is a hole. */
const NAMES = { x64: namesByNumber('x64'), arm64: namesByNumber('arm64') };

function namesByNumber(architecture: 'x64' | 'arm64'): readonly string[] {
  const names: string[] = [];
  for (const [name, number] of syscallsOf(architecture)) names[number] = name;
  return names;
}

/** What the filter says about the call, in the plainest way: the words of ir.ts as code. */
export function evaluateFilter(
  filter: SeccompFilter,
  architecture: 'x64' | 'arm64',
  data: SyscallData,
): SeccompAction {
  if (data.architecture !== NATIVE[architecture]) return filter.foreignArchitecture;
  const names = NAMES[architecture];
  if (data.number >= names.length) return filter.unknownSyscall;
  const name = names[data.number];
  for (const layer of filter.layers) {
    const rule = layer.rules.find(
      (candidate) => candidate.syscall === name && candidate.when.every((when) => holds(when, data)),
    );
    if (rule !== undefined && rule.action.kind !== 'allow') return rule.action;
  }
  return { kind: 'allow' };
}

function holds(condition: ArgumentCondition, data: SyscallData): boolean {
  const argument = BigInt.asUintN(condition.width, data.args[condition.arg] ?? 0n) & BigInt(condition.mask);
  const found = condition.values.some((value) => BigInt(value) === argument);
  return condition.test === 'any-of' ? found : !found;
}

/** The value that the kernel is to see for the action, from linux/seccomp.h and not from the code under test. */
export function expectedValue(action: SeccompAction): number {
  if (action.kind === 'allow') return 0x7fff0000;
  if (action.kind === 'kill-process') return 0x80000000;
  const numbers: Record<string, number> = {
    EPERM: 1,
    EACCES: 13,
    EINVAL: 22,
    ENOSYS: 38,
    EPROTONOSUPPORT: 93,
    EOPNOTSUPP: 95,
    EAFNOSUPPORT: 97,
  };
  return 0x00050000 | (numbers[action.errno] ?? -1);
}
