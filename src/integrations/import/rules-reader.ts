/** What stands in a rules file: texts, numbers, lists. */
export type Literal = string | number | boolean | null | readonly Literal[];

/** A statement of a rules file. */
export interface Statement {
  /** From 1 on. */
  readonly line: number;
  readonly text: string;
  /** A call with named arguments that are literals; `undefined`: it is something else. */
  readonly call: { readonly name: string; readonly args: Readonly<Record<string, Literal>> } | undefined;
}

const TOKEN =
  /\s+|#[^\n]*|(?<word>[A-Za-z_]\w*)|(?<number>\d+)|(?<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(?<sign>[()[\],=])|(?<other>[\s\S])/gy;

interface Token {
  readonly kind: 'word' | 'number' | 'text' | 'sign' | 'other';
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  for (const match of text.matchAll(TOKEN)) {
    const groups = match.groups ?? {};
    const kind = (['word', 'number', 'text', 'sign', 'other'] as const).find(
      (name) => groups[name] !== undefined,
    );
    if (kind !== undefined)
      tokens.push({ kind, text: match[0], start: match.index, end: match.index + match[0].length });
  }
  return tokens;
}

/**
 * Reads the literal subset of Starlark that rules of Codex are written in: `name(key = literal, …)`. Whatever else stands
 * there becomes a statement without a call, to be listed as not understood.
 */
export function readRules(text: string): readonly Statement[] {
  const tokens = tokensOf(text);
  const statements: Statement[] = [];
  let at = 0;
  let [line, counted] = [1, 0];
  while (at < tokens.length) {
    const end = endOfStatement(text, tokens, at);
    const own = tokens.slice(at, end);
    const [first, last] = [own[0], own.at(-1)];
    if (first === undefined || last === undefined) break;
    line += text.slice(counted, first.start).split('\n').length - 1;
    counted = first.start;
    statements.push({
      line,
      text: text.slice(first.start, last.end),
      call: readCall(own),
    });
    at = end;
  }
  return statements;
}

/** A statement goes to the end of its line, or of the line that closes its last parenthesis. */
function endOfStatement(text: string, tokens: readonly Token[], from: number): number {
  let depth = 0;
  for (let index = from; index < tokens.length; index += 1) {
    const token = tokens[index];
    if (token === undefined) break;
    if (token.text === '(' || token.text === '[') depth += 1;
    if (token.text === ')' || token.text === ']') depth -= 1;
    const next = tokens[index + 1];
    if (depth <= 0 && (next === undefined || text.slice(token.end, next.start).includes('\n')))
      return index + 1;
  }
  return tokens.length;
}

function readCall(tokens: readonly Token[]): Statement['call'] {
  let at = 0;
  const sign = (text: string): boolean => {
    const found = tokens[at]?.kind === 'sign' && tokens[at]?.text === text;
    if (found) at += 1;
    return found;
  };
  const word = (): string | undefined => {
    const token = tokens[at];
    if (token?.kind !== 'word') return undefined;
    at += 1;
    return token.text;
  };
  /** `undefined`: it is none. */
  const literal = (level = 0): Literal | undefined => {
    if (level > 8) return undefined;
    if (sign('[')) {
      const items: Literal[] = [];
      while (!sign(']')) {
        const item = literal(level + 1);
        if (item === undefined) return undefined;
        items.push(item);
        if (!sign(',') && tokens[at]?.text !== ']') return undefined;
      }
      return items;
    }
    const token = tokens[at];
    at += 1;
    if (token?.kind === 'text') return textOf(token.text);
    if (token?.kind === 'number') return Number(token.text);
    return token?.kind === 'word' ? NAMED.get(token.text) : undefined;
  };

  const name = word();
  if (name === undefined || !sign('(')) return undefined;
  const args = new Map<string, Literal>();
  while (!sign(')')) {
    const key = word();
    if (key === undefined || !sign('=') || args.has(key)) return undefined;
    const value = literal();
    if (value === undefined) return undefined;
    args.set(key, value);
    if (!sign(',') && tokens[at]?.text !== ')') return undefined;
  }
  return at === tokens.length ? { name, args: Object.fromEntries(args) } : undefined;
}

const NAMED: ReadonlyMap<string, Literal> = new Map([
  ['True', true],
  ['False', false],
  ['None', null],
]);

const ESCAPES: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  '\\': '\\',
  '"': '"',
  "'": "'",
};

/** `undefined`: an escape that is not known. */
function textOf(token: string): string | undefined {
  let isKnown = true;
  const text = token.slice(1, -1).replace(/\\([\s\S])/g, (_, escaped: string) => {
    const meant = Object.hasOwn(ESCAPES, escaped) ? ESCAPES[escaped] : undefined;
    if (meant === undefined) isKnown = false;
    return meant ?? '';
  });
  return isKnown ? text : undefined;
}
