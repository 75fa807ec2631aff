const LEFT_OUT = '\n[... left out ...]\n';

/**
 * Text of at most so many UTF-16 units, so never more characters either: its beginning and its end with a line between them
 * that says so, or only its beginning where there is no room for that. No character is cut in half.
 */
function shortened(text: string, most: number): string {
  if (text.length <= most) return text;
  const room = most - LEFT_OUT.length;
  if (room < 2 * LEFT_OUT.length) return beginning(text, most);
  const tail = Math.floor(room / 2);
  // Of a pair, the second half means nothing without the first.
  const end = text.slice(text.length - tail).replace(/^[\udc00-\udfff]/, '');
  return `${beginning(text, room - tail)}${LEFT_OUT}${end}`;
}

const beginning = (text: string, most: number) => text.slice(0, most).replace(/[\ud800-\udbff]$/, '');

/** Two texts that share a room: each gets half at least, and what the other leaves. */
export function shortenedTogether(first: string, second: string, most: number): readonly [string, string] {
  const forSecond = Math.min(second.length, Math.max(Math.floor(most / 2), most - first.length));
  const end = shortened(second, forSecond);
  return [shortened(first, most - end.length), end];
}
