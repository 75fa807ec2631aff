import type { Word } from '../../model/command-line.ts';
import { isSingle, prefixOf, withoutPrefix } from '../../model/word.ts';

/** Options of a program, each by what it takes. */
export interface OptionTable {
  /** Letters without a value. */
  readonly flags?: string;
  /** Letters with a value, attached or in the next word. */
  readonly values?: string;
  /** Letters whose value can only be attached. */
  readonly attached?: string;
  /** Names without their dashes; `optional`: a value only behind `=`. */
  readonly long?: Readonly<Record<string, 'flag' | 'value' | 'optional'>>;
  /** Whole words of this shape are options without a value, whatever the rest says: `-10` of nice. */
  readonly shape?: RegExp;
}

interface Option {
  /** A letter, or a long name in full. */
  readonly name: string;
  readonly value: Word | undefined;
}

type ReadOptions =
  | { readonly ok: true; readonly options: readonly Option[]; readonly rest: readonly Word[] }
  | { readonly ok: false; readonly message: string; readonly word: Word };

/** Reads the options at the beginning of `words` (which stand behind the program's name) as getopt does. */
export function readOptions(words: readonly Word[], table: OptionTable): ReadOptions {
  const options: Option[] = [];
  let at = 0;
  while (at < words.length) {
    const word = words[at];
    if (word === undefined) break;
    const text = prefixOf(word);
    if (beginsWithPath(word)) break;
    if (word.value === undefined && (text === '' || !isSingle(word))) {
      return {
        ok: false,
        message: `${word.source} could be an option: only written-out words are understood here.`,
        word,
      };
    }
    if (text === '--') return { ok: true, options, rest: words.slice(at + 1) };
    if (!text.startsWith('-') || text === '-') break;
    if (table.shape?.test(text) === true && word.value !== undefined) {
      options.push({ name: text.replace(/^-+/, ''), value: undefined });
      at += 1;
      continue;
    }
    const read = text.startsWith('--')
      ? readLong(word, text, words[at + 1], table)
      : readShort(word, text, words[at + 1], table);
    if (typeof read === 'string') return { ok: false, message: read, word };
    options.push(...read.options);
    at += read.used;
  }
  return { ok: true, options, rest: words.slice(at) };
}

/** As `readOptions`, for programs that also take options behind operands. */
export function readAnywhere(words: readonly Word[], table: OptionTable): ReadOptions {
  const options: Option[] = [];
  const operands: Word[] = [];
  let rest = words;
  while (rest.length > 0) {
    const read = readOptions(rest, table);
    if (!read.ok) return read;
    options.push(...read.options);
    const used = rest.slice(0, rest.length - read.rest.length);
    const ended = used.at(-1)?.value === '--';
    operands.push(...read.rest.slice(0, ended ? undefined : 1));
    rest = ended ? [] : read.rest.slice(1);
  }
  return { ok: true, options, rest: operands };
}

/** A path that a runner puts in, and that cannot begin with a dash. */
export function beginsWithPath(word: Word): boolean {
  const first = word.parts[0];
  return first?.kind === 'input' && first.path === true;
}

type ReadOne = { readonly options: readonly Option[]; readonly used: number } | string;

function readLong(word: Word, text: string, next: Word | undefined, table: OptionTable): ReadOne {
  const equals = text.indexOf('=');
  if (word.value === undefined && equals === -1) return `The option ${word.source} is not written out.`;
  const given = equals === -1 ? text.slice(2) : text.slice(2, equals);
  const name = fullName(given, table);
  const kind = name === undefined ? undefined : table.long?.[name];
  if (name === undefined || kind === undefined) return `The option --${given} is not known here.`;
  if (equals !== -1) {
    if (kind === 'flag') return `The option --${name} takes no value.`;
    return { options: [{ name, value: withoutPrefix(word, equals + 1) }], used: 1 };
  }
  if (kind !== 'value') return { options: [{ name, value: undefined }], used: 1 };
  return withNext(name, next, []);
}

/** Long options may be abbreviated as long as they stay unique. */
function fullName(given: string, table: OptionTable): string | undefined {
  const names = Object.keys(table.long ?? {});
  if (names.includes(given)) return given;
  const matches = names.filter((name) => name.startsWith(given));
  return matches.length === 1 ? matches[0] : undefined;
}

function readShort(word: Word, text: string, next: Word | undefined, table: OptionTable): ReadOne {
  const options: Option[] = [];
  for (let at = 1; at < text.length; at += 1) {
    const letter = text[at] ?? '';
    const isLast = at === text.length - 1 && word.value !== undefined;
    if (table.flags?.includes(letter) === true) options.push({ name: letter, value: undefined });
    else if (table.attached?.includes(letter) === true) {
      return {
        options: [...options, { name: letter, value: isLast ? undefined : withoutPrefix(word, at + 1) }],
        used: 1,
      };
    } else if (table.values?.includes(letter) === true) {
      if (isLast) return withNext(letter, next, options);
      return { options: [...options, { name: letter, value: withoutPrefix(word, at + 1) }], used: 1 };
    } else return `The option -${letter} is not known here.`;
  }
  if (word.value === undefined) return `The option ${word.source} is not written out.`;
  return { options, used: 1 };
}

function withNext(name: string, next: Word | undefined, before: readonly Option[]): ReadOne {
  if (next === undefined) return `The option ${name} has no value.`;
  if (!isSingle(next)) return `${next.source} could be several words: quote it.`;
  return { options: [...before, { name, value: next }], used: 2 };
}

/** The value of the last option of these names. */
export function optionValue(options: readonly Option[], ...names: readonly string[]): Word | undefined {
  return options.findLast((option) => names.includes(option.name))?.value;
}

export function hasOption(options: readonly Option[], ...names: readonly string[]): boolean {
  return options.some((option) => names.includes(option.name));
}
