import { isSyscallName } from './architecture.ts';
import type { ArgumentCondition, SeccompFilter, SeccompLayer } from './ir.ts';

/**
 * Refuses a filter that cannot mean what its author meant.
 *
 * @throws RangeError on a system call name that no architecture has, a rule behind an unconditional one of the same
 *   layer (it could never decide), or a condition without values, with a value outside its mask or beyond its width.
 */
export function validateFilter(filter: SeccompFilter): void {
  for (const layer of filter.layers) validateLayer(layer);
}

function validateLayer(layer: SeccompLayer): void {
  const settled = new Set<string>();
  for (const rule of layer.rules) {
    const where = `seccomp layer ${layer.name}, system call ${rule.syscall}`;
    if (!isSyscallName(rule.syscall)) throw new RangeError(`${where}: no architecture has it`);
    if (settled.has(rule.syscall)) throw new RangeError(`${where}: rule behind an unconditional one`);
    if (rule.when.length === 0) settled.add(rule.syscall);
    for (const condition of rule.when) validateCondition(condition, where);
  }
}

function validateCondition(condition: ArgumentCondition, where: string): void {
  if (condition.values.length === 0) throw new RangeError(`${where}: condition without values`);
  const mask = BigInt(condition.mask);
  const limit = 1n << BigInt(condition.width);
  if (mask <= 0n || mask >= limit) throw new RangeError(`${where}: mask out of range`);
  for (const value of condition.values) {
    // A negative number has infinitely many high bits as a bigint, so this refuses it as well.
    if ((BigInt(value) & ~mask) !== 0n) throw new RangeError(`${where}: value ${value} outside the mask`);
  }
}
