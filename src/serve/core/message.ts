const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

// A byte order mark stays, and is then no JSON.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** What a line says, or why it says nothing; `undefined`: it is blank. */
type ReadMessage =
  | { readonly value: unknown }
  | { readonly problem: string; readonly kind: 'unreadable' | 'invalid' }
  | undefined;

/** Reads a line with objects and arrays at most `depth` deep. A problem quotes nothing of what was sent. */
export function readMessage(line: Buffer, depth: number): ReadMessage {
  const { deepest, keys } = shapeOf(line, depth);
  if (deepest > depth)
    return { kind: 'invalid', problem: `a message has objects and arrays more than ${depth} deep` };
  try {
    const text = utf8.decode(line);
    if (/^\s*$/.test(text)) return undefined;
    const value: unknown = JSON.parse(text);
    // Another parser might take the first of two members of one name, and judge something else than what runs.
    if (countKeys(value) !== keys) return { kind: 'invalid', problem: 'a key is there twice' };
    return { value };
  } catch {
    return { kind: 'unreadable', problem: 'a line is not JSON in UTF-8' };
  }
}

/** How deep a JSON text is, and how many keys it has. Looks at no more than it must: `depth` is enough to say no. */
function shapeOf(json: Buffer, depth: number): { readonly deepest: number; readonly keys: number } {
  let now = 0;
  let deepest = 0;
  let keys = 0;
  for (let at = 0; at < json.length && deepest <= depth; at += 1) {
    switch (json[at]) {
      case QUOTE:
        at = endOfString(json, at);
        break;
      case COLON:
        keys += 1;
        break;
      case 0x5b:
      case 0x7b:
        now += 1;
        deepest = Math.max(deepest, now);
        break;
      case 0x5d:
      case 0x7d:
        now -= 1;
    }
  }
  return { deepest, keys };
}

/** Where the string that begins there ends; the end of it all, if it does not. */
function endOfString(json: Buffer, start: number): number {
  for (let from = start + 1; ; ) {
    const end = json.indexOf(QUOTE, from);
    if (end === -1) return json.length;
    let escapes = 0;
    while (json[end - 1 - escapes] === BACKSLASH) escapes += 1;
    if (escapes % 2 === 0) return end;
    from = end + 1;
  }
}

function countKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const members: readonly unknown[] = Array.isArray(value) ? value : Object.values(value);
  const within = members.reduce((sum: number, member) => sum + countKeys(member), 0);
  return Array.isArray(value) ? within : members.length + within;
}
