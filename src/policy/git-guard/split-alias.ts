/**
 * The words of an alias, as git splits it: quotes of both kinds, and a backslash before any character, also in double
 * quotes. Blanks at the ends, of which git makes an empty word, are nothing. Undefined: git refuses it, too.
 */
export function splitAlias(text: string): readonly string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  let quote: string | undefined;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at] ?? '';
    if (quote === undefined && /[ \t\n\v\f\r]/.test(character)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (quote === undefined && (character === '"' || character === "'")) {
      quote = character;
      word ??= '';
    } else if (character === quote) {
      quote = undefined;
    } else if (character === '\\' && quote !== "'") {
      at += 1;
      if (at >= text.length) return undefined;
      word = (word ?? '') + text[at];
    } else {
      word = (word ?? '') + character;
    }
  }
  if (quote !== undefined) return undefined;
  return word === undefined ? words : [...words, word];
}
