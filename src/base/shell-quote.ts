/**
 * A word of a POSIX shell that is exactly this text, whatever is in it: within single quotes nothing has a meaning but the
 * next single quote, which therefore stands outside of them. Text with NUL characters is no word of any shell.
 */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/** Words of a command line. */
export function shellWords(words: readonly string[]): string {
  return words.map(shellWord).join(' ');
}

/** The same, without quotes where nothing in it needs them: for people. `NAME=value` stays as it is. */
export function readableWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : shellWord(text);
}
