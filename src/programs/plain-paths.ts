import type { Argument, PathUse } from './behaviour.ts';
import { argumentOf } from './options.ts';

/** Arguments that are paths, all used alike. */
export function plainPaths(
  operands: readonly (Argument | undefined)[],
  effect: PathUse['effect'],
): readonly PathUse[] {
  return operands.flatMap((argument) => (argument === undefined ? [] : [{ argument, effect }]));
}

/** The first operands are read, the one at `index` is written. */
export function writtenAt(operands: readonly Argument[], index: number): readonly PathUse[] {
  return operands.map((argument, at) => ({ argument, effect: at === index ? 'writes' : 'reads' }));
}

/** A path that stands inside a script, as an argument of its own. */
export function pathInside({ word }: Argument, path: string): Argument {
  return argumentOf({ ...word, value: path, parts: [{ kind: 'literal', text: path }], source: path });
}

const SINKS: ReadonlySet<string> = new Set(['-', '/dev/null', '/dev/stdout', '/dev/stderr', '/dev/tty']);

/** True for targets that keep nothing. */
export function isSink(path: string): boolean {
  return SINKS.has(path);
}
