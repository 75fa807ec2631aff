import type { Span, Word } from '../../model/index.ts';

/**
 * Which variables of a script can only hold numbers. Bash evaluates the *content* of a variable inside arithmetic, so
 * `x='a[$(rm y)]'; echo $((x))` runs rm: a name is accepted there only if everything that the script assigns to it is
 * a number, and if one of these assignments has surely been made before, in the same shell: what the name holds
 * otherwise comes from the environment, or from an earlier command of the session.
 */
export interface Numbers {
  readonly assigned: Set<string>;
  /** Names to which something else than a number is, or may be, assigned. */
  readonly tainted: Set<string>;
  readonly arrays: Set<string>;
  /** Names that are set by other means than `name=value`: loops, `read`, `unset`, `${name:=value}`, arithmetic. */
  readonly implicit: Set<string>;
  readonly needed: {
    readonly name: string;
    readonly span: Span;
    readonly why: Why;
    readonly sure: ReadonlySet<string>;
  }[];
  /** Variables that bash evaluates while it assigns to them, and that may get something else than a number. */
  readonly evaluated: { readonly name: string; readonly span: Span | undefined }[];
  /** Variables whose value cannot have been changed. */
  readonly trusted: ReadonlySet<string>;
  /** Names that have surely got a number where the text is read at the moment. */
  sure: ReadonlySet<string>;
  /** `local` does nothing elsewhere. */
  inFunction: boolean;
  /** An error that ends the line, but not the script, is possible in the line that is read. */
  fallible: boolean;
  /** Such an error is possible in every line from here on. */
  alwaysFallible: boolean;
}

/** Why it matters that a variable holds a number. */
type Why = 'arithmetic' | 'unquoted';

/** `inSession`: the shell has run other texts before. */
export function createNumbers(inSession = false): Numbers {
  return {
    assigned: new Set(),
    tainted: new Set(),
    arrays: new Set(),
    implicit: new Set(),
    needed: [],
    evaluated: [],
    trusted: inSession ? READONLY_NUMBERS : NUMERIC_VARIABLES,
    sure: new Set(),
    inFunction: false,
    fallible: false,
    alwaysFallible: false,
  };
}

/** Without leading zeros: 08 is an error in arithmetic. */
const NUMBER = /^[-+]?(?:0|[1-9][0-9]*)$/;
/** Substitutions that give numbers; no function can have these names. */
const COUNTING = /^"?\$\((?:seq(?: -?[0-9]+){1,3}|nproc|date \+%s|wc -[lcw] < ?[A-Za-z0-9_./-]+)\)"?$/;
/** Parameters that always expand to a number or to nothing. */
const NUMERIC_PARAMETERS = new Set(['?', '#', '$', '!']);
/** Numbers that cannot be assigned to. */
const READONLY_NUMBERS: ReadonlySet<string> = new Set(['UID', 'EUID', 'PPID']);
/** Variables that a new bash keeps numeric for as long as nothing assigns to them, or unsets them. */
const NUMERIC_VARIABLES: ReadonlySet<string> = new Set([
  ...READONLY_NUMBERS,
  ...['RANDOM', 'SECONDS', 'LINENO', 'BASHPID', 'SRANDOM'],
]);
/** Variables with the integer attribute: bash evaluates what is assigned to them, and runs the code in it. */
const EVALUATED =
  /^(?:S?RANDOM|SECONDS|OPTIND|OPTERR|HISTCMD|LINENO|BASHPID|BASH_SUBSHELL|BASH_MONOSECONDS|EPOCHSECONDS|EPOCHREALTIME|COMP_\w+|UID|EUID|PPID)$/;
/** Assigning to them ends the line. */
const READONLY = /^(?:UID|EUID|PPID|BASHOPTS|SHELLOPTS|BASH_VERSINFO)$/;

/** Notes `name=value`; whether it has surely happened is said by `noteDone`. */
export function noteAssignment(
  numbers: Numbers,
  name: string,
  value: Word | undefined,
  span: Span | undefined = value?.span,
): void {
  if (value !== undefined && holdsNumber(value)) numbers.assigned.add(name);
  else numbers.tainted.add(name);
  if (EVALUATED.test(name) && !NUMBER.test(value?.value ?? '')) numbers.evaluated.push({ name, span });
  if (READONLY.test(name)) numbers.fallible = true;
}

/** Notes that what was assigned to `name` has surely been assigned from here on. */
export function noteDone(numbers: Numbers, name: string): void {
  numbers.sure = new Set([...numbers.sure, name]);
}

/** Reads something that may not run, or that runs in a shell of its own: what it assigns is not sure afterwards. */
export function apart<T>(numbers: Numbers, read: () => T): T {
  const before = numbers.sure;
  const result = read();
  numbers.sure = before;
  return result;
}

/** What is sure if it is sure in each of several cases. */
export function inEach(cases: readonly ReadonlySet<string>[]): ReadonlySet<string> {
  const [first, ...others] = cases;
  return new Set([...(first ?? [])].filter((name) => others.every((other) => other.has(name))));
}

/** Notes that `name` is set, or unset, by other means than `name=value`. */
export function noteImplicit(numbers: Numbers, name: string): void {
  numbers.implicit.add(name);
  numbers.tainted.add(name);
}

/** Notes that `name` gets text that is not known: from `read`, `getopts`, `mapfile` or `${name:=value}`. */
export function noteInput(numbers: Numbers, name: string, span?: Span): void {
  noteImplicit(numbers, name);
  if (EVALUATED.test(name)) numbers.evaluated.push({ name, span });
}

/** Notes `name=(…)` and what else makes arrays. */
export function noteArray(numbers: Numbers, name: string, span?: Span): void {
  numbers.arrays.add(name);
  if (EVALUATED.test(name)) numbers.evaluated.push({ name, span });
}

/** Notes that arithmetic assigns to `name`: the result is a number. */
export function noteArithmeticAssignment(numbers: Numbers, name: string): void {
  numbers.assigned.add(name);
  numbers.implicit.add(name);
  if (READONLY.test(name)) numbers.fallible = true;
  noteDone(numbers, name);
}

/** Notes that `name` is evaluated as arithmetic, and must be a number when everything is read. */
export function needNumber(numbers: Numbers, name: string, span: Span, why: Why = 'arithmetic'): void {
  if (NUMERIC_PARAMETERS.has(name)) return;
  numbers.needed.push({ name, span, why, sure: numbers.sure });
}

function holdsNumber(word: Word): boolean {
  if (word.value !== undefined) return NUMBER.test(word.value);
  const [only, ...others] = word.parts;
  if (only === undefined || others.length > 0) return false;
  if (only.kind === 'command-substitution') return COUNTING.test(word.source);
  if (only.kind === 'arithmetic') return true;
  if (only.kind === 'brace') return /^\{(?:0|[1-9][0-9]*)(?:\.\.(?:0|[1-9][0-9]*)){1,2}\}$/.test(only.text);
  return only.kind === 'parameter' && only.plain && NUMERIC_PARAMETERS.has(only.name);
}
