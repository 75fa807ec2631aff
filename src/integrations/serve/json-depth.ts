const QUOTE = 0x22;
const BACKSLASH = 0x5c;

/** Whether objects and arrays of a JSON text are in each other more than `most` deep. Looks at no more than it must. */
export function isDeeperThan(json: Buffer, most: number): boolean {
  let depth = 0;
  for (let at = 0; at < json.length; at += 1) {
    switch (json[at]) {
      case QUOTE:
        at = endOfString(json, at);
        break;
      case 0x5b:
      case 0x7b:
        depth += 1;
        if (depth > most) return true;
        break;
      case 0x5d:
      case 0x7d:
        depth -= 1;
    }
  }
  return false;
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
