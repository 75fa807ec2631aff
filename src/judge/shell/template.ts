import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { shellWord, shellWords } from '../../base/shell-quote.ts';
import type { Parsed, SimpleCommand, TemplateValue, Word } from '../../model/index.ts';
import { parseShell } from './parse.ts';

/** How a quoted value is put into the text around it: as it is, or between a quote that is closed before and opened again. */
const QUOTES = ['', '"', "'"] as const;
type Quote = (typeof QUOTES)[number];

/** Whatever means something to a shell: a place where this stays one piece of text is good for every value. */
const PROBE = ' "$(x)`x`\'\\ *?[!x];&|>x\n#~{a,b}$x=';

/**
 * The shell string of a template: its text, with each value quoted, so that bash takes it for text and never reads it as
 * code. An array becomes several arguments. Where a value may stand is for the parser to say: it has to find the same
 * commands, with the same words, whatever the value is.
 * @throws {SandboxError} `usage.invalid`: a value cannot be an argument, or stands where it would be more than text.
 */
export function commandOfTemplate(texts: readonly string[], values: readonly TemplateValue[]): string {
  const words = values.map(wordsOf);
  const marks = marksFor([...texts, ...words], values.length);
  const commands = understood(join(texts, marks));
  const quotes = values.map((value, index) => {
    if (typeof value === 'object') refuseWithin(commands, marks[index] ?? '', value, index);
    return quoteAt(texts, marks, index);
  });
  const written = words.map((word, index) => `${quotes[index]}${word}${quotes[index]}`);
  const text = join(texts, written);
  understood(text);
  // Again, with what the others really are: one of them may be a program that reads its arguments as code.
  if (values.length > 1)
    for (const [index, mark] of marks.entries())
      quoteAt(texts, withAt(written, index, mark), index, [quotes[index] ?? '']);
  return text;
}

function understood(text: string): readonly SimpleCommand[] {
  const parsed = parseShell(text);
  if (parsed.understood) return parsed.line.commands;
  throw wrong(`it is not understood. ${parsed.problem.message}`);
}

/** The quotes around a place, in which a value is text. `others`: what stands in the other places; in this one a mark. */
function quoteAt(
  texts: readonly string[],
  others: readonly string[],
  index: number,
  quotes: readonly Quote[] = QUOTES,
): Quote {
  const mark = others[index] ?? '';
  const marked = structureOf(parseShell(join(texts, others)));
  const expected = marked?.replaceAll(mark, JSON.stringify(PROBE).slice(1, -1));
  const found = quotes.find((quote) => {
    const probed = withAt(others, index, `${quote}${shellWord(PROBE)}${quote}`);
    return structureOf(parseShell(join(texts, probed))) === expected;
  });
  if (found !== undefined && marked !== expected) return found;
  throw wrong(
    `value ${index + 1} stands where it would be read as code or not at all; it can be an argument or a part of one, the value of a variable, or the file of a redirect`,
  );
}

/** An array is arguments of its own. */
function refuseWithin(
  commands: readonly SimpleCommand[],
  mark: string,
  value: readonly unknown[],
  index: number,
): void {
  const at = commands.flatMap(({ words }) =>
    words.map(({ source }, place) => (source === mark ? place : -1)),
  );
  const place = at.find((found) => found >= 0);
  if (place === undefined) throw wrong(`value ${index + 1} is an array, and has to stand by itself`);
  if (place === 0 && value.length === 0)
    throw wrong(`value ${index + 1} is an empty array, where the program has to stand`);
}

function wordsOf(value: TemplateValue, index: number): string {
  return Array.isArray(value)
    ? shellWords(value.map((item) => textOf(item, index)))
    : shellWord(textOf(value, index));
}

function textOf(value: unknown, index: number): string {
  if (typeof value === 'string' && !value.includes('\0')) return value;
  if (typeof value === 'number' && Number.isFinite(value)) return `${value}`;
  const what = typeof value === 'string' ? 'has a NUL character' : `is ${describe(value)}`;
  throw wrong(`value ${index + 1} ${what}; values are strings without NUL, numbers, and arrays of them`);
}

const describe = (value: unknown) =>
  value === null || typeof value === 'number' ? `${value}` : typeof value;

/** So many plain words that are in none of the texts. */
function marksFor(texts: readonly string[], count: number): readonly string[] {
  let stem = 'VALUE';
  while (texts.some((text) => text.includes(stem))) stem += 'X';
  return Array.from({ length: count }, (_, index) => `${stem}${index}E`);
}

const withAt = (all: readonly string[], index: number, one: string) =>
  all.map((other, at) => (at === index ? one : other));

function join(texts: readonly string[], values: readonly string[]): string {
  return texts.map((text, index) => `${text}${values[index] ?? ''}`).join('');
}

/** Which commands there are, with all their words, as text; `undefined`: it is not understood. */
function structureOf(parsed: Parsed): string | undefined {
  if (!parsed.understood) return undefined;
  const wordOf = ({ parts }: Word) => parts;
  return JSON.stringify(
    parsed.line.commands.map(({ words, assignments, redirects, background, runBy, callsFunction }) => ({
      words: words.map(wordOf),
      assignments: assignments.map(({ name, append, value }) => [name, append, wordOf(value)]),
      redirects: redirects.map(({ operator, descriptor, target, body }) => [
        ...[operator, descriptor, wordOf(target), body],
      ]),
      ...{ background, runBy, callsFunction },
    })),
  );
}

const wrong = (what: string) => new SandboxError('usage.invalid', `a template of run: ${what}`);
