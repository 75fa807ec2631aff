import { readFileSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';

/** Settings that make `git commit` work and tell nothing secret. Everything else of the user's file stays outside. */
const HARMLESS_KEYS =
  /^(user\.(name|email)|init\.defaultbranch|core\.autocrlf|safe\.directory|pull\.rebase)$/;

/**
 * A `.gitconfig` for the private home with the harmless settings of the user's own; undefined if there are none.
 * Files that they include are not read: which ones apply may depend on the repository.
 */
export function gitIdentity(home: string, xdgConfigHome: string | undefined): string | undefined {
  // As for git, an empty variable is none. A relative one would name a file of whatever directory we are in.
  const config =
    xdgConfigHome !== undefined && isAbsolute(xdgConfigHome) ? xdgConfigHome : join(home, '.config');
  const files = [join(config, 'git/config'), join(home, '.gitconfig')];
  const settings = files.flatMap((file) => parseGitConfig(readIfAny(file)));
  const lines = settings
    .filter((setting) => HARMLESS_KEYS.test(`${setting.section}.${setting.key}`))
    .flatMap(({ section, key, value }) => [`[${section}]`, `\t${key} = ${quote(value)}`]);
  return lines.length === 0 ? undefined : `${lines.join('\n')}\n`;
}

function readIfAny(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** A setting with section and key in lower case and the value without quotes and escapes. */
interface Setting {
  readonly section: string;
  readonly key: string;
  readonly value: string;
}

const HEADER = /^\s*\[([^\]"]*)("(?:[^"\\]|\\.)*")?\s*\]/;
const KEY = /^\s*([A-Za-z][A-Za-z0-9-]*)\s*=/;

/** The settings of a file (git-config(1), "Syntax"); lines that git would not understand are left out. */
function parseGitConfig(text: string): readonly Setting[] {
  const result: Setting[] = [];
  // A line that ends in a backslash goes on in the next one, unless the backslash is itself escaped.
  const lines = text
    .replace(/^\ufeff/, '')
    .replaceAll('\r\n', '\n')
    .replace(/\\(\\|\n)/g, (_, next: string) => (next === '\n' ? '' : '\\\\'))
    .split('\n');
  let section = '';
  for (const line of lines) {
    const header = HEADER.exec(line);
    // Nothing in a subsection is wanted.
    if (header !== null) section = header[2] === undefined ? (header[1] ?? '').trim().toLowerCase() : '';
    const rest = line.slice(header?.[0].length ?? 0);
    const key = KEY.exec(rest);
    if (key?.[1] === undefined) continue;
    const value = parseValue(rest.slice(key[0].length));
    if (value !== undefined) result.push({ section, key: key[1].toLowerCase(), value });
  }
  return result;
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', b: '\b', '"': '"', '\\': '\\' };

/** Undefined if it is not well-formed. */
function parseValue(text: string): string | undefined {
  let value = '';
  let kept = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const character = text[i] ?? '';
    if (character === '"') {
      quoted = !quoted;
      kept = value.length;
      continue;
    }
    if (!quoted && (character === '#' || character === ';')) break;
    if (!quoted && /\s/.test(character)) {
      if (value !== '') value += character;
      continue;
    }
    if (character === '\\') {
      i += 1;
      const escaped = ESCAPES[text[i] ?? ''];
      if (escaped === undefined) return undefined;
      value += escaped;
    } else {
      value += character;
    }
    kept = value.length;
  }
  // White space at the end counts only within quotes.
  return quoted ? undefined : value.slice(0, kept);
}

function quote(value: string): string {
  const escaped = value
    .replaceAll('\\', '\\\\')
    .replaceAll('"', '\\"')
    .replaceAll('\n', '\\n')
    .replaceAll('\t', '\\t')
    .replaceAll('\b', '\\b');
  return `"${escaped}"`;
}
