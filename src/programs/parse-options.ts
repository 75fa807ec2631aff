import type { Word } from '../model/command-line.ts';
import type { Grammar } from './behaviour.ts';
import { findLong, type OptionRule, type OptionTable, optionTable } from './option-table.ts';
import { type Argument, argumentOf, leadingText, type OptionUse } from './use.ts';

/** Options and operands of a list of words. */
interface ParsedOptions {
  readonly options: OptionUse[];
  readonly operands: Argument[];
  readonly unknown: Word[];
  readonly openEnded: Word[];
  /** Index in `operands` of the first one behind `--`; its length if there is none. */
  readonly afterDashes: number;
  /** Index in `words` behind what was read: of the first operand if options end there. */
  readonly next: number;
}

const NO_GRAMMAR: Grammar = { open: true };

/**
 * Reads options by a table, in the way of getopt_long. Stops before the first operand if the grammar or
 * `stopAtOperand` says so.
 */
export function parseOptions(
  words: readonly Word[],
  from: number,
  grammar: Grammar = NO_GRAMMAR,
  stopAtOperand = grammar.stopAtOperand === true,
): ParsedOptions {
  const options: OptionUse[] = [];
  const operands: Argument[] = [];
  const unknown: Word[] = [];
  const openEnded: Word[] = [];
  let afterDashes: number | undefined;
  let index = from;

  /** Records an option; takes the next word if its value stands there. */
  const take = (rule: OptionRule, word: Word, attached: Argument | undefined): void => {
    let value = rule.value === 'none' ? undefined : attached;
    if (rule.value === 'required' && value === undefined) {
      const next = words[index + 1];
      if (next !== undefined) {
        value = argumentOf(next);
        index++;
      }
    }
    options.push({
      name: rule.name,
      effect: rule.effect,
      value,
      inPlace: rule.inPlace,
      word,
    });
  };

  const reading: Reading = { table: optionTable(grammar), take, unknown };
  for (; index < words.length; index++) {
    const word = words[index];
    if (word === undefined) break;
    const text = leadingText(word);
    const complete = word.value !== undefined;
    if (afterDashes !== undefined || text[0] !== '-' || (text === '-' && complete)) {
      if (afterDashes === undefined && text === '' && !complete && !isDescriptor(word)) openEnded.push(word);
      if (stopAtOperand) break;
      operands.push(argumentOf(word));
    } else if (text === '--' && complete) {
      if (stopAtOperand) {
        index++;
        afterDashes = 0;
        break;
      }
      afterDashes = operands.length;
    } else if (grammar.style === 'single-dash') {
      readSingleDash(word, text, reading);
    } else if (text.startsWith('--')) {
      readLong(word, text, reading);
    } else if (!(grammar.numeric === true && /^-\d+$/.test(text))) {
      readShort(word, text, reading);
    }
  }
  return {
    options,
    operands,
    unknown,
    openEnded,
    afterDashes: afterDashes ?? operands.length,
    next: index,
  };
}

/** True for a process substitution alone: bash always puts `/dev/fd/N` there. */
function isDescriptor({ parts }: Word): boolean {
  return parts.length === 1 && parts[0]?.kind === 'process-substitution';
}

/** What reading one word with options needs, and where its options go. */
interface Reading {
  readonly table: OptionTable;
  readonly take: (rule: OptionRule, word: Word, attached: Argument | undefined) => void;
  readonly unknown: Word[];
}

function readLong(word: Word, text: string, { table, take, unknown }: Reading): void {
  const complete = word.value !== undefined;
  const equals = text.indexOf('=');
  if (equals < 0 && !complete) {
    unknown.push(word);
    return;
  }
  const rule = findLong(table, equals < 0 ? text.slice(2) : text.slice(2, equals));
  if (rule === undefined) unknown.push(word);
  else take(rule, word, equals < 0 ? undefined : argumentOf(word, equals + 1));
}

function readShort(word: Word, text: string, { table, take, unknown }: Reading): void {
  const complete = word.value !== undefined;
  for (let at = 1; at < text.length; at++) {
    const rule = table.rules.get(text[at] ?? '');
    if (rule === undefined) {
      unknown.push(word);
      return;
    }
    if (rule.value === 'none') {
      take(rule, word, undefined);
      continue;
    }
    const attached = at + 1 < text.length || !complete ? argumentOf(word, at + 1) : undefined;
    take(rule, word, attached);
    return;
  }
  // What follows may be more letters.
  if (!complete) unknown.push(word);
}

function readSingleDash(word: Word, text: string, { table, take, unknown }: Reading): void {
  const dashes = text.startsWith('--') ? 2 : 1;
  const equals = text.indexOf('=');
  const rule = table.rules.get(equals < 0 ? text.slice(dashes) : text.slice(dashes, equals));
  if (rule === undefined || (equals < 0 && word.value === undefined)) unknown.push(word);
  else take(rule, word, equals < 0 ? undefined : argumentOf(word, equals + 1));
}
