import { isDeepStrictEqual } from 'node:util';
import { parse } from 'smol-toml';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { isObject } from '../../base/is-object.ts';

type TomlValue = string | boolean | number | readonly string[];

/** Values of ours in one table of a file. */
export interface TomlTable {
  /** Its name, part by part; each part is a bare key. */
  readonly name: readonly [string, ...string[]];
  readonly values: Readonly<Record<string, TomlValue>>;
}

type Parsed = Record<string, unknown>;

/** At the end of every line of ours, which is how it is found again. */
const MARK = ' # added by sandbox-run';

/**
 * The text of a TOML file with exactly these values of ours, and everything else as it is, byte by byte. `undefined`: there
 * is no file, and none is needed.
 * @throws {SandboxError} `usage.invalid` for a text that cannot be changed without losing something.
 */
export function changedToml(
  text: string | undefined,
  wanted: readonly TomlTable[],
  path: string,
): string | undefined {
  if (text === undefined && wanted.length === 0) return undefined;
  const theirs = withoutOurs(text ?? '');
  // What nothing is taken out of may be as it is.
  if (wanted.length === 0 && theirs === text) return text;
  // Nothing but ours was in it.
  if (wanted.length === 0 && theirs === '') return undefined;
  const before = parsed(theirs, path);
  const missing = wanted.map((table) => missingOf(before, table, path));
  const after = missing.reduce((now, table) => withTable(now, before, table, path), theirs);
  // What was made by hand must be what was meant.
  const meant = missing.reduce((now, { name, values }) => merged(now, name, values), before);
  if (!isDeepStrictEqual(plain(parsed(after, path)), plain(meant)))
    throw unusable(path, 'it has a shape that this program does not know');
  return after;
}

/** What a text says of a switch; `undefined`: nothing, or it is no TOML. */
export function tomlSwitch(text: string, table: string, key: string): unknown {
  try {
    const found = parse(text)[table];
    return isObject(found) ? found[key] : undefined;
  } catch {
    return undefined;
  }
}

function withoutOurs(text: string): string {
  return text
    .split(/(?<=\n)/)
    .filter((line) => !line.replace(/\r?\n$/, '').endsWith(MARK))
    .join('');
}

function parsed(text: string, path: string): Parsed {
  try {
    return parse(text);
  } catch {
    throw unusable(path, 'it is not TOML');
  }
}

/** What is not there yet. What somebody else wrote in its place is not ours to change. */
function missingOf(root: Parsed, { name, values }: TomlTable, path: string): TomlTable {
  const table = tableAt(root, name) ?? {};
  const other = Object.keys(values).find(
    (key) => Object.hasOwn(table, key) && !isDeepStrictEqual(table[key], values[key]),
  );
  if (other !== undefined)
    throw unusable(path, `it says something else of ${[...name, other].join('.')} already`);
  return {
    name,
    values: Object.fromEntries(Object.entries(values).filter(([key]) => !Object.hasOwn(table, key))),
  };
}

function withTable(text: string, root: Parsed, { name, values }: TomlTable, path: string): string {
  const lines = Object.entries(values).map(([key, value]) => `${key} = ${JSON.stringify(value)}${MARK}\n`);
  if (lines.length === 0) return text;
  const whole = text === '' || text.endsWith('\n') ? text : `${text}\n`;
  const line = `[${name.join('.')}]`;
  // A multi-line string may contain such a line too; the caller notices, because the result is then not the intended table.
  const all = whole.split(/(?<=\n)/);
  const at = all.findIndex((other) => other.replace(/#.*/, '').trim() === line);
  if (at >= 0) return [...all.slice(0, at + 1), ...lines, ...all.slice(at + 1)].join('');
  if (tableAt(root, name) !== undefined)
    throw unusable(path, `its table ${name.join('.')} has no line ${line}`);
  return `${whole}${line}${MARK}\n${lines.join('')}`;
}

function merged(root: Parsed, [first, ...rest]: readonly string[], values: TomlTable['values']): Parsed {
  if (first === undefined) return { ...root, ...values };
  const inner = root[first];
  return { ...root, [first]: merged(isObject(inner) ? inner : {}, rest, values) };
}

function tableAt(root: Parsed, name: readonly string[]): Parsed | undefined {
  const found = name.reduce<unknown>((at, part) => (isObject(at) ? at[part] : undefined), root);
  return isObject(found) ? found : undefined;
}

/** Without what the reader of TOML puts on its objects. */
const plain = (value: Parsed): unknown => JSON.parse(JSON.stringify(value));

const unusable = (path: string, why: string) =>
  new SandboxError(
    'usage.invalid',
    `${path} is left as it is: ${why}; add the lines by hand (--dry-run with an empty file shows them)`,
  );
