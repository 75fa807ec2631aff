import { BPF_OPCODES, type BpfComparison, type BpfInstruction } from './bpf.ts';

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
