/**
 * Checks on the raw text of a piece of shell source. They know nothing of the parser: each states what must hold if
 * the parser was right about the piece, so that a mistake of the parser becomes a refusal.
 */

/** Control characters but TAB and LF, and DEL: bash mangles or ignores some of them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f]/;
const EXPANSION = /\$[A-Za-z0-9_{([?#!@*$-]/;
const UNQUOTED_RESIDUE = /[`()<>|&;'"\s]|\$[A-Za-z0-9_{(['"\\?#!@*$-]/;
const OPERAND_RESIDUE = /[`()<>|&;'"\\{}\n]|\$[A-Za-z0-9_{(['"\\?#!@*$-]/;

/** What makes a whole source unreadable, as a sentence; `undefined` if nothing does. */
export function badCharacter(source: string): string | undefined {
  if (CONTROL.test(source))
    return 'A control character stands in the command: only tabs and line feeds are understood.';
  if (/\p{Surrogate}/u.test(source)) return 'The command is not well-formed Unicode.';
  if (/(?<!\\)(\\\\)*\\$/.test(source)) return 'The command ends in a backslash: remove it.';
  return undefined;
}

/** True if unquoted text is only text: nothing in it means anything to the shell. */
export function isPlainUnquoted(raw: string): boolean {
  return !UNQUOTED_RESIDUE.test(withoutEscapes(raw));
}

/** True if text within double quotes or in a here-document is only text. */
export function isPlainQuoted(raw: string): boolean {
  const rest = withoutEscapes(raw);
  return !rest.includes('`') && !EXPANSION.test(rest);
}

/** True if text within `${x:-text}` is only text. */
export function isPlainOperand(raw: string): boolean {
  return !OPERAND_RESIDUE.test(raw);
}

/** Unquoted text after quote removal. */
export function unescapeUnquoted(raw: string): string {
  return raw.includes('\\') ? raw.replace(/\\(.)/gs, '$1') : raw;
}

/** Double-quoted text after quote removal. */
export function unescapeQuoted(raw: string): string {
  return raw.includes('\\') ? raw.replace(/\\([$`"\\])/g, '$1') : raw;
}

const ANSI_ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', '\\': '\\', "'": "'", '"': '"' };

/** The text of `$'…'`, if only the plainest escapes occur; else `undefined`. */
export function ansiText(raw: string): string | undefined {
  const inner = /^\$'((?:[^\\']|\\[nt\\'"])*)'$/.exec(raw)?.[1];
  return inner?.replace(/\\(.)/g, (_, letter: string) => ANSI_ESCAPES[letter] ?? letter);
}

/** True if bash may see a brace expansion that begins in this unquoted text; `rest` is the word from there on. */
export function mayExpandBraces(rest: string): boolean {
  return /\{(?!\}(?![^{}]*,)).*?(,|\.\.).*?\}/s.test(rest);
}

/** True for a name that bash takes as the name of a variable. */
export function isVariableName(text: string): boolean {
  return /^[A-Za-z_][A-Za-z0-9_]*$/.test(text);
}

function withoutEscapes(raw: string): string {
  return raw.includes('\\') ? raw.replace(/\\./gs, '') : raw;
}
