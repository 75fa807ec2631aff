/**
 * Whatever a terminal would obey or not show: control characters, format characters (bidirectional ones among them), lone
 * surrogates, private and unassigned characters, separators other than the space.
 */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]|(?! )\p{Zs}/gu;
const SHORT: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * A text that can be shown to a person in a terminal, as it is: what would be obeyed or is invisible is written as `\n`,
 * `\x1b`, `\u202e` or `\u{e0041}`.
 */
export function visibleText(text: string, options: { readonly keepLineBreaks?: boolean } = {}): string {
  return text.replace(INVISIBLE, (character) => {
    if (character === '\n' && options.keepLineBreaks === true) return character;
    const short = SHORT[character];
    if (short !== undefined) return short;
    const code = character.codePointAt(0) ?? 0;
    const digits = code.toString(16);
    if (code <= 0xff) return `\\x${digits.padStart(2, '0')}`;
    return code <= 0xffff ? `\\u${digits.padStart(4, '0')}` : `\\u{${digits}}`;
  });
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
