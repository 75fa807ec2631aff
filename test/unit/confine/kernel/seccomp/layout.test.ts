import { describe, expect, it } from 'vitest';
import {
  encodeInstructions,
  layOut,
  type SymbolicInstruction,
} from '../../../../../src/confine/kernel/seccomp/layout.ts';
import { encodeSyscallData, runBpf } from '../../../../support/bpf-interpreter.ts';

const returning = (value: number): SymbolicInstruction => ({ kind: 'return', value });
const filler = (count: number): readonly SymbolicInstruction[] =>
  Array.from({ length: count }, () => returning(99));

/** Which of the two places a branch on "call number is 1" leads to. */
function outcomes(program: readonly SymbolicInstruction[]): readonly number[] {
  const bytes = encodeInstructions(layOut(program));
  return [1, 0].map((number) => {
    const data = encodeSyscallData({ number, architecture: 0, args: [] });
    return runBpf(bytes, data).value;
  });
}

describe('layOut', () => {
  const load: SymbolicInstruction = { kind: 'load', offset: 0 };
  const distances = [0, 1, 100, 253, 254, 255, 256, 257, 600];

  it.each(distances.flatMap((near) => distances.map((far) => [near, far] as const)))(
    'reaches both sides of a branch over %i and %i more instructions',
    (near, far) => {
      const places: readonly SymbolicInstruction[] = [
        ...filler(near),
        { kind: 'label', label: 1 },
        returning(11),
        ...filler(far),
        { kind: 'label', label: 2 },
        returning(22),
      ];
      const branch = { kind: 'branch', compare: 'jeq', k: 1 } as const;
      expect(outcomes([load, { ...branch, onTrue: 1, onFalse: 2 }, ...places])).toEqual([11, 22]);
      expect(outcomes([load, { ...branch, onTrue: 2, onFalse: 1 }, ...places])).toEqual([22, 11]);
      const first = near === 0 ? 11 : 99;
      expect(outcomes([load, { ...branch, onTrue: 'next', onFalse: 2 }, ...places])).toEqual([first, 22]);
      expect(outcomes([load, { ...branch, onTrue: 2, onFalse: 'next' }, ...places])).toEqual([22, first]);
    },
  );

  it('keeps branches right that only become too long because others grew', () => {
    const chain = Array.from({ length: 200 }, (): SymbolicInstruction => {
      return { kind: 'branch', compare: 'jeq', k: 1, onTrue: 1, onFalse: 'next' };
    });
    const program = [load, ...chain, ...filler(150), { kind: 'label', label: 1 } as const, returning(11)];
    expect(outcomes(program)).toEqual([11, 99]);
  });

  it('refuses a jump back and a jump to nowhere', () => {
    const jump: SymbolicInstruction = { kind: 'goto', target: 1 };
    expect(() => layOut([{ kind: 'label', label: 1 }, jump])).toThrow(RangeError);
    expect(() => layOut([jump])).toThrow(RangeError);
  });
});
