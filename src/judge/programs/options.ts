import {
  isSingle,
  leadingText,
  type NotUnderstoodCode,
  type Word,
  withoutPrefix,
} from '../../model/index.ts';
import {
  type Argument,
  type Call,
  type Dialect,
  type Effect,
  type Finding,
  finding,
  type Grammar,
  type OptionUse,
  type PathUse,
  type Runs,
  type Use,
} from './behaviour.ts';
import { GROUP_NAMES, GROUPS } from './grammars.ts';

/** One option. */
interface OptionRule {
  readonly name: string;
  readonly effect: Effect;
  readonly value: 'none' | 'required' | 'optional';
  /** It changes the files of the operands. */
  readonly inPlace: boolean;
}

/** A grammar, ready for look-ups. */
interface OptionTable {
  readonly rules: ReadonlyMap<string, OptionRule>;
  /** Long options, which may be abbreviated. */
  readonly longNames: readonly string[];
  /** An option can execute or write, so an unknown one might too. */
  readonly powerful: boolean;
  /** The table is not complete. */
  readonly open: boolean;
}

const POWERFUL: ReadonlySet<Effect> = new Set(['writes', 'removes', 'loads', 'executes', 'network']);

/** Built once per grammar, at the first use: loading the tables stays cheap. */
const built = new WeakMap<Grammar, OptionTable>();

/** The look-up table of a grammar. */
export function optionTable(grammar: Grammar): OptionTable {
  const known = built.get(grammar);
  if (known !== undefined) return known;
  const rules = new Map<string, OptionRule>();
  let powerful = false;
  for (const group of GROUP_NAMES) {
    const names = grammar[group];
    if (names === undefined) continue;
    const { effect, value } = GROUPS[group];
    powerful ||= POWERFUL.has(effect);
    for (const listed of names.split(' ')) {
      const name = listed.length > 1 ? listed.replace(/\?$/, '') : listed;
      rules.set(name, {
        name,
        effect,
        value: name === listed ? value : 'optional',
        inPlace: group === 'writing',
      });
    }
  }
  const longNames = grammar.exact === true ? [] : [...rules.keys()].filter((name) => name.length > 1);
  const table = { rules, longNames, powerful, open: grammar.open === true };
  built.set(grammar, table);
  return table;
}

/** The rule of a long option, which may be abbreviated as long as it is not ambiguous. */
function findLong(table: OptionTable, name: string): OptionRule | undefined {
  const exact = name.length > 1 ? table.rules.get(name) : undefined;
  if (exact !== undefined) return exact;
  if (name === '') return undefined;
  let found: OptionRule | undefined;
  for (const candidate of table.longNames) {
    if (!candidate.startsWith(name)) continue;
    if (found !== undefined) return undefined;
    found = table.rules.get(candidate);
  }
  return found;
}

/** Why a reading of options is not certain: an option that is not known, a word that may turn out to be one. */
interface Doubt {
  /** A sentence. */
  readonly message: string;
  readonly word: Word;
}

/** Options and operands of a list of words. */
interface ParsedOptions {
  readonly options: OptionUse[];
  readonly operands: Argument[];
  /** Words that look like options and are not in the table. */
  readonly unknown: Word[];
  /** Words that may turn out to be options. */
  readonly openEnded: Word[];
  /** The first one; `undefined`: every program that has this grammar reads the words so. */
  readonly doubt: Doubt | undefined;
  /** Index in `operands` of the first one behind `--`; its length if there is none. */
  readonly afterDashes: number;
  /** Index in `words` behind what was read: of the first operand if options end there. */
  readonly next: number;
}

const NO_GRAMMAR: Grammar = { open: true };

/**
 * Reads options by a table, in the way of getopt_long. Stops before the first operand if the grammar or
 * `stopAtOperand` says so. THE reader: what a program runs and what it touches are told from the same reading.
 */
export function parseOptions(
  words: readonly Word[],
  from: number,
  grammar: Grammar = NO_GRAMMAR,
  stopAtOperand = grammar.stopAtOperand === true,
): ParsedOptions {
  const reading = new Reading(words, from, optionTable(grammar));
  const operands: Argument[] = [];
  let afterDashes: number | undefined;
  for (; reading.index < words.length; reading.index++) {
    const word = words[reading.index];
    if (word === undefined) break;
    const text = leadingText(word);
    const complete = word.value !== undefined;
    if (afterDashes !== undefined || beginsWithPath(word) || text[0] !== '-' || (text === '-' && complete)) {
      if (afterDashes === undefined && !complete) reading.noteOperand(word, text);
      if (stopAtOperand) break;
      operands.push(argumentOf(word));
    } else if (text === '--' && complete) {
      afterDashes = operands.length;
      if (!stopAtOperand) continue;
      reading.index++;
      break;
    } else if (grammar.numeric === true && complete && /^--?\d+$/.test(text)) {
      // A count.
    } else if (grammar.style === 'single-dash') {
      reading.long(word, text, text.startsWith('--') ? 2 : 1);
    } else if (text.startsWith('--')) {
      reading.long(word, text, 2);
    } else {
      reading.short(word, text);
    }
  }
  const { options, unknown, openEnded, doubt, index: next } = reading;
  return {
    options,
    operands,
    unknown,
    openEnded,
    doubt,
    afterDashes: afterDashes ?? operands.length,
    next,
  };
}

/** One reading: where it is, and what it has found. */
class Reading {
  readonly options: OptionUse[] = [];
  readonly unknown: Word[] = [];
  readonly openEnded: Word[] = [];
  doubt: Doubt | undefined;

  index: number;
  private readonly words: readonly Word[];
  private readonly table: OptionTable;

  constructor(words: readonly Word[], from: number, table: OptionTable) {
    this.words = words;
    this.index = from;
    this.table = table;
  }

  /** A word that is not written out, where an option may stand. */
  noteOperand(word: Word, text: string): void {
    if (text === '' && !isDescriptor(word)) this.openEnded.push(word);
    if (beginsWithPath(word) || (text !== '' && isSingle(word))) return;
    this.note(word, `${word.source} could be an option: only written-out words are understood here.`);
  }

  /** `--name`, `--name=value`, with as many dashes as the grammar has. */
  long(word: Word, text: string, dashes: number): void {
    const equals = text.indexOf('=');
    const given = equals < 0 ? text.slice(dashes) : text.slice(dashes, equals);
    const rule = dashes === 2 ? findLong(this.table, given) : this.table.rules.get(given);
    // Where options are not all listed, what begins so may be another one.
    if (this.table.open && rule !== undefined && rule.name !== given)
      this.note(
        word,
        `The option --${given} may be short for --${rule.name}, or for another one: write it out.`,
      );
    if (equals < 0 && word.value === undefined) this.refuse(word, notWritten(word));
    else if (rule === undefined)
      this.refuse(word, `The option ${text.slice(0, dashes)}${given} is not known here.`);
    else {
      if (equals >= 0 && rule.value === 'none') this.note(word, `The option --${rule.name} takes no value.`);
      this.take(rule, word, equals < 0 ? undefined : argumentOf(word, equals + 1));
    }
  }

  /** `-abc`, `-ovalue`. */
  short(word: Word, text: string): void {
    const complete = word.value !== undefined;
    for (let at = 1; at < text.length; at++) {
      const rule = this.table.rules.get(text[at] ?? '');
      const hasValue = rule !== undefined && rule.value !== 'none';
      if (rule === undefined) this.refuse(word, `The option -${text[at]} is not known here.`);
      else if (!hasValue) this.take(rule, word, undefined);
      else this.take(rule, word, at + 1 < text.length || !complete ? argumentOf(word, at + 1) : undefined);
      if (rule === undefined || hasValue) return;
    }
    // What follows may be more letters.
    if (!complete) this.refuse(word, notWritten(word));
  }

  /** Records an option; takes the next word if its value stands there. */
  private take(rule: OptionRule, word: Word, attached: Argument | undefined): void {
    let value = rule.value === 'none' ? undefined : attached;
    if (value !== undefined && !isSingle(word)) this.note(word, severalWords(word));
    if (rule.value === 'required' && value === undefined) {
      const next = this.words[this.index + 1];
      if (next === undefined) this.note(word, `The option ${rule.name} has no value.`);
      else {
        if (!isSingle(next)) this.note(word, severalWords(next));
        value = argumentOf(next);
        this.index++;
      }
    }
    this.options.push({ name: rule.name, effect: rule.effect, value, inPlace: rule.inPlace, word });
  }

  private refuse(word: Word, message: string): void {
    this.unknown.push(word);
    this.note(word, message);
  }

  private note(word: Word, message: string): void {
    this.doubt ??= { word, message };
  }
}

const notWritten = ({ source }: Word) => `The option ${source} is not written out.`;
const severalWords = ({ source }: Word) => `${source} could be several words: quote it.`;

/** True for a process substitution alone: bash always puts `/dev/fd/N` there. */
function isDescriptor({ parts }: Word): boolean {
  return parts.length === 1 && parts[0]?.kind === 'process-substitution';
}

/** A path that a program puts in (`find -exec`), and that cannot begin with a dash. */
export function beginsWithPath(word: Word): boolean {
  const first = word.parts[0];
  return first?.kind === 'input' && first.path === true;
}

type ReadOptions =
  | { readonly ok: true; readonly options: readonly OptionUse[]; readonly rest: readonly Word[] }
  | ({ readonly ok: false } & Doubt);

/**
 * The options of `words`, which stand behind a program or a verb, and the rest, which is what the program runs: not
 * `ok` where the reading leaves any doubt. They end at the first operand but for `anywhere`.
 */
export function readOptions(words: readonly Word[], grammar: Grammar, where?: 'anywhere'): ReadOptions {
  const parsed = parseOptions(words, 0, grammar, where === undefined);
  if (parsed.doubt !== undefined) return { ok: false, ...parsed.doubt };
  const rest = where === undefined ? words.slice(parsed.next) : parsed.operands.map(({ word }) => word);
  return { ok: true, options: parsed.options, rest };
}

/** What speaks under an allow-list against options (separated by blanks) that take names of files from a file: nobody has looked at those. */
export function takesNamesFrom(names: string): (use: Use) => readonly Finding[] {
  const wanted = names.split(' ');
  return ({ options }) =>
    options
      .filter(({ name }) => wanted.includes(name))
      .map(({ word }) =>
        finding('invalid', 'list_of_files', 'takes names of files from a file; name them here', word.source),
      );
}

/** The value of the last option of these names (separated by blanks), as a word of its own. */
export function optionValue(options: readonly OptionUse[], names: string): Word | undefined {
  const wanted = names.split(' ');
  const value = options.findLast(({ name }) => wanted.includes(name))?.value;
  return value === undefined ? undefined : wordOf(value);
}

/** An argument as a word of its own. */
export function wordOf({ word, start }: Argument): Word {
  return start === 0 ? word : withoutPrefix(word, start);
}

/** True if the option is used, under any of its names (separated by blanks). */
export function hasOption({ options }: Pick<Use, 'options'>, names: string): boolean {
  const wanted = names.split(' ');
  return options.some((option) => wanted.includes(option.name));
}

/** A whole word as an argument. */
export function argumentOf(word: Word, start = 0): Argument {
  const text = leadingText(word);
  return { word, start, text: start === 0 ? text : text.slice(start), complete: word.value !== undefined };
}

/** Arguments that are paths, all used alike. */
export function plainPaths(
  operands: readonly (Argument | undefined)[],
  effect: PathUse['effect'],
): readonly PathUse[] {
  return operands.flatMap((argument) => (argument === undefined ? [] : [{ argument, effect }]));
}

/** Paths whose file is replaced by another, so that their parent directory is written. */
export function replacedPaths(operands: readonly (Argument | undefined)[]): readonly PathUse[] {
  return plainPaths(operands, 'writes').map((path) => ({ ...path, replaced: true }));
}

/** Directories that are written in, and made if they are missing. */
export function directoryPaths(operands: readonly Argument[]): readonly PathUse[] {
  return plainPaths(operands, 'writes').map((path) => ({ ...path, directory: true }));
}

/** The first operands are read, the one at `index` is written. */
export function writtenAt(operands: readonly Argument[], index: number): readonly PathUse[] {
  return operands.map((argument, at) => ({ argument, effect: at === index ? 'writes' : 'reads' }));
}

/** A path that stands inside a script, as an argument of its own. */
export function pathInside({ word }: Argument, path: string): Argument {
  return argumentOf({ ...word, value: path, parts: [{ kind: 'literal', text: path }], source: path });
}

const SINKS: ReadonlySet<string> = new Set(['-', '/dev/null', '/dev/stdout', '/dev/stderr', '/dev/tty']);

/** True for targets that store nothing: a standard stream, the terminal, /dev/null. */
export function isSink(path: string): boolean {
  return SINKS.has(path);
}

/** Devices that every command may read and write. */
const DEVICES: ReadonlySet<string> = new Set(
  'null zero full random urandom tty stdin stdout stderr'.split(' ').map((name) => `/dev/${name}`),
);

/** True for devices that every command may use, and for its own descriptors. */
export function isHarmlessDevice(path: string): boolean {
  return DEVICES.has(path) || /^\/(?:dev\/fd|proc\/self\/fd)\/\d+$/.test(path);
}

/** What is moved there is not in the workspace any more: completes "NAME …". */
export const MOVES_AWAY = 'would move files out of the workspace, to a place that may end with the command';

/** True for a place that need not be in the workspace: absolute, a home, above, on another machine, or not written out. */
export function leadsAway(argument: Argument | undefined): boolean {
  if (argument === undefined) return false;
  return !argument.complete || /^[/~]|(?:^|\/)\.\.(?:\/|$)|^[^/]*:/.test(argument.text);
}

/** The scripts on the command line: values of options, else the first operand. */
export function scriptsOf(
  use: Use,
  scriptOptions: readonly string[],
  fileOptions: readonly string[],
): readonly Argument[] {
  const given = use.options.flatMap(({ name, value }) =>
    scriptOptions.includes(name) && value !== undefined ? [value] : [],
  );
  if (given.length > 0 || use.options.some(({ name }) => fileOptions.includes(name))) return given;
  return use.operands.slice(0, 1);
}

/** A time may name a file of a zone: `TZ="../x"`. */
export function readsZone({ command }: Use): string | undefined {
  return command.words.some(({ value }) => value?.includes('TZ') === true)
    ? 'reads a file for the zone that it is given'
    : undefined;
}

/*
 * What the `runs` of the tables are made of.
 */

export const NOTHING: Runs = { runs: [] };

/** The words of a call are not understood. */
export function refused(message: string, word?: Word, code: NotUnderstoodCode = 'runner'): Runs {
  return { refusal: { code, message, ...(word === undefined ? {} : { word }) } };
}

/** The words as a command of their own; none: nothing runs. */
export function runWords(words: readonly Word[], directory?: Word | 'unknown'): Runs {
  if (words.length === 0) return NOTHING;
  return { runs: [{ kind: 'argv', words, ...(directory === undefined ? {} : { directory }) }] };
}

/** The words as a text that a shell reads; none: nothing runs. */
export function runText(text: readonly Word[], dialect: Dialect = 'posix', directory?: 'unknown'): Runs {
  if (text.length === 0) return NOTHING;
  return { runs: [{ kind: 'text', text, dialect, ...(directory === undefined ? {} : { directory }) }] };
}

/** A runner that goes by the options of a call, which is refused where their reading leaves a doubt. */
export function behindOptions(
  runs: (read: Extract<ReadOptions, { readonly ok: true }>, call: Call) => Runs,
  where?: 'anywhere',
): (call: Call) => Runs {
  return (call) => {
    const read = readOptions(call.args, call.grammar, where);
    return read.ok ? runs(read, call) : refused(`${call.name}: ${read.message}`, read.word);
  };
}

/** Programs that run commands in ways which are not read here; only questions about themselves are understood. */
export function unreadable(call: Call): Runs {
  const [only, ...others] = call.args;
  if (others.length === 0 && /^(?:-V|-h|-l|--version|--help)$/.test(only?.value ?? '')) return NOTHING;
  return refused(
    `${call.name} runs commands in a way that is not understood: run the command directly.`,
    call.words[0],
  );
}
