/**
 * Reads what `export -p` of bash writes: `declare -x NAME="value"` or `export NAME=$'value'`, one after the other.
 * `undefined`: it is something else.
 */
export function readDeclarations(text: string): Readonly<Record<string, string>> | undefined {
  const found: Record<string, string> = {};
  let at = 0;
  while (at < text.length) {
    const head = /^(?:declare -[A-Za-z-]+|export(?: -[A-Za-z]+)?) ([A-Za-z_][A-Za-z0-9_]*)(=?)/.exec(
      text.slice(at, at + 4096),
    );
    if (head === null) return undefined;
    const [whole, name = '', assigned] = head;
    at += whole.length;
    if (assigned === '=') {
      const value = readValue(text, at);
      if (value === undefined) return undefined;
      // Arrays are not passed to programs.
      if (value.text !== undefined) found[name] = value.text;
      at = value.end;
    }
    if (text[at] !== '\n') return undefined;
    at += 1;
  }
  return found;
}

interface Value {
  /** `undefined`: an array. */
  readonly text: string | undefined;
  readonly end: number;
}

function readValue(text: string, start: number): Value | undefined {
  if (text[start] === '(') return readArray(text, start);
  if (text[start] === '"') return readDoubleQuoted(text, start);
  if (text.startsWith("$'", start)) return readAnsiQuoted(text, start);
  return undefined;
}

function readArray(text: string, start: number): Value | undefined {
  for (let at = start + 1; at < text.length; ) {
    if (text[at] === ')') return { text: undefined, end: at + 1 };
    if (text[at] === '"' || text.startsWith("$'", at)) {
      const element = readValue(text, at);
      if (element === undefined) return undefined;
      at = element.end;
    } else at += 1;
  }
  return undefined;
}

function readDoubleQuoted(text: string, start: number): Value | undefined {
  let value = '';
  for (let at = start + 1; at < text.length; at += 1) {
    const character = text[at];
    if (character === '"') return { text: value, end: at + 1 };
    if (character === '\\' && /["\\$`]/.test(text[at + 1] ?? '')) at += 1;
    value += text[at] ?? '';
  }
  return undefined;
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  e: '\x1b',
  E: '\x1b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  "'": "'",
  '"': '"',
  '\\': '\\',
  '?': '?',
};

function readAnsiQuoted(text: string, start: number): Value | undefined {
  const bytes: Buffer[] = [];
  for (let at = start + 2; at < text.length; at += 1) {
    const character = text[at] ?? '';
    if (character === "'") return { text: Buffer.concat(bytes).toString('utf8'), end: at + 1 };
    if (character !== '\\') {
      bytes.push(Buffer.from(character, 'utf8'));
      continue;
    }
    const octal = /^[0-7]{1,3}/.exec(text.slice(at + 1, at + 4))?.[0];
    if (octal !== undefined) {
      bytes.push(Buffer.from([Number.parseInt(octal, 8) & 255]));
      at += octal.length;
      continue;
    }
    const plain = ESCAPES[text[at + 1] ?? ''];
    if (plain === undefined) return undefined;
    bytes.push(Buffer.from(plain));
    at += 1;
  }
  return undefined;
}
