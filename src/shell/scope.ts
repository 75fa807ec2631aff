import type { Span } from '../model/command-line.ts';
import type { Numbers } from './numbers.ts';

/** What holds for a command because of where it stands. */
export interface Scope {
  readonly background: boolean;
  readonly runBy: number | undefined;
  readonly place: Span | undefined;
  /** A shell looks the command up, so that builtins and functions count. */
  readonly inShell: boolean;
  readonly functions: ReadonlySet<string>;
  readonly numbers: Numbers;
  /** Runners around it. */
  readonly depth: number;
  /** A variable is set that changes what `cd` does. */
  readonly lost: boolean;
  /** Some command of the text, at whatever depth, may change the directory. */
  readonly moving: boolean;
}

/** What holds for a command that nothing stands around. */
export function outermost(inShell: boolean, numbers: Numbers): Scope {
  return {
    background: false,
    runBy: undefined,
    place: undefined,
    inShell,
    functions: new Set(),
    numbers,
    depth: 0,
    lost: false,
    moving: false,
  };
}

/** Variables that change what `cd` does. */
export const LOSING: ReadonlySet<string> = new Set(['CDPATH', 'HOME', 'PWD', 'OLDPWD']);

/** True if such a variable is set, also where eval, a loop or `read` assigns to it. */
export function isLost({ lost, numbers }: Scope): boolean {
  if (lost) return true;
  for (const name of LOSING) if (numbers.tainted.has(name) || numbers.assigned.has(name)) return true;
  return false;
}
