import { type Finding, finding } from './behaviour.ts';

/** Behind these, `/` begins a regular expression; behind anything else it divides. */
const BEFORE_REGEXP = /(?:^|[(,!~&|{};\n=?:]|\b(?:print|printf|return|case)) ?$/;

/**
 * The program without its strings, comments and regular expressions, each of which leaves a place holder. One pass; in
 * doubt a `/` divides, so that what follows is still looked at.
 */
export function withoutLiterals(program: string): string {
  const code: string[] = [];
  // The end of the code so far: joining it for each look back would take time that grows with the square.
  let recent = '';
  const put = (text: string): void => {
    code.push(text);
    // Blanks count once, else enough of them would look like the beginning.
    if (text !== ' ' && text !== '\t') recent = (recent + text).slice(-16);
    else if (!recent.endsWith(' ')) recent += ' ';
  };
  let index = 0;
  /** Up to here no regular expression ends. */
  let noRegexpBefore = 0;
  while (index < program.length) {
    const char = program[index] ?? '';
    if (char === '"') {
      index = behindDelimiter(program, index, '"') ?? program.length;
      put('""');
    } else if (char === '\\' && program[index + 1] === '\n') {
      // A continued line.
      put(' ');
      index += 2;
    } else if (char === '#') {
      const end = program.indexOf('\n', index);
      index = end < 0 ? program.length : end;
    } else if (char === '/' && index >= noRegexpBefore && BEFORE_REGEXP.test(recent)) {
      const end = behindDelimiter(program, index, '/');
      if (end === undefined) {
        const line = program.indexOf('\n', index);
        noRegexpBefore = line < 0 ? program.length : line;
        put(char);
        index++;
      } else {
        put('//');
        index = end;
      }
    } else {
      put(char);
      index++;
    }
  }
  return code.join('');
}

/** Behind the delimiter that closes what begins at `start`; `undefined`: the line ends first. */
function behindDelimiter(program: string, start: number, delimiter: string): number | undefined {
  for (let index = start + 1; index < program.length; index++) {
    const char = program[index];
    if (char === '\\') index++;
    else if (char === '\n') return undefined;
    else if (char === delimiter) return index + 1;
  }
  return undefined;
}

/** Output to where it goes anyway, or through sort, which such programs often end with. */
const HARMLESS_OUTPUT = />{1,2}\s*"\/dev\/std(?:err|out)"|\|\s*"sort(?: -[bdfghinrucsV]+| -k ?[\d.,nr]+)*"/g;

/** What a program of awk would do besides printing. */
export function inspectAwkProgram(program: string, source: string): readonly Finding[] {
  const found: Finding[] = [];
  const code = withoutLiterals(program.replace(HARMLESS_OUTPUT, ''));
  if (/\bsystem\s*\(|@load|@include|@\w+\s*\(/.test(code)) {
    found.push(finding('executes', 'awk_executes', 'runs a command through its program', source));
  }
  // `|` is a pipe into or out of a command, `||` is not; `|&` is a coprocess, or a socket.
  if (/(?<!\|)\|(?!\|)/.test(code)) {
    found.push(finding('executes', 'awk_executes', 'pipes to or from a command in its program', source));
  }
  if (/\/inet[46]?\//.test(program)) {
    found.push(finding('network', 'awk_network', 'connects through its program (/inet)', source));
  }
  if (code.split(/[;}\n]/).some(redirectsOutput)) {
    found.push(finding('writes', 'awk_writes', 'may write a file through its program', source));
  }
  return found;
}

function redirectsOutput(statement: string): boolean {
  const print = statement.search(/\bprintf?\b/);
  return print >= 0 && statement.indexOf('>', print) >= 0;
}

/** A file that a program names as a string of its own. */
interface AwkFile {
  readonly path: string;
  readonly effect: 'reads' | 'writes';
}

/** Between a word and its redirect stand strings and other text of one statement; bounded, so that time is too. */
const FILES: readonly { readonly pattern: RegExp; readonly effect: AwkFile['effect'] }[] = [
  { pattern: /\bgetline\b[^;\n{}"<]{0,200}<\s*"((?:[^"\\\n]|\\.)*)"/g, effect: 'reads' },
  {
    pattern: /\bprintf?\b(?:"(?:[^"\\\n]|\\.){0,400}"|[^;\n{}">]){0,200}>{1,2}\s*"((?:[^"\\\n]|\\.)*)"/g,
    effect: 'writes',
  },
];

/** The files that a program reads with getline, or prints to. */
export function filesOfAwkProgram(program: string): readonly AwkFile[] {
  if (!/\b(?:getline|printf?)\b/.test(program)) return [];
  return FILES.flatMap(({ pattern, effect }) =>
    [...program.matchAll(pattern)].map((match) => ({ path: match[1] ?? '', effect })),
  );
}
