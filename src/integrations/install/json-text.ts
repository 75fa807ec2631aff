/** A value in a JSON text, and where it stands. */
export type JsonNode =
  | {
      readonly kind: 'object';
      readonly start: number;
      readonly end: number;
      readonly members: readonly JsonMember[];
    }
  | {
      readonly kind: 'array';
      readonly start: number;
      readonly end: number;
      readonly items: readonly JsonNode[];
    }
  | { readonly kind: 'scalar'; readonly start: number; readonly end: number };

/** A member of an object; `start` is where its name begins. */
export interface JsonMember {
  readonly name: string;
  readonly start: number;
  readonly value: JsonNode;
}

/**
 * Where everything stands in a text, so that it can be changed in one place and stays as it is in all others.
 * The text has to be JSON: the caller has parsed it.
 */
export function readJsonText(text: string): JsonNode {
  let at = 0;
  const skip = () => {
    while (/[\s]/.test(text[at] ?? '')) at += 1;
  };
  const string = (): string => {
    const start = at;
    for (at += 1; text[at] !== '"'; at += 1) if (text[at] === '\\') at += 1;
    at += 1;
    return JSON.parse(text.slice(start, at));
  };
  /** The members between two brackets, each read by `one`. */
  const list = (close: string, one: () => void): void => {
    at += 1;
    for (skip(); text[at] !== close; skip()) {
      if (text[at] === ',') {
        at += 1;
        skip();
      }
      one();
    }
    at += 1;
  };
  const value = (): JsonNode => {
    skip();
    const start = at;
    if (text[at] === '{') {
      const members: JsonMember[] = [];
      list('}', () => {
        const from = at;
        const name = string();
        skip();
        at += 1;
        members.push({ name, start: from, value: value() });
      });
      return { kind: 'object', start, end: at, members };
    }
    if (text[at] === '[') {
      const items: JsonNode[] = [];
      list(']', () => items.push(value()));
      return { kind: 'array', start, end: at, items };
    }
    if (text[at] === '"') string();
    else while (/[^\s,\]}]/.test(text[at] ?? ',')) at += 1;
    return { kind: 'scalar', start, end: at };
  };
  return value();
}

/** The indentation of one step, as the text has it. */
export function indentationOf(text: string): string {
  return /\n([ \t]+)\S/.exec(text)?.[1] ?? '  ';
}

/** Something between two brackets. */
interface Span {
  readonly start: number;
  readonly end: number;
}

/** The text without one of the entries of a list, with its comma; empty brackets if it was the only one. */
export function withoutEntry(text: string, around: Span, entries: readonly Span[], index: number): string {
  const entry = entries[index];
  if (entry === undefined) return text;
  const [before, after] = [entries[index - 1], entries[index + 1]];
  if (after !== undefined) return text.slice(0, entry.start) + text.slice(after.start);
  if (before !== undefined) return text.slice(0, before.end) + text.slice(entry.end);
  // What stood between empty brackets stays.
  const rest = entry.start === around.start + 1 ? entry.end : around.end - 1;
  return text.slice(0, around.start + 1) + text.slice(rest);
}

/**
 * True if the only entry was put between brackets that were there already, with nothing between them: `withEntry` then
 * begins no line, which neither a program that writes JSON nor we ourselves would do with lists of our own.
 */
export function wasEmpty(text: string, around: Span, entries: readonly Span[]): boolean {
  const [only, more] = entries;
  if (only === undefined || more !== undefined) return false;
  return only.start === around.start + 1 && text.slice(only.start, only.end).includes('\n');
}

/** The text with one more entry at the end of a list. `depth`: how many brackets are around the entry. */
export function withEntry(
  text: string,
  around: Span,
  entries: readonly Span[],
  entry: string,
  depth: number,
): string {
  const step = indentationOf(text);
  const indented = entry.replaceAll('\n', `\n${step.repeat(depth)}`);
  const last = entries.at(-1);
  if (last !== undefined)
    return `${text.slice(0, last.end)},\n${step.repeat(depth)}${indented}${text.slice(last.end)}`;
  if (depth > 1) return text.slice(0, around.start + 1) + indented + text.slice(around.start + 1);
  const inner = `\n${step.repeat(depth)}${indented}\n${step.repeat(depth - 1)}`;
  return text.slice(0, around.start + 1) + inner + text.slice(around.end - 1);
}
