/**
 * What a person would not see, or not as what it is: control characters, format characters (bidirectional ones among
 * them), everything that Unicode calls ignorable, private and unassigned characters, halves of pairs, every space but
 * the space, marks that sit on no letter, and a backslash that looks like the beginning of an escape of ours.
 */
const UNSEEN =
  /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{1D159}]|(?! )\p{Zs}|(?<!\p{L}\p{M}?)\p{M}|\\(?=u\{)/gu;

const escapeOf = (character: string) => `\\u{${character.codePointAt(0)?.toString(16)}}`;

/**
 * Text for people: what they would not see becomes `\u{202e}`. Different texts stay different: a backslash that is
 * followed by `u{` is itself shown as `\u{5c}`. With `keepLineBreaks`, line feeds stay as they are.
 */
export function visibleText(text: string, options: { readonly keepLineBreaks?: boolean } = {}): string {
  const keep = options.keepLineBreaks === true ? '\n' : undefined;
  return text.replace(UNSEEN, (character) => (character === keep ? character : escapeOf(character)));
}
