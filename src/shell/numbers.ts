import type { Span, Word } from '../model/command-line.ts';
import { type Report, refuse } from './report.ts';

/**
 * Which variables of a script can only hold numbers. Bash evaluates the *content* of a variable inside arithmetic, so
 * `x='a[$(rm y)]'; echo $((x))` runs rm: a name is accepted there only if everything that the script assigns to it is
 * a number, and if it assigns to it at all.
 */
export interface Numbers {
  readonly assigned: Set<string>;
  /** Names to which something else than a number is, or may be, assigned. */
  readonly tainted: Set<string>;
  readonly arrays: Set<string>;
  /** Names that are set by other means than `name=value`: loops, `read`, `unset`, `${name:=value}`, arithmetic. */
  readonly implicit: Set<string>;
  readonly needed: { readonly name: string; readonly span: Span; readonly why: Why }[];
}

/** Why it matters that a variable holds a number. */
type Why = 'arithmetic' | 'unquoted';

export function createNumbers(): Numbers {
  return { assigned: new Set(), tainted: new Set(), arrays: new Set(), implicit: new Set(), needed: [] };
}

const NUMBER = /^[-+]?[0-9]+$/;
/** Substitutions that give numbers; no function can have these names. */
const COUNTING = /^"?\$\((?:seq(?: -?[0-9]+){1,3}|nproc|date \+%s|wc -[lcw] < ?[A-Za-z0-9_./-]+)\)"?$/;
/** Parameters that always expand to a number or to nothing. */
const NUMERIC_PARAMETERS = new Set(['?', '#', '$', '!']);
/** Variables that bash keeps numeric for as long as the script does not assign to them. */
const NUMERIC_VARIABLES = new Set([
  'RANDOM',
  'SECONDS',
  'LINENO',
  'UID',
  'EUID',
  'PPID',
  'BASHPID',
  'SRANDOM',
]);

/** Notes `name=value`. */
export function noteAssignment(numbers: Numbers, name: string, value: Word | undefined): void {
  if (value !== undefined && holdsNumber(value)) numbers.assigned.add(name);
  else numbers.tainted.add(name);
}

/** Notes that `name` is set, or unset, by other means than `name=value`. */
export function noteImplicit(numbers: Numbers, name: string): void {
  numbers.implicit.add(name);
  numbers.tainted.add(name);
}

/** Notes that arithmetic assigns to `name`: the result is a number. */
export function noteArithmeticAssignment(numbers: Numbers, name: string): void {
  numbers.assigned.add(name);
  numbers.implicit.add(name);
}

/** Notes that `name` is evaluated as arithmetic, and must be a number when everything is read. */
export function needNumber(numbers: Numbers, name: string, span: Span, why: Why = 'arithmetic'): void {
  if (NUMERIC_PARAMETERS.has(name)) return;
  numbers.needed.push({ name, span, why });
}

function holdsNumber(word: Word): boolean {
  if (word.value !== undefined) return NUMBER.test(word.value);
  const [only, ...others] = word.parts;
  if (only === undefined || others.length > 0) return false;
  if (only.kind === 'command-substitution') return COUNTING.test(word.source);
  if (only.kind === 'arithmetic') return true;
  if (only.kind === 'brace') return /^\{[0-9]+\.\.[0-9]+(\.\.[0-9]+)?\}$/.test(only.text);
  return only.kind === 'parameter' && only.plain && NUMERIC_PARAMETERS.has(only.name);
}

/** Reports the names that were set, and refuses if a name that is evaluated as arithmetic may hold anything but a number. */
export function settleNumbers(numbers: Numbers, report: Report): void {
  for (const name of numbers.implicit) report.variables.add(name);
  for (const { name, span, why } of numbers.needed) {
    const isNumber = numbers.assigned.has(name) || NUMERIC_VARIABLES.has(name);
    if (isNumber && !numbers.tainted.has(name) && !numbers.arrays.has(name)) continue;
    const message =
      why === 'unquoted'
        ? `$${name} could be several words, and one of them an operator: quote it.`
        : `${name} is evaluated as arithmetic and could hold code: only a variable to which this script assigns nothing but numbers is understood there.`;
    refuse(report, why === 'unquoted' ? 'builtin' : 'construct', message, span);
    return;
  }
}
