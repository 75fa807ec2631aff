import { leadingText, literalWord, mergeLiterals, type SimpleCommand, type Word } from '../../model/index.ts';
import { type Argument, inherited, type Use } from '../programs/behaviour.ts';
import { argumentOf, wordOf } from '../programs/options.ts';
import { pathUses } from '../programs/path-uses.ts';
import { isListedVariable } from '../programs/variables.ts';
import { type CheckContext, commandsOf } from './check.ts';
import { pipedInto } from './inner-lines.ts';
import { alternatives, useOf } from './locations.ts';

/** Variables within each other are not followed further. */
const DEEPEST = 4;
/** More possibilities are not told apart. */
const MOST = 64;

/** One of the possible values of a word, with the variables expanded that the line sets. */
interface Meaning {
  readonly word: Word;
  /** It names only new files, or work that tools make anew: `$(mktemp -d)`, `$(find . -name '*.pyc')`. */
  readonly isNew: boolean;
  /** The shell makes several words of it, or none. */
  readonly isSplit: boolean;
}

/**
 * All that a word may stand for, at least one and at most `MOST + 1`. What is known only when it runs stays in the words as it
 * is written.
 */
function meaningsOfWord(
  word: Word,
  command: SimpleCommand,
  context: CheckContext,
  depth = DEEPEST,
): readonly Meaning[] {
  const asWritten: Meaning = { word, isNew: false, isSplit: false };
  if (word.value !== undefined) return [asWritten];
  if (isSubstitutedByNew(word, context)) return [{ ...asWritten, isNew: true }];
  if (depth === 0) return [asWritten];
  for (const [at, part] of word.parts.entries()) {
    const held = heldBy(part, word, command, context);
    if (held === undefined) continue;
    const values = held.flatMap((value) => meaningsOfWord(value, command, context, depth - 1));
    const isNew = values.every((value) => value.isNew);
    // New is only what such a name begins: not `"notes/$name"`, nor `"$name/../notes"`.
    if (isNew && (!isAtStart(word, at) || climbs(word))) continue;
    if (values.length === 0) return [{ ...asWritten, isNew: true }];
    return values
      .flatMap((value): readonly Meaning[] => {
        if (value.isNew) return [{ ...asWritten, isNew: true }];
        if (value.isSplit || isSplit(part, value.word)) {
          const words = word.parts.length === 1 ? wordsOf(value.word) : [word];
          return words.map((one) => ({ word: one, isNew: false, isSplit: true }));
        }
        const { word: replaced } = value;
        const parts = mergeLiterals([
          ...word.parts.slice(0, at),
          ...replaced.parts,
          ...word.parts.slice(at + 1),
        ]);
        const texts = parts.map((one) => (one.kind === 'literal' ? one.text : undefined));
        const isKnown = texts.every((text) => text !== undefined);
        const now = { ...word, parts, value: isKnown ? texts.join('') : undefined };
        return meaningsOfWord(now, command, context, depth - 1);
      })
      .slice(0, MOST + 1);
  }
  return [asWritten];
}

/**
 * What an argument may stand for, as far as it names something that is not new: without `tmp=$(mktemp -d); rm -rf "$tmp"`, and
 * `find . -name '*.pyc' | xargs rm`.
 */
export function meaningsOf(
  argument: Argument,
  command: SimpleCommand,
  context: CheckContext,
): readonly Argument[] {
  const word = wordOf(argument);
  const [first, ...others] = word.parts;
  const isPlain = others.every((part) => part.kind === 'literal');
  if (first?.kind === 'input' && isPlain && !climbs(word) && isSettledByInput(command, context)) return [];
  return wordValues(word, command, context)
    .filter(({ value }) => value !== '')
    .map((one) => argumentOf(one));
}

/** The words that one may stand for and that name something that is not new; the first of them where there are many. */
export function wordValues(word: Word, command: SimpleCommand, context: CheckContext): readonly Word[] {
  return meaningsOfWord(word, command, context)
    .flatMap((meaning) => (meaning.isNew ? [] : [meaning.word]))
    .slice(0, MOST);
}

/** All possible values of a word; `undefined`: they are known only at run time. */
export function settledWords(
  word: Word,
  command: SimpleCommand,
  context: CheckContext,
): readonly Word[] | undefined {
  const meanings = meaningsOfWord(word, command, context);
  const areSettled = meanings.every(
    ({ word: one, isNew, isSplit: split }) => !isNew && !split && one.parts.every(isSettled),
  );
  return areSettled && meanings.length <= MOST ? meanings.map((one) => one.word) : undefined;
}

const isSettled = (part: Word['parts'][number]): boolean =>
  /^(?:literal|glob|tilde|brace)$/.test(part.kind) ||
  (part.kind === 'parameter' && part.plain && /^(?:HOME|PWD)$/.test(part.name));

/** Whether only `./` stands before a part, so that the path begins with it. */
const isAtStart = ({ parts }: Word, at: number) =>
  parts.slice(0, at).every((part) => part.kind === 'literal' && /^(?:\.\/)*$/.test(part.text));

/** Whether it leads out of what it begins with: `"$tmp/../notes"`. */
const climbs = ({ parts: [, ...others] }: Word) =>
  others.some((part) => 'text' in part && part.text.includes('..'));

/** All that an expansion may give; `undefined`: that is not known. */
function heldBy(
  part: Word['parts'][number],
  word: Word,
  command: SimpleCommand,
  context: CheckContext,
): readonly Word[] | undefined {
  if (part.kind === 'brace') return branchesOf(part.text, word);
  if (part.kind !== 'parameter') return undefined;
  const { name, plain } = part;
  const [, operator, text = ''] = new RegExp(`\\$\\{${name}:?([-?])([^{}]*)\\}`).exec(word.source) ?? [];
  // `${name:?}` is the value, or the end of the command.
  if (plain || operator === '?') return assignedTo(name, word, command, context);
  // `${name:-text}`, unless its value comes from outside.
  const isOnly = word.source.split(name).length === 2;
  if (operator !== '-' || !isOnly || !/^[\w./-]*$/.test(text) || mayBeGiven(name, context)) return undefined;
  return assignedTo(name, word, command, context, literalWord(text, word.span));
}

/** Variables that a shell sets by itself: they may hold anything wherever they stand. */
const OF_SHELL = /^(?:_|PWD|OLDPWD|REPLY|OPTARG|DIRSTACK|MAPFILE|COPROC|BASH|BASH_\w+|FUNCNAME|SHELL)$/;

/** Whether a variable may come from elsewhere: the environment, the words of the command (`$1`), a file that the shell reads. */
function mayBeGiven(name: string, context: CheckContext): boolean {
  const { parsed, rules, variables, shell } = context;
  const { environment } = rules;
  if (environment === undefined || shell !== undefined || !/^[A-Za-z_]/.test(name)) return true;
  const isSourced = () =>
    commandsOf(parsed).some((one) => /^(?:source|\.)$/.test(useOf(one, context)?.program.name ?? ''));
  if (!parsed.understood || isSourced()) return true;
  return isListedVariable(name, [...environment, ...Object.keys(variables ?? {})]);
}

/** Whether the shell splits an unquoted value into several words. */
function isSplit(part: Word['parts'][number], value: Word): boolean {
  if (part.kind !== 'parameter' || part.quoted === true) return false;
  return value.parts.some((one) => one.kind === 'literal' && /\s/.test(one.text));
}

/** The words of such a value; what is not known of it may be anything. */
function wordsOf({ parts, span }: Word): readonly Word[] {
  return parts.flatMap((part): readonly Word[] =>
    part.kind === 'literal'
      ? (part.text.match(/\S+/g) ?? []).map((text) => literalWord(text, span))
      : [{ value: undefined, parts: [part], source: '', span }],
  );
}

/** The alternatives of `{a,b}`; `undefined`: another form, or too many. */
function branchesOf(brace: string, { span }: Word): readonly Word[] | undefined {
  const texts = alternatives(brace);
  return texts.length === 1 || texts.length > MOST ? undefined : texts.map((text) => literalWord(text, span));
}

/**
 * All that the line gives to a variable, and what it holds otherwise; `undefined`: where the word stands, it may hold
 * something else.
 */
function assignedTo(
  name: string,
  word: Word,
  { runsLater }: SimpleCommand,
  context: CheckContext,
  otherwise?: Word,
): readonly Word[] | undefined {
  if (OF_SHELL.test(name)) return undefined;
  const { parsed } = context;
  const { loops, variables } = parsed.understood ? parsed.line : parsed.problem;
  const sources = [
    ...loops.filter((loop) => loop.name === name).map(ofLoop),
    ...commandsOf(parsed).flatMap((one) => sourcesIn(one, name, word, context)),
  ];
  const values = sources.map((source) => source.values);
  const isExplained = !variables.includes(name) || sources.some(({ isImplicit }) => isImplicit);
  const first = Math.min(...sources.map(({ at }) => at));
  const isBefore = first <= word.span.start || (runsLater === true && first < Number.POSITIVE_INFINITY);
  if (!isExplained || (!isBefore && otherwise === undefined)) return undefined;
  if (!values.every((some) => some !== undefined)) return undefined;
  return [...values.flat(), ...(otherwise === undefined ? [] : [otherwise])];
}

/** Something that gives a variable its value. */
interface Source {
  /** `undefined`: they are not known. */
  readonly values: readonly Word[] | undefined;
  /** Where it begins; infinite if that is for one command alone. */
  readonly at: number;
  /** Set by other means than an assignment (a loop, `read`), so the variable is listed as such. */
  readonly isImplicit: boolean;
}

function ofLoop({ words }: { readonly words: readonly Word[] }): Source {
  const values = words.length === 0 ? undefined : words;
  return { values, at: Math.min(...words.map(({ span }) => span.start)), isImplicit: true };
}

/** What one command does to a variable. */
function sourcesIn(
  command: SimpleCommand,
  name: string,
  word: Word,
  context: CheckContext,
): readonly Source[] {
  const sources: Source[] = [];
  for (const { name: set, append, value } of command.assignments) {
    // The variable keeps the value that it has: `name=${name:-text}`.
    if (set !== name || (value.span.start === word.span.start && value.source === word.source)) continue;
    const isKnown = !append && !value.source.startsWith('(');
    // An assignment before a program holds only for that program, which may be a shell.
    const at = command.words.length === 0 ? value.span.start : Number.POSITIVE_INFINITY;
    sources.push({ values: isKnown ? [value] : undefined, at, isImplicit: false });
  }
  const use = useOf(command, context);
  const declared = use === undefined ? [] : (inherited(use, 'assigns')?.(use) ?? []);
  for (const one of declared) {
    const text = leadingText(one);
    const at = one.span.start;
    if (text.startsWith(`${name}+=`)) sources.push({ values: undefined, at, isImplicit: false });
    else if (text.startsWith(`${name}=`))
      sources.push({ values: [wordOf(argumentOf(one, name.length + 1))], at, isImplicit: false });
    else if (one.value === name)
      sources.push({ values: valuesGivenBy(use, one, context), at, isImplicit: true });
  }
  // `: "${name:=text}"`
  for (const { source, span } of command.words) {
    const [, text] = new RegExp(`\\$\\{${name}:?=([\\w./-]*)\\}`).exec(source) ?? [];
    if (text === undefined) continue;
    const values = mayBeGiven(name, context) ? undefined : [literalWord(text, span)];
    sources.push({ values, at: span.start, isImplicit: true });
  }
  const isOther = !context.parsed.understood && !declared.some(({ value }) => value === name);
  if (isOther && command.words.slice(1).some(({ value }) => value === name))
    sources.push({ values: undefined, at: command.span.start, isImplicit: true });
  return sources;
}

/** `local name`, `unset name`: nothing. `find dist | while read -r name`: each line, which is new. */
function valuesGivenBy(use: Use | undefined, name: Word, context: CheckContext): readonly Word[] | undefined {
  if (use === undefined) return undefined;
  if (inherited(use, 'descriptors') === undefined) return [literalWord('', name.span)];
  const isWhole = inherited(use, 'splitsInput') === true && use.operands.length === 1;
  return isWhole && namesNew(use.command, context) ? [] : undefined;
}

/** Whether a word is a substitution that names only new or regenerable files: `$(mktemp)`, `$(find . -name '*.pyc')`, `<(find build)`. */
function isSubstitutedByNew(word: Word, context: CheckContext): boolean {
  const [first, ...others] = word.parts;
  if (first?.kind !== 'command-substitution' && first?.kind !== 'process-substitution') return false;
  if (!others.every((part) => part.kind === 'literal' && !part.text.includes('..'))) return false;
  const [, text] = /^"?[$`]\(?([^()`]+)[)`]/.exec(word.source) ?? [];
  // In a text that a shell reads, all have the place of that text.
  const inside = commandsOf(context.parsed).filter(
    ({ span, words, redirects }) =>
      (span.start > word.span.start && span.end < word.span.end) ||
      (redirects.length === 0 && words.map(({ source }) => source).join(' ') === text),
  );
  return inside.length > 0 && inside.every((command) => namesNew(command, context));
}

function namesNew(command: SimpleCommand | undefined, context: CheckContext): boolean {
  const use = command === undefined ? undefined : useOf(command, context);
  if (command === undefined || use === undefined) return false;
  if (inherited(use, 'namesNew')?.(use) === true) return true;
  return passesOn(command, use) && getsNew(command, context);
}

/** Whether its standard input has only names of new files. */
function getsNew(command: SimpleCommand, context: CheckContext): boolean {
  const [around, ...others] = commandsOf(context.parsed).filter(
    ({ words, span, redirects }) =>
      words.length === 0 &&
      span.start <= command.span.start &&
      command.span.end <= span.end &&
      redirects.some(({ operator }) => operator.startsWith('<')),
  );
  // A pipe within that: `while read d; do ls "$d" | xargs rm; done < list`.
  const before = around === undefined ? '' : context.text.slice(around.span.start, command.span.start);
  if (around === undefined || /(?<!\|)\|(?!\|)|>\(/.test(before))
    return namesNew(pipedInto(command, context), context);
  const [redirect, ...more] = around.redirects.filter(({ operator }) => operator.startsWith('<'));
  return (
    others.length === 0 &&
    more.length === 0 &&
    redirect !== undefined &&
    isSubstitutedByNew(redirect.target, context)
  );
}

/** It prints, or hands to what it runs, nothing but what it is piped: `sort -u`, `xargs -0`. */
function passesOn(command: SimpleCommand, use: Use): boolean {
  const harmless = inherited(use, 'passesOn')?.split(' ');
  return (
    harmless !== undefined &&
    use.unknown.length === 0 &&
    use.openEnded.length === 0 &&
    use.options.every(
      ({ name, value }) => harmless.includes(name) || harmless.includes(`${name}=${value?.text}`),
    ) &&
    // It reads no file by name, searches no directory, and has no redirected input.
    pathUses(command, use).length === 0 &&
    use.program.searchesAll?.(use) !== true &&
    !command.redirects.some(({ operator }) => operator.startsWith('<'))
  );
}

/** The runner says itself what is lost (`find -exec rm`), or gets only such names: `find … | xargs rm`. */
function isSettledByInput({ runBy }: SimpleCommand, context: CheckContext): boolean {
  const commands = commandsOf(context.parsed);
  const runner = runBy === undefined ? undefined : commands[runBy];
  const use = runner === undefined ? undefined : useOf(runner, context);
  if (runner === undefined || use === undefined) return false;
  if (inherited(use, 'loses') !== undefined) return true;
  return passesOn(runner, use) && getsNew(runner, context);
}
