let unseen: RegExp | undefined;

/**
 * What a person would not see, or not as what it is: control characters, format characters (bidirectional ones among
 * them), everything that Unicode calls ignorable, private and unassigned characters, halves of pairs, every space but
 * the space, marks that sit on no letter, and a backslash that looks like the beginning of an escape of ours.
 * Made on first use, as the other one: such sets take milliseconds of every start.
 */
function unseenCharacters(): RegExp {
  unseen ??=
    /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{1D159}]|(?! )\p{Zs}|(?<!\p{L}\p{M}?)\p{M}|\\(?=u\{)/gu;
  return unseen;
}

const escapeOf = (character: string) => `\\u{${character.codePointAt(0)?.toString(16)}}`;

/**
 * Text for people: what they would not see becomes `\u{202e}`. Different texts stay different: a backslash that is
 * followed by `u{` is itself shown as `\u{5c}`. Characters in `keep` stay as they are.
 */
export function visibleText(text: string, { keep = '' }: { readonly keep?: string } = {}): string {
  return text.replace(unseenCharacters(), (character) =>
    keep.includes(character) ? character : escapeOf(character),
  );
}

// Joiners belong between the parts of an emoji and into words of scripts that are written with them; a selector behind what
// may be an emoji, or in a keycap. Anywhere else they say nothing that is seen.
const JOINING =
  '\\p{Script=Arabic}\\p{Script=Syriac}\\p{Script=Devanagari}\\p{Script=Bengali}\\p{Script=Gujarati}\\p{Script=Gurmukhi}\\p{Script=Kannada}\\p{Script=Malayalam}\\p{Script=Oriya}\\p{Script=Sinhala}\\p{Script=Tamil}\\p{Script=Telugu}';
const EMOJI = '\\p{Extended_Pictographic}';
const IN_PLACE = [
  `(?<=[${EMOJI}\\ufe0f\\p{Emoji_Modifier}])\\u200d(?=${EMOJI})`,
  `(?<=[${JOINING}])[\\u200c\\u200d](?=[${JOINING}])`,
  `(?<=${EMOJI})[\\ufe0e\\ufe0f]`,
  '(?<=[0-9#*])\\ufe0f(?=\\u20e3)',
].join('|');

let deceiving: RegExp | undefined;

/** What orders text differently from how it is shown, and what is not shown at all. Made on first use. */
function deceivingCharacters(): RegExp {
  deceiving ??= new RegExp(`(?=[\\p{Bidi_Control}\\p{Default_Ignorable_Code_Point}])(?!${IN_PLACE}).`, 'gu');
  return deceiving;
}

/** Text whose letters and their order are those that are seen: bidirectional controls and what is invisible become `\u{202e}`. */
export function visibleDeceit(text: string): string {
  return /[^\n -~]/.test(text) ? text.replace(deceivingCharacters(), escapeOf) : text;
}

/** One line of at most so many characters, for text that others wrote. */
export function visibleLine(text: string, limit: number): string {
  // Cut before, so that the work is bounded, and after, as escapes are longer.
  const line = visibleText(text.trim().slice(0, limit + 2));
  if (line.length <= limit) return line;
  // Not between the halves of a pair.
  return `${line.slice(0, limit - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** In JSON and in TOML, which have escapes: what a terminal would obey or not show. */
const unshown = () => /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

const hexOf = (code: number, digits: number) => code.toString(16).padStart(digits, '0');

/** JSON without line breaks, of the same meaning, in which nothing is left that a terminal would obey or not show. */
export function visibleJson(json: string): string {
  if (!/[^ -~]/.test(json)) return json;
  return json.replace(unshown(), (character) =>
    character
      .split('')
      .map((unit) => `\\u${hexOf(unit.charCodeAt(0), 4)}`)
      .join(''),
  );
}

/** A text as a string of TOML, in which nothing is left that a terminal would obey or not show. */
export function visibleToml(text: string): string {
  return JSON.stringify(text).replace(unshown(), (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code > 0xffff ? `\\U${hexOf(code, 8)}` : `\\u${hexOf(code, 4)}`;
  });
}
