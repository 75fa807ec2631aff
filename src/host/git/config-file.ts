/**
 * Reads and edits a configuration file as git does (git-config(1), "Syntax"; `git_parse_source` in git's config.c).
 * Bytes are characters here (latin1): git compares bytes, and what is written back must be what was there.
 */

/** One setting. */
export interface GitSetting {
  /** As `git config --list` shows it: section and name in lower case, a subsection as it is. */
  readonly key: string;
  /** `undefined`: the key stands alone, which is true for git. */
  readonly value: string | undefined;
}

/** Where a setting or the header of a section stands in the text. */
type Piece = (
  | { readonly kind: 'header'; readonly prefix: string }
  | { readonly kind: 'setting'; readonly setting: GitSetting }
) & {
  readonly start: number;
  readonly end: number;
  /** The file ended before the line did. */
  readonly isOpen: boolean;
};

/** A file that git would read. */
export interface GitConfigFile {
  readonly text: string;
  readonly settings: readonly GitSetting[];
  readonly pieces: readonly Piece[];
}

/** A file without settings. */
export const EMPTY_GIT_CONFIG: GitConfigFile = { text: '', settings: [], pieces: [] };

/** Reads the bytes of a file; `undefined` where git would stop with "bad config line", and for a NUL, at which git's strings end. */
export function parseGitConfig(bytes: Buffer): GitConfigFile | undefined {
  const text = bytes.toString('latin1');
  const pieces = text.includes('\0') ? undefined : piecesOf(text);
  if (pieces === undefined) return undefined;
  return {
    text,
    pieces,
    settings: pieces.flatMap((piece) => (piece.kind === 'setting' ? piece.setting : [])),
  };
}

/** All values of each key, in order. */
export function valuesByKey(settings: readonly GitSetting[]): Map<string, readonly (string | undefined)[]> {
  const found = new Map<string, readonly (string | undefined)[]>();
  for (const { key, value } of settings) found.set(key, [...(found.get(key) ?? []), value]);
  return found;
}

const BYTE_ORDER_MARK = '\xef\xbb\xbf';
const END = '\n';

/** The characters of a file as git's `get_next_char` gives them: CRLF is a line feed, and so is the end. */
class Characters {
  private at = 0;
  isAtEnd = false;

  private readonly text: string;

  constructor(text: string) {
    this.text = text;
    if (text.startsWith(BYTE_ORDER_MARK)) this.at = BYTE_ORDER_MARK.length;
  }

  get position(): number {
    return this.at;
  }

  next(): string {
    const character = this.text[this.at];
    if (character === undefined) {
      this.isAtEnd = true;
      return END;
    }
    this.at += 1;
    if (character !== '\r' || this.text[this.at] !== '\n') return character;
    this.at += 1;
    return '\n';
  }
}

const isSpace = (character: string) => ' \t\r\n'.includes(character);
const isLetter = (character: string) => /^[A-Za-z]$/.test(character);
const isOfKey = (character: string) => /^[A-Za-z0-9-]$/.test(character);

function piecesOf(text: string): readonly Piece[] | undefined {
  const from = new Characters(text);
  const pieces: Piece[] = [];
  let prefix = '';
  for (;;) {
    const start = from.position;
    const character = from.next();
    if (from.isAtEnd) return pieces;
    if (isSpace(character)) continue;
    if (character === '#' || character === ';') {
      skipLine(from);
      continue;
    }
    if (character === '[') {
      const name = readSection(from);
      if (name === undefined) return undefined;
      prefix = `${name}.`;
      pieces.push({ kind: 'header', prefix, start, end: from.position, isOpen: from.isAtEnd });
      continue;
    }
    if (!isLetter(character)) return undefined;
    const setting = readSetting(from, prefix, character);
    if (setting === undefined) return undefined;
    pieces.push({ kind: 'setting', setting, start, end: from.position, isOpen: from.isAtEnd });
  }
}

function skipLine(from: Characters): void {
  while (from.next() !== '\n');
}

function readSection(from: Characters): string | undefined {
  let name = '';
  for (;;) {
    const character = from.next();
    if (from.isAtEnd) return undefined;
    if (character === ']') return name === '' ? undefined : name;
    if (isSpace(character)) return readSubsection(from, name, character);
    if (!isOfKey(character) && character !== '.') return undefined;
    name += character.toLowerCase();
  }
}

function readSubsection(from: Characters, section: string, first: string): string | undefined {
  let character = first;
  do {
    if (character === '\n') return undefined;
    character = from.next();
  } while (isSpace(character));
  if (character !== '"') return undefined;
  let name = `${section}.`;
  for (;;) {
    character = from.next();
    if (character === '\n') return undefined;
    if (character === '"') break;
    if (character === '\\') {
      character = from.next();
      if (character === '\n') return undefined;
    }
    name += character;
  }
  return from.next() === ']' ? name : undefined;
}

function readSetting(from: Characters, prefix: string, first: string): GitSetting | undefined {
  let name = first.toLowerCase();
  let character = from.next();
  for (; !from.isAtEnd && isOfKey(character); character = from.next()) name += character.toLowerCase();
  while (character === ' ' || character === '\t') character = from.next();
  const key = `${prefix}${name}`;
  if (character === '\n') return { key, value: undefined };
  if (character !== '=') return undefined;
  const value = readValue(from);
  return value === undefined ? undefined : { key, value };
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', b: '\b', '"': '"', '\\': '\\' };

function readValue(from: Characters): string | undefined {
  let value = '';
  /** Length without white space at the end, which counts only within quotes. */
  let kept: number | undefined;
  let quoted = false;
  for (;;) {
    const character = from.next();
    if (character === '\n') return quoted ? undefined : value.slice(0, kept);
    if (isSpace(character) && !quoted) {
      kept ??= value.length;
      if (value !== '') value += character;
      continue;
    }
    if (!quoted && (character === '#' || character === ';')) {
      skipLine(from);
      return value.slice(0, kept);
    }
    kept = undefined;
    if (character === '\\') {
      const next = from.next();
      if (next === '\n') continue;
      const escaped = ESCAPES[next];
      if (escaped === undefined) return undefined;
      value += escaped;
    } else if (character === '"') {
      quoted = !quoted;
    } else {
      value += character;
    }
  }
}

/** A key and all the values that it is to have; none: it is to be gone. */
export interface GitEdit {
  readonly key: string;
  readonly values: readonly (string | undefined)[];
}

/**
 * The text with other values for some keys. What is written is made here, in git's plainest form, whatever form somebody
 * else gave it; everything else stays as it is.
 */
export function editGitConfig(file: GitConfigFile, edits: readonly GitEdit[]): Buffer {
  let current = file;
  for (const edit of edits) {
    const text = withValues(withoutKey(current, edit.key), edit);
    const parsed = parseGitConfig(Buffer.from(text, 'latin1'));
    if (parsed === undefined) throw new Error(`an edit of ${edit.key} made a file that git cannot read`);
    current = parsed;
  }
  return Buffer.from(current.text, 'latin1');
}

function withoutKey(file: GitConfigFile, key: string): GitConfigFile {
  let { text } = file;
  for (const [at, piece] of [...file.pieces.entries()].reverse()) {
    if (piece.kind !== 'setting' || piece.setting.key !== key) continue;
    const isAlone = /(^|\n)[ \t]*$/.test(text.slice(0, piece.start));
    // Behind a header on the same line the line's end has to stay.
    const start = isAlone ? text.slice(0, piece.start).replace(/[ \t]*$/, '').length : piece.start;
    text = text.slice(0, start) + (isAlone ? '' : '\n') + text.slice(piece.end);
    const header = headerLeftEmpty(file.pieces, at, key);
    if (header === undefined) continue;
    const rest = /^[^\S\n]*\n?/.exec(text.slice(header.end))?.[0].length ?? 0;
    text = text.slice(0, header.start) + text.slice(header.end + rest);
  }
  const parsed = parseGitConfig(Buffer.from(text, 'latin1'));
  if (parsed === undefined) throw new Error(`taking ${key} away made a file that git cannot read`);
  return parsed;
}

/** The header of a section whose only settings are of this key, the first of which is the piece at `at`. */
function headerLeftEmpty(pieces: readonly Piece[], at: number, key: string): Piece | undefined {
  const header = pieces[at - 1];
  if (header?.kind !== 'header') return undefined;
  for (const piece of pieces.slice(at)) {
    if (piece.kind === 'header') break;
    if (piece.setting.key !== key) return undefined;
  }
  return header;
}

function withValues(file: GitConfigFile, { key, values }: GitEdit): string {
  if (values.length === 0) return file.text;
  const name = key.slice(key.lastIndexOf('.') + 1);
  const prefix = key.slice(0, key.length - name.length);
  const lines = values
    .map((value) => (value === undefined ? `\t${name}\n` : `\t${name} = ${quoteGitValue(value)}\n`))
    .join('');
  const last = endOfSection(file, prefix);
  const at = last?.end ?? file.text.length;
  const before = file.text.slice(0, at);
  const rest = file.text.slice(at);
  // The last line of a file may lack its end, also behind a backslash that goes on in the next line.
  const isOpen = rest.trim() === '' && file.pieces.at(-1)?.isOpen === true;
  const gap =
    before === '' || (before.endsWith('\n') && !isOpen) ? '' : before.endsWith('\\') ? '\n\n' : '\n';
  if (last === undefined) return `${before}${gap}${headerOf(prefix)}\n${lines}`;
  return `${before}${gap}${lines}${last.kind === 'header' ? rest.replace(/^[^\S\n]*\n/, '') : rest}`;
}

/** What the last section of that name ends with. */
function endOfSection({ pieces }: GitConfigFile, prefix: string): Piece | undefined {
  const header = pieces.findLastIndex((piece) => piece.kind === 'header' && piece.prefix === prefix);
  if (header < 0) return undefined;
  const next = pieces.findIndex((piece, at) => at > header && piece.kind === 'header');
  return pieces[(next < 0 ? pieces.length : next) - 1];
}

function headerOf(prefix: string): string {
  const [, section = '', subsection] = /^([^.]*)(?:\.(.*))?\.$/s.exec(prefix) ?? [];
  return subsection === undefined ? `[${section}]` : `[${section} "${subsection.replace(/["\\]/g, '\\$&')}"]`;
}

/** A value as it is written: in quotes, so that nothing in it can mean anything else. */
export function quoteGitValue(value: string): string {
  const escaped = value
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll('\n', '\\n')
    .replaceAll('\t', '\\t')
    .replaceAll('\b', '\\b');
  return `"${escaped}"`;
}
