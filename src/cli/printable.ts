/** What is not to be seen on a terminal, or changes how the rest is seen: controls, directions, line breaks. */
const UNSEEN = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** A text as one line in which everything can be seen. */
export function printable(text: string): string {
  return text.replace(UNSEEN, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`);
}
