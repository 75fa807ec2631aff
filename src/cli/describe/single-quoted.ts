/** A word for bash and zsh, of which they expand nothing. */
export function singleQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
