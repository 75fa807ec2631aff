/** Whatever is not seen as what it is: controls, directions, lone surrogates, separators, fillers, tags. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/gu;

/** The text with characters that cannot be seen, or that change how others are seen, written as `\u{hex}`. */
export function visibleText(text: string, keep = ''): string {
  return text.replace(UNSEEN, (character) =>
    keep.includes(character) ? character : `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
}

/** One line of at most so many characters, for text that others wrote. */
export function visibleLine(text: string, limit: number): string {
  // Cut before, so that the work is bounded, and after, as escapes are longer.
  const line = visibleText(text.trim().slice(0, limit + 2));
  if (line.length <= limit) return line;
  // Not between the halves of a pair.
  return `${line.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}
