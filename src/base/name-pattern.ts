/** One character of a name, or as many as there are. */
type Token = '*' | ((letter: string) => boolean);

/** A pattern of one name of a file, ready to be compared. */
export type NamePattern = readonly (readonly Token[])[];

/** More alternatives than this are no pattern that a person writes. */
const MOST_ALTERNATIVES = 256;

/**
 * Reads a pattern of one name, as in .gitignore, and braces: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`, `\` before a character that
 * stands for itself. A text: what is wrong with it. What is no pattern is refused, and never taken by its letters: a file that
 * was to be matched must not be missed without a word.
 */
export function readNamePattern(text: string): NamePattern | string {
  const alternatives = withoutBraces(text);
  if (typeof alternatives === 'string') return alternatives;
  const read = alternatives.map(tokensOf);
  const problem = read.find((one) => typeof one === 'string');
  return typeof problem === 'string' ? problem : (read as NamePattern);
}

/** Whether a name is one of a pattern. Capital letters, and the ways to write an accent, are no difference. */
export function matchesName(pattern: NamePattern, name: string): boolean {
  const letters = [...folded(name)];
  return pattern.some((tokens) => matchesAll(tokens, '*', letters, (token, letter) => token(letter)));
}

/**
 * Whether items fit a pattern in which a star stands for any number of them. Takes no longer than the product of both lengths:
 * the last star alone is tried again.
 */
export function matchesAll<Part, Star extends string, Item>(
  pattern: readonly Part[],
  star: Star,
  items: readonly Item[],
  fits: (part: Exclude<Part, Star>, item: Item) => boolean,
): boolean {
  const isStar = (part: unknown) => part === star;
  let [at, item, before, resumed] = [0, 0, -1, 0];
  while (item < items.length) {
    if (isStar(pattern[at])) {
      before = at;
      resumed = item;
      at += 1;
    } else if (at < pattern.length && fits(pattern[at] as Exclude<Part, Star>, items[item] as Item)) {
      at += 1;
      item += 1;
    } else if (before >= 0) {
      at = before + 1;
      resumed += 1;
      item = resumed;
    } else return false;
  }
  return pattern.slice(at).every(isStar);
}

const folded = (text: string) => text.normalize('NFC').toLowerCase();

function tokensOf(text: string): readonly Token[] | string {
  const letters = [...folded(text)];
  const tokens: Token[] = [];
  for (let at = 0; at < letters.length; at++) {
    const letter = letters[at] ?? '';
    if (letter === '*') tokens.push('*');
    else if (letter === '?') tokens.push(() => true);
    else if (letter === '[') {
      const list = listAt(letters, at);
      if (typeof list === 'string') return list;
      tokens.push(list.token);
      at = list.end;
    } else {
      const plain = letter === '\\' ? letters[++at] : letter;
      if (plain === undefined) return 'ends with a backslash';
      tokens.push((other) => other === plain);
    }
  }
  return tokens;
}

/** `[a-z]` or `[!a-z]`, which begins at `from`. */
function listAt(
  letters: readonly string[],
  from: number,
): { readonly token: Token; readonly end: number } | string {
  let at = from + 1;
  const isNegated = letters[at] === '!' || letters[at] === '^';
  if (isNegated) at += 1;
  const ranges: (readonly [string, string])[] = [];
  for (let isFirst = true; letters[at] !== ']' || isFirst; isFirst = false) {
    if (letters[at] === '[' && /[:.=]/.test(letters[at + 1] ?? ''))
      return 'has a class by name, such as [:digit:]';
    if (letters[at] === '\\') at += 1;
    const first = letters[at];
    if (first === undefined) return 'has a bracket that is not closed before the next slash';
    const isRange = letters[at + 1] === '-' && letters[at + 2] !== ']' && letters[at + 2] !== undefined;
    const last = isRange ? letters[at + (letters[at + 2] === '\\' ? 3 : 2)] : first;
    if (last === undefined || last < first) return 'has a range that ends before it begins';
    ranges.push([first, last]);
    at += isRange ? (letters[at + 2] === '\\' ? 4 : 3) : 1;
  }
  const token = (letter: string) =>
    ranges.some(([first, last]) => first <= letter && letter <= last) !== isNegated;
  return { token, end: at };
}

/** `{a,b}.c` as `a.c` and `b.c`; inner braces too. */
function withoutBraces(text: string): readonly string[] | string {
  const open = plainAt(text, '{', 0);
  const early = plainAt(text, '}', 0);
  if (open === -1) return early === -1 ? [text] : BRACES;
  if (early !== -1 && early < open) return BRACES;
  const commas: number[] = [];
  let depth = 0;
  for (let at = open; at < text.length; at++) {
    const letter = text[at];
    if (letter === '\\') at += 1;
    else if (letter === '{') depth += 1;
    else if (letter === ',' && depth === 1) commas.push(at);
    else if (letter === '}') depth -= 1;
    if (depth > 0) continue;
    if (commas.length === 0) return 'has braces that list nothing; {a,b} is a or b';
    const ends = [...commas, at];
    const all = ends.map((end, index) => {
      const begin = index === 0 ? open + 1 : (ends[index - 1] ?? 0) + 1;
      return withoutBraces(text.slice(0, open) + text.slice(begin, end) + text.slice(at + 1));
    });
    const problem = all.find((one) => typeof one === 'string');
    if (typeof problem === 'string') return problem;
    const alternatives = all.flat();
    return alternatives.length > MOST_ALTERNATIVES ? 'stands for too many names' : alternatives;
  }
  return BRACES;
}

const BRACES = 'has a brace that is not closed before the next slash';

/** Where a character stands that no backslash comes before; -1: nowhere. */
function plainAt(text: string, wanted: string, from: number): number {
  for (let at = from; at < text.length; at++) {
    if (text[at] === '\\') at += 1;
    else if (text[at] === wanted) return at;
  }
  return -1;
}
