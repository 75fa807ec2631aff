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
 * followed by `u{` is itself shown as `\u{5c}`. Characters in `keep` stay as they are.
 */
export function visibleText(text: string, { keep = '' }: { readonly keep?: string } = {}): string {
  return text.replace(UNSEEN, (character) => (keep.includes(character) ? character : escapeOf(character)));
}

/** What orders text differently from how it is shown, and letters that are not shown at all. */
const DECEIVING = /[\p{Bidi_Control}\u{e0000}-\u{e007f}]/gu;

/** Text whose letters and their order are those that are seen: bidirectional controls and tags become `\u{202e}`. */
export function visibleDeceit(text: string): string {
  return text.replace(DECEIVING, escapeOf);
}

/** One line of at most so many characters, for text that others wrote. */
export function visibleLine(text: string, limit: number): string {
  // Cut before, so that the work is bounded, and after, as escapes are longer.
  const line = visibleText(text.trim().slice(0, limit + 2));
  if (line.length <= limit) return line;
  // Not between the halves of a pair.
  return `${line.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** JSON without line breaks, of the same meaning, in which nothing is left that a terminal would obey or not show. */
export function visibleJson(json: string): string {
  if (!/[^ -~]/.test(json)) return json;
  return json.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu, (character) =>
    character
      .split('')
      .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
      .join(''),
  );
}
