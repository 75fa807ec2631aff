import { describe, expect, it } from 'vitest';
import {
  AUDIT_ARCHITECTURES,
  highestSyscallNumber,
  SECCOMP_ARCHITECTURES,
  syscallNumber,
} from '../../../../../src/confine/kernel/seccomp/architecture.ts';
import { assembleFilter } from '../../../../../src/confine/kernel/seccomp/assemble.ts';
import { buildFilter, seccompGroupsFor } from '../../../../../src/confine/kernel/seccomp/filter.ts';
import { SECCOMP_GROUP_NAMES } from '../../../../../src/confine/kernel/seccomp/groups.ts';
import {
  ALLOW,
  equals,
  equals64,
  KILL_PROCESS,
  refuseWith,
  type SeccompFilter,
  type SeccompRule,
} from '../../../../../src/confine/kernel/seccomp/ir.ts';
import { encodeSyscallData, runBpf } from '../../../../support/bpf-interpreter.ts';
import { syscallsOf } from '../../../../support/syscall-numbers.ts';
import { syscallName } from './disassemble.ts';
import { evaluateFilter, expectedValue } from './evaluate-filter.ts';

const FILTERS: readonly (readonly [string, SeccompFilter])[] = [
  ['all groups', buildFilter(SECCOMP_GROUP_NAMES)],
  [
    'network refused',
    buildFilter(
      seccompGroupsFor({ network: 'refused', unixSockets: 'allowed', tracing: 'own', ipcObjects: 'own' }),
    ),
  ],
  [
    'network isolated',
    buildFilter(
      seccompGroupsFor({ network: 'isolated', unixSockets: 'allowed', tracing: 'own', ipcObjects: 'own' }),
    ),
  ],
  [
    'network open',
    buildFilter(
      seccompGroupsFor({ network: 'open', unixSockets: 'refused', tracing: 'own', ipcObjects: 'own' }),
    ),
  ],
  ['nothing', buildFilter([])],
];

/** Values at which some condition changes its mind, their neighbours, and what the real flags add. */
const EDGES = [
  0, 1, 2, 3, 4, 5, 6, 8, 10, 16, 17, 21, 29, 38, 40, 58, 132, 136, 262, 0x800, 0x801, 0x80002, 0x80802,
  0x1000, 0x2000, 0x21ff, 0x6000, 0x61b6, 0x8000, 0x81a4, 0x5411, 0x5412, 0x5413, 0x541b, 0x541c, 0x541d,
  0x5423, 0x20000, 0x20008, 0x40000, 0x40008, 0x4200, 0x4206, 0x3d0f00, 0x1200011, 0x10000011, 0x2000000,
  0x20000000, 0x40000000, 0x7e020000, 0x80000000, 0xfffffffe, 0xffffffff,
];

/** Every edge, plain and with garbage above bit 31. */
const VALUES: readonly bigint[] = EDGES.flatMap((edge) => [
  BigInt(edge),
  BigInt(edge) | 0xdead_beef_0000_0000n,
]);

/** A small generator, so that a failure happens again. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return state / 2 ** 32;
  };
}

/** The values that the filter compares arguments of `syscall` with, plain, with flags and with garbage. */
function comparedValues(filter: SeccompFilter, syscall: string | undefined): readonly bigint[] {
  return filter.layers
    .flatMap((layer) => layer.rules.filter((rule) => rule.syscall === syscall))
    .flatMap((rule) => rule.when.flatMap((condition) => condition.values.map(BigInt)))
    .flatMap((value) => [value, value | 0x80800n, value | 0xdead_beef_0000_0000n]);
}

function* argumentVectors(
  compared: readonly bigint[],
  seed: number,
  count: number,
): Generator<readonly bigint[]> {
  const random = randomOf(seed);
  const pick = (values: readonly bigint[]): bigint => values[Math.floor(random() * values.length)] ?? 0n;
  for (const value of VALUES) yield Array.from({ length: 6 }, () => value);
  for (let index = 0; index < count; index++) {
    // Mostly values that matter together, or the rarer combinations would never come up.
    yield Array.from({ length: 6 }, () => pick(compared.length > 0 && random() < 0.8 ? compared : VALUES));
  }
}

describe.each(SECCOMP_ARCHITECTURES)('assembleFilter for %s', (architecture) => {
  const native = AUDIT_ARCHITECTURES[architecture];

  it.each(FILTERS)('agrees with the rules on every number and argument: %s', (_, filter) => {
    const program = assembleFilter(filter, architecture);
    const wrong: string[] = [];
    for (let number = 0; number <= highestSyscallNumber(architecture) + 50; number++) {
      const compared = comparedValues(filter, syscallName(architecture, number));
      for (const args of argumentVectors(compared, number + 1, compared.length > 0 ? 1000 : 0)) {
        const data = { number, architecture: native, args };
        const { value } = runBpf(program.bytes, encodeSyscallData(data));
        const expected = expectedValue(evaluateFilter(filter, architecture, data));
        if (value !== expected) wrong.push(`${number}(${args.join(', ')}): ${value}, not ${expected}`);
      }
    }
    expect(wrong.slice(0, 5)).toEqual([]);
  });

  it.each(['0', '40000003', '40000028', architecture === 'x64' ? 'c00000b7' : 'c000003e', 'c00000f3'])(
    'ends a process that calls with architecture 0x%s',
    (hexadecimal) => {
      const foreign = Number.parseInt(hexadecimal, 16);
      const program = assembleFilter(buildFilter([]), architecture);
      for (const number of [0, 20, 60, 0x40000027]) {
        const data = encodeSyscallData({ number, architecture: foreign, args: [] });
        expect(runBpf(program.bytes, data)).toEqual({ value: 0x80000000, steps: 3 });
      }
    },
  );

  it('answers x32 and too-new numbers as a kernel without them does', () => {
    const program = assembleFilter(buildFilter([]), architecture);
    const highest = highestSyscallNumber(architecture);
    for (const number of [
      highest + 1,
      512,
      547,
      1000,
      0x40000000,
      0x40000027,
      0x400001ff,
      0x80000000,
      0xffffffff,
    ]) {
      const data = encodeSyscallData({ number, architecture: native, args: [] });
      expect(runBpf(program.bytes, data).value, String(number)).toBe(0x00050026);
    }
    const last = encodeSyscallData({ number: highest, architecture: native, args: [] });
    expect(runBpf(program.bytes, last).value).toBe(0x7fff0000);
  });

  it('allows everyday calls after few instructions', () => {
    const groups = seccompGroupsFor({
      network: 'refused',
      unixSockets: 'refused',
      tracing: 'own',
      ipcObjects: 'own',
    });
    const program = assembleFilter(buildFilter(groups), architecture);
    for (const name of [
      'read',
      'write',
      'openat',
      'futex',
      'mmap',
      'close',
      'epoll_pwait',
      'execve',
      'statx',
    ]) {
      const number = syscallNumber(architecture, name) ?? -1;
      const { value, steps } = runBpf(
        program.bytes,
        encodeSyscallData({ number, architecture: native, args: [] }),
      );
      expect(value, name).toBe(0x7fff0000);
      // Behind its number, three more steps see that no file is made, so that its mode means nothing.
      expect(steps, name).toBeLessThanOrEqual(name === 'openat' ? 14 + 3 : 14);
    }
  });
});

describe('assembleFilter', () => {
  const base = { foreignArchitecture: KILL_PROCESS, unknownSyscall: refuseWith('ENOSYS') };
  const filterOf = (...rules: readonly SeccompRule[]): SeccompFilter => ({
    ...base,
    layers: [{ name: 'test', rules }],
  });
  const names = syscallsOf('x64').map(([name]) => name);

  it('jumps farther than a byte can say', () => {
    // A failed first condition, the leaf and the tree above all reach over several hundred instructions.
    const values = Array.from({ length: 100 }, (_, index) => index * 3 + 1);
    const rules = names.slice(0, 7).flatMap((syscall): SeccompRule[] => [
      {
        syscall,
        when: [equals(0, ...values), equals(1, ...values), equals(5, ...values)],
        action: refuseWith('EPERM'),
      },
      { syscall, when: [equals(2, ...values), equals(3, 7)], action: KILL_PROCESS },
      { syscall, when: [{ ...equals(4, ...values), test: 'none-of' }], action: refuseWith('EACCES') },
    ]);
    const filter = filterOf(...rules);
    const program = assembleFilter(filter, 'x64');
    expect(program.length).toBeGreaterThan(3000);
    const random = randomOf(7);
    const pool = [0n, 1n, 4n, 7n, 8n, 448n, 449n, 1n << 32n];
    for (let number = 0; number < 11; number++) {
      for (let round = 0; round < 500; round++) {
        const args = Array.from({ length: 6 }, () => pool[Math.floor(random() * pool.length)] ?? 0n);
        const data = { number, architecture: AUDIT_ARCHITECTURES.x64, args };
        const expected = expectedValue(evaluateFilter(filter, 'x64', data));
        expect(runBpf(program.bytes, encodeSyscallData(data)).value).toBe(expected);
      }
    }
  });

  it('compares all 64 bits where a rule says so', () => {
    const values = [0x1_0000_0002n, 5n];
    const any = filterOf({ syscall: 'mmap', when: [equals64(0, ...values)], action: refuseWith('EPERM') });
    const none = filterOf({
      syscall: 'mmap',
      when: [{ arg: 0, width: 64, mask: 0xf_0000_000fn, test: 'none-of', values }],
      action: refuseWith('EPERM'),
    });
    for (const filter of [any, none]) {
      const program = assembleFilter(filter, 'x64');
      for (const arg of [
        0n,
        2n,
        5n,
        0x1_0000_0002n,
        0x1_0000_0005n,
        0x2_0000_0002n,
        0xff_0000_0005n,
        0xf5n,
      ]) {
        const data = { number: 9, architecture: AUDIT_ARCHITECTURES.x64, args: [arg] };
        const expected = expectedValue(evaluateFilter(filter, 'x64', data));
        expect(runBpf(program.bytes, encodeSyscallData(data)).value, `${arg}`).toBe(expected);
      }
    }
  });

  it('refuses a program that the kernel would refuse for its length', () => {
    const values = Array.from({ length: 4096 }, (_, index) => index);
    const filter = filterOf({ syscall: 'read', when: [equals(0, ...values)], action: refuseWith('EPERM') });
    expect(() => assembleFilter(filter, 'x64')).toThrow(RangeError);
  });

  it.each<[string, SeccompRule[]]>([
    ['a name that no architecture has', [{ syscall: 'raed', when: [], action: ALLOW }]],
    ['a name from the prototype', [{ syscall: 'toString', when: [], action: ALLOW }]],
    ['a condition without values', [{ syscall: 'read', when: [equals(0)], action: ALLOW }]],
    ['a negative value', [{ syscall: 'read', when: [equals(0, -1)], action: ALLOW }]],
    ['a value over 32 bits', [{ syscall: 'read', when: [equals(0, 2 ** 32)], action: ALLOW }]],
    ['a value outside its mask', [{ syscall: 'read', when: [{ ...equals(0, 2), mask: 1 }], action: ALLOW }]],
    [
      'a rule that can never decide',
      [
        { syscall: 'read', when: [], action: ALLOW },
        { syscall: 'read', when: [equals(0, 1)], action: KILL_PROCESS },
      ],
    ],
  ])('refuses %s', (_, rules) => {
    expect(() => assembleFilter(filterOf(...rules), 'x64')).toThrow(RangeError);
  });

  it('leaves out rules for calls that the architecture lacks', () => {
    const filter = filterOf({ syscall: 'iopl', when: [], action: refuseWith('EPERM') });
    expect(assembleFilter(filter, 'arm64').length).toBeLessThan(assembleFilter(filter, 'x64').length);
  });
});
