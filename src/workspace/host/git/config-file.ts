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

/** Honest work needs no more settings and sections than this, and comparing more would take long. */
const MAX_PIECES = 50_000;

/** A file without settings. */
export const EMPTY_GIT_CONFIG: GitConfigFile = { text: '', settings: [], pieces: [] };

/** Reads the bytes of a file; `undefined` where git would stop with "bad config line", for a NUL, at which git's strings end, and for too much. */
export function parseGitConfig(bytes: Buffer): GitConfigFile | undefined {
  const text = bytes.toString('latin1');
  const pieces = text.includes('\0') ? undefined : piecesOf(text);
  if ((pieces?.length ?? 0) > MAX_PIECES) return undefined;
  if (pieces === undefined) return undefined;
  return {
    text,
    pieces,
    settings: pieces.flatMap((piece) => (piece.kind === 'setting' ? piece.setting : [])),
  };
}

/** All values of each key, in order. */
export function valuesByKey(settings: readonly GitSetting[]): Map<string, readonly (string | undefined)[]> {
  const found = new Map<string, (string | undefined)[]>();
  for (const { key, value } of settings) {
    const values = found.get(key);
    if (values === undefined) found.set(key, [value]);
    else values.push(value);
  }
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
 * The text with other values for some keys. What is written is made here, in git's plainest form, whatever form the author
 * else gave it; everything else stays as it is. All of them at once: a command may have changed very many.
 */
export function editGitConfig(file: GitConfigFile, edits: readonly GitEdit[]): Buffer {
  const wanted = new Map(edits.map(({ key, values }) => [key, values]));
  const without = parsedAgain(withoutKeys(file, new Set(wanted.keys())));
  const text = withValues(without, wanted);
  parsedAgain(text);
  return Buffer.from(text, 'latin1');
}

function parsedAgain(text: string): GitConfigFile {
  const parsed = parseGitConfig(Buffer.from(text, 'latin1'));
  if (parsed === undefined) throw new Error('an edit made a file that git cannot read');
  return parsed;
}

/** What the text has instead of what is from `start` to `end`. */
interface Cut {
  readonly start: number;
  readonly end: number;
  readonly by: string;
}

function replaced(text: string, cuts: readonly Cut[]): string {
  const parts: string[] = [];
  let at = 0;
  for (const { start, end, by } of cuts) {
    parts.push(text.slice(at, start), by);
    at = end;
  }
  return parts.join('') + text.slice(at);
}

function withoutKeys({ text, pieces }: GitConfigFile, keys: ReadonlySet<string>): string {
  const cuts: Cut[] = [];
  for (const section of sectionsOf(pieces)) {
    const [first, ...others] = section;
    const settings = first?.kind === 'header' ? others : section;
    const goes = (piece: Piece) => piece.kind === 'setting' && keys.has(piece.setting.key);
    let from = 0;
    if (first?.kind === 'header' && settings.length > 0 && settings.every(goes)) {
      from = skipBlanks(text, first.end);
      if (text[from] === '\n') from += 1;
      cuts.push({ start: first.start, end: from, by: '' });
    }
    for (const { start, end } of settings.filter(goes)) {
      const line = backOverBlanks(text, start);
      const isAlone = line <= from || text[line - 1] === '\n';
      // Behind a header on the same line the line's end has to stay.
      cuts.push(isAlone ? { start: Math.max(line, from), end, by: '' } : { start, end, by: '\n' });
    }
  }
  return replaced(text, cuts);
}

/** The pieces by section, each but the first with its header. */
function sectionsOf(pieces: readonly Piece[]): readonly (readonly Piece[])[] {
  const sections: Piece[][] = [[]];
  for (const piece of pieces) {
    if (piece.kind === 'header') sections.push([]);
    sections.at(-1)?.push(piece);
  }
  return sections;
}

const isBlank = (character: string | undefined) => character === ' ' || character === '\t';

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (isBlank(text[at]) || (text[at] === '\r' && text[at + 1] === '\n')) at += 1;
  return at;
}

function backOverBlanks(text: string, from: number): number {
  let at = from;
  while (at > 0 && isBlank(text[at - 1])) at -= 1;
  return at;
}

function withValues(file: GitConfigFile, wanted: ReadonlyMap<string, GitEdit['values']>): string {
  const lines = new Map<string, string>();
  for (const [key, values] of wanted) {
    if (values.length === 0) continue;
    const prefix = prefixOf(key);
    lines.set(prefix, (lines.get(prefix) ?? '') + values.map((value) => lineOf({ key, value })).join(''));
  }
  const { text, pieces } = file;
  const lastOf = new Map<string, Piece>();
  for (const section of sectionsOf(pieces)) {
    const [header] = section;
    const last = section.at(-1);
    if (header?.kind === 'header' && last !== undefined) lastOf.set(header.prefix, last);
  }
  // The last line of a file may lack its end, also behind a backslash that goes on in the next line.
  const gapAt = (at: number, isOpen: boolean) => {
    if (at === 0 || (text[at - 1] === '\n' && !isOpen)) return '';
    return text[at - 1] === '\\' ? '\n\n' : '\n';
  };
  const isOpenAtEnd = pieces.at(-1)?.isOpen === true;
  const cuts: Cut[] = [];
  const added: string[] = [];
  for (const [prefix, made] of lines) {
    const last = lastOf.get(prefix);
    if (last === undefined) {
      added.push(`${headerOf(prefix)}\n${made}`);
      continue;
    }
    const rest = last.kind === 'header' ? skipBlanks(text, last.end) : last.end;
    const end = last.kind === 'header' && text[rest] === '\n' ? rest + 1 : last.end;
    const isOpen = isOpenAtEnd && last === pieces.at(-1);
    cuts.push({ start: last.end, end, by: gapAt(last.end, isOpen) + made });
  }
  cuts.sort((a, b) => a.start - b.start);
  const changed = replaced(text, cuts);
  if (added.length === 0) return changed;
  const isAtEnd = cuts.at(-1)?.end === text.length;
  return changed + (isAtEnd ? '' : gapAt(text.length, isOpenAtEnd)) + added.join('');
}

/** A file with these settings, in this order, as text. */
export function writeGitConfig(settings: readonly GitSetting[]): string {
  let text = '';
  let section: string | undefined;
  for (const setting of settings) {
    const prefix = prefixOf(setting.key);
    if (prefix !== section) text += `${headerOf(prefix)}\n`;
    section = prefix;
    text += lineOf(setting);
  }
  parsedAgain(text);
  return Buffer.from(text, 'latin1').toString('utf8');
}

/** `section.subsection.` of a key. */
const prefixOf = (key: string) => key.slice(0, key.lastIndexOf('.') + 1);

function lineOf({ key, value }: GitSetting): string {
  const name = key.slice(prefixOf(key).length);
  return value === undefined ? `\t${name}\n` : `\t${name} = ${quoteGitValue(value)}\n`;
}

function headerOf(prefix: string): string {
  const [, section = '', subsection] = /^([^.]*)(?:\.(.*))?\.$/s.exec(prefix) ?? [];
  return subsection === undefined ? `[${section}]` : `[${section} "${subsection.replace(/["\\]/g, '\\$&')}"]`;
}

/** A value as it is written: in quotes, so that nothing in it can mean anything else. */
function quoteGitValue(value: string): string {
  const escaped = value
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll('\n', '\\n')
    .replaceAll('\t', '\\t')
    .replaceAll('\b', '\\b');
  return `"${escaped}"`;
}
