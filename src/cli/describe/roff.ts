/** What roff would take for something else, as what it is. */
const SPECIAL: Readonly<Record<string, string>> = {
  '\\': '\\e',
  '-': '\\-',
  "'": '\\(aq',
  '`': '\\(ga',
  '^': '\\(ha',
  '~': '\\(ti',
  '"': '\\(dq',
};

/** Text of any kind as roff shows it: nothing in it is an escape, a request or a quotation mark of a macro. */
export function roffText(text: string): string {
  const escaped = text
    .replaceAll(/[\\\-'`^~"]/g, (character) => SPECIAL[character] ?? character)
    .replaceAll(/[^\n -\u007e]/gu, (character) => {
      const code = character.codePointAt(0)?.toString(16).toUpperCase() ?? '';
      return `\\[u${code.padStart(4, '0')}]`;
    });
  // A dot that begins a line begins a request; a quote is none any more.
  return escaped.replaceAll(/^\./gm, '\\&.');
}

/** A macro on a line of its own: `.SH "SEE ALSO"`. */
export function roffMacro(name: string, ...args: readonly string[]): string {
  return [`.${name}`, ...args.map((arg) => `"${roffText(arg)}"`)].join(' ');
}

/** Paragraphs, filled; a block of indented lines stays as it is. A line that ends with a colon and stands alone is a heading. */
export function roffNotes(text: string): readonly string[] {
  return text
    .split(/\n{2,}/)
    .filter((block) => block.trim() !== '')
    .flatMap((block) => ['.PP', ...blockLines(block.split('\n'))]);
}

function blockLines(lines: readonly string[]): readonly string[] {
  const made: string[] = [];
  let isLiteral = false;
  for (const line of lines) {
    const wanted = line.startsWith('  ');
    if (wanted !== isLiteral) made.push(wanted ? '.RS 4\n.EX' : '.EE\n.RE');
    isLiteral = wanted;
    made.push(roffText(wanted ? line.slice(2) : line));
  }
  if (isLiteral) made.push('.EE\n.RE');
  return made;
}
