import { ALLOW, actionValue, type SeccompAction } from './action.ts';
import { SECCOMP_DATA } from './bpf.ts';
import type { ArgumentCondition, FullWidthCondition, LowWordCondition, SeccompRule } from './ir.ts';
import type { JumpTarget, Label, SymbolicInstruction } from './layout.ts';

const WORD = 0xffff_ffff;

/** Code that judges one system call by its arguments: runs when its number is known, ends in a return. */
export function compileRules(
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

function returning(action: SeccompAction): SymbolicInstruction {
  return { kind: 'return', value: actionValue(action) };
}

function highWord(value: bigint): number {
  return Number(value >> 32n);
}

function lowWord(value: bigint): number {
  return Number(value & BigInt(WORD));
}
