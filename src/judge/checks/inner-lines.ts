import { resolve } from 'node:path';
import { directoriesBetween, isBeneath } from '../../base/absolute-path.ts';
import { leadingText, type SimpleCommand, type Word } from '../../model/index.ts';
import { type Argument, inherited, type Use } from '../programs/behaviour.ts';
import { argumentOf, hasOption, wordOf } from '../programs/options.ts';
import { pathUses } from '../programs/path-uses.ts';
import { findProgram } from '../programs/program-table.ts';
import { type CheckContext, commandsOf } from './check.ts';
import { directoriesOf, pathsOf, useOf } from './locations.ts';

/** Text for a shell that a command of a line runs, and that does not stand in its words. */
export interface InnerLine {
  readonly text: string;
  /** Where it runs. */
  readonly cwd: string;
  /** For people: what it is of. */
  readonly of: string;
  /** The file that it is the content of, as it is on the disk. */
  readonly file?: string;
  /** The text is a recipe in that file (of a makefile, say): its program decides which ones run. */
  readonly isRecipe?: boolean;
}

/** A line, and those that run it, the innermost first: what an outer one writes, an inner one may run. */
export type Nesting = readonly [CheckContext, ...CheckContext[]];

/** What the scripts hold that a command runs: those of the workspace, and those that the line itself writes. */
export function scriptsRunBy(command: SimpleCommand, use: Use, nesting: Nesting): readonly InnerLine[] {
  const [context] = nesting;
  const cwds = knownDirectories(command, context);
  return scriptsOf(command, use, context).flatMap((script) =>
    pathsOf(script, cwds, context).flatMap(({ canonical }) => {
      const isProgram = script.word === command.words[0];
      return textsOf(canonical, nesting)
        .filter(({ text }) => !isProgram || isForShell(text))
        .flatMap(({ text, file }) =>
          cwds.map((cwd) => ({ text, cwd, of: script.word.source, ...(file === undefined ? {} : { file }) })),
        );
    }),
  );
}

/** What a shell runs because of a variable that the line sets: a file as it starts, or a text before it asks for a line. */
export function linesOfVariables(command: SimpleCommand, use: Use, nesting: Nesting): readonly InnerLine[] {
  const [context] = nesting;
  if (inherited(use, 'interprets') !== 'shell') return [];
  const cwds = knownDirectories(command, context);
  const run = (text: string, of: string) => cwds.map((cwd) => ({ text, cwd, of }));
  const files = valuesSet(/^(?:BASH_ENV|ENV)=/, context).flatMap((value) => pathsOf(value, cwds, context));
  return [
    ...files.flatMap(({ canonical }) =>
      textsOf(canonical, nesting).flatMap(({ text }) => run(text, canonical)),
    ),
    ...valuesSet(/^PROMPT_COMMAND=/, context).flatMap(({ text }) => run(text, 'PROMPT_COMMAND')),
  ];
}

/** What a line gives to variables, before a command or by what declares them. */
const valuesSet = (name: RegExp, context: CheckContext): readonly Argument[] =>
  commandsOf(context.parsed).flatMap((command) => [
    ...command.assignments.flatMap((one) => (name.test(`${one.name}=`) ? [argumentOf(one.value)] : [])),
    ...command.words.flatMap((word) => {
      const [start] = name.exec(leadingText(word)) ?? [];
      return start === undefined ? [] : [argumentOf(wordOf(argumentOf(word, start.length)))];
    }),
  ]);

/** The recipes that a command has run from files of the workspace: `make clean`, `npm run build`. */
export function recipesRunBy(command: SimpleCommand, use: Use, nesting: Nesting): readonly InnerLine[] {
  const [context] = nesting;
  const recipes = inherited(use, 'recipes')?.(use);
  if (recipes === undefined) return [];
  const { workspace } = context.rules;
  const of = command.words.map(({ source }) => source).join(' ');
  const go = (cwds: readonly string[], to: Argument) =>
    pathsOf(to, cwds, context, { partial: false }).map(({ canonical }) => canonical);
  return recipes.directories.reduce(go, knownDirectories(command, context)).flatMap((start) => {
    const places = recipes.isUpwards === true ? [start, ...directoriesAround(start, workspace)] : [start];
    for (const cwd of places) {
      const exists = (name: string) => context.paths.resolve(resolve(cwd, name)).kind !== 'missing';
      for (const name of recipes.files) {
        const texts = textsOf(context.paths.resolve(resolve(cwd, name)).canonical, nesting);
        if (texts.length === 0) continue;
        return texts.flatMap(({ text, file }) =>
          recipes.linesIn(text, exists).map((line) => ({
            text: line,
            cwd,
            of,
            isRecipe: true,
            ...(file === undefined ? {} : { file }),
          })),
        );
      }
    }
    return [];
  });
}

/** Up to the workspace. */
const directoriesAround = (directory: string, workspace: string) =>
  isBeneath(directory, workspace) && directory !== workspace
    ? [...directoriesBetween(directory, workspace).toReversed(), workspace]
    : [];

/** The directories in which a command may run; the workspace if that is not known. */
function knownDirectories(command: SimpleCommand, context: CheckContext): readonly string[] {
  return [...new Set(directoriesOf(command, context).map((cwd) => cwd ?? context.rules.workspace))];
}

/** The words that name a script: of a shell, or the program itself where that is a file. */
function scriptsOf(command: SimpleCommand, use: Use, context: CheckContext): readonly Argument[] {
  const [program] = command.words;
  const texts = [...command.words.slice(1), ...command.redirects.map(({ target }) => target)];
  const printed = runsText(use) ? texts.flatMap((word) => filesPrintedIn(word, context)) : [];
  if (printed.length > 0) return printed;
  if (use.program.unlisted === true)
    return program?.value?.includes('/') === true ? [argumentOf(program)] : [];
  if (inherited(use, 'interprets') !== 'shell' || hasOption(use, 'c')) return [];
  const isText = command.words.some(({ value }) => /^-[A-Za-z]*c$/.test(value ?? ''));
  const [script] = use.operands;
  if (isText) return [];
  if (script !== undefined && !hasOption(use, 's')) return [script];
  const [input] = command.redirects.filter(({ operator }) => operator === '<');
  if (input !== undefined) return [argumentOf(input.target)];
  const before = pipedInto(command, context);
  return before === undefined ? [] : filesPassedOn(before, context);
}

/** Whether a program runs a text: `eval TEXT`, `bash -c TEXT`, `source FILE`. The word may be the output of another command. */
const runsText = (use: Use) => use.program.name === 'eval' || inherited(use, 'interprets') === 'shell';

/** `$(cat s.sh)`, `$(<s.sh)`, `<(cat s.sh)`: the files whose content a word is. */
function filesPrintedIn(word: Word, context: CheckContext): readonly Argument[] {
  const [part] = word.parts;
  const isOne = /^(?:command|process)-substitution$/.test(part?.kind ?? '') && word.parts.length === 1;
  if (!isOne) return [];
  return commandsOf(context.parsed)
    .filter(({ span }) => span.start > word.span.start && span.end < word.span.end)
    .flatMap((one) => filesPassedOn(one, context));
}

/** The files that a command prints as they are, all or some lines of them. */
function filesPassedOn(command: SimpleCommand, context: CheckContext): readonly Argument[] {
  const use = useOf(command, context);
  if (use === undefined ? command.words.length > 0 : inherited(use, 'passesOn') === undefined) return [];
  return pathUses(command, use).flatMap(({ argument, effect }) => (effect === 'reads' ? [argument] : []));
}

/** A file that is executed is text for a shell if it says so, or nothing at all. */
const isForShell = (text: string): boolean =>
  /^#!\s*\S*\/(?:env\s+(?:-\S+\s+)*)?(?:ba|da|a|z|k|mk)?sh\b/.test(text) || !/^(?:#!|\x7fELF)/.test(text);

/** What may be in a file when it runs: what the line wrote to it before, and what is there now. */
function textsOf(path: string, [context, ...outer]: Nesting): readonly Pick<InnerLine, 'text' | 'file'>[] {
  const { rules, inner } = context;
  const written = [context, ...outer].flatMap((line) => writtenTo(path, line));
  const isOurs = [rules.workspace, ...rules.writable].some((root) => isBeneath(path, root));
  const there = isOurs ? inner?.read(path) : undefined;
  return [
    ...written.map((text) => ({ text })),
    ...(there === undefined ? [] : [{ text: there, file: path }]),
  ];
}

/** The texts that a line writes to a file, as far as they stand in it; of a copy, those of the file that it is one of. */
function writtenTo(path: string, context: CheckContext): readonly string[] {
  return commandsOf(context.parsed).flatMap((command) => {
    const use = useOf(command, context);
    const cwds = directoriesOf(command, context);
    const leads = (argument: Argument) =>
      pathsOf(argument, cwds, context).some(({ canonical }) => canonical === path);
    const uses = pathUses(command, use);
    if (!uses.some(({ argument, effect }) => effect === 'writes' && leads(argument))) return [];
    const sources = uses.filter(({ effect }) => effect !== 'writes');
    const copied = sources.flatMap(({ argument }) =>
      pathsOf(argument, cwds, context).flatMap(({ canonical }) =>
        canonical === path ? [] : textsOf(canonical, [context]).map(({ text }) => text),
      ),
    );
    const printers = command.words.length === 0 ? commandsWithin(command, context) : [command];
    const printed = printers.flatMap(
      (one) => printedBy(one, useOf(one, context), context) ?? inputOf(one, context) ?? [],
    );
    return [...(printed.length === 0 ? [] : [printed.map(asFarAsKnown).join('\n')]), ...copied];
  });
}

/** `{ echo one; echo two; } > file`: the commands that print into it. */
function commandsWithin({ span }: SimpleCommand, context: CheckContext): readonly SimpleCommand[] {
  return commandsOf(context.parsed).filter(
    (one) => one.words.length > 0 && one.span.start >= span.start && one.span.end <= span.end,
  );
}

function printedBy(command: SimpleCommand, use: Use | undefined, context: CheckContext): Word | undefined {
  const name = use?.program.name;
  return name === undefined
    ? undefined
    : findProgram(name)?.prints?.(command.words, inputOf(command, context));
}

/** The text on its standard input: a document of the line, or what a command before it prints. */
function inputOf(command: SimpleCommand, context: CheckContext): Word | undefined {
  const document = command.redirects.findLast(({ operator }) => operator.startsWith('<<'));
  if (document !== undefined) return document.body ?? document.target;
  const before = pipedInto(command, context);
  return before && printedBy(before, useOf(before, context), context);
}

/** A text with a variable in the place of what is known only when it runs. */
function asFarAsKnown({ value, parts }: Word): string {
  if (value !== undefined) return value;
  const nameOf = (part: Word['parts'][number]) => (part.kind === 'parameter' && part.plain ? part.name : '_');
  return parts.map((part) => ('text' in part ? part.text : `\${${nameOf(part)}}`)).join('');
}

/** What stands before it in a pipeline, if that is one command and runs no other. */
export function pipedInto({ span }: SimpleCommand, context: CheckContext): SimpleCommand | undefined {
  const commands = commandsOf(context.parsed);
  const before = commands.filter(
    (other) =>
      other.span.end <= span.start &&
      /^\s*\|&?\s*(?:while\s+)?$/.test(context.text.slice(other.span.end, span.start)),
  );
  const [only, more] = before;
  const isRunner = commands.some(({ runBy }) => runBy !== undefined && commands[runBy] === only);
  return more === undefined && !isRunner ? only : undefined;
}

/** The name of an alias that a command may call; `undefined`: it calls a verb that its program has, or none. */
export function aliasCalledBy(use: Use): string | undefined {
  const [name] = use.operands;
  const isCall = use.program.hasAliases === true && use.verbs.length === 0 && name?.complete === true;
  return isCall ? name.text.toLowerCase() : undefined;
}

/** What an alias stands for, by the settings in a directory and by those that the lines make, as lines. */
export function linesOfAlias(
  use: Use,
  name: string,
  nesting: Nesting,
  settings: readonly (readonly [name: string, value: string])[],
  cwds: readonly string[],
): readonly InnerLine[] {
  const values = [
    ...settings.flatMap(([key, value]) => (key.toLowerCase() === name ? [value] : [])),
    ...nesting.flatMap((context) => aliasesSetBy(name, context)),
  ];
  const rest = use.operands.slice(1).map(({ word }) => word.source);
  const [program] = use.command.words;
  return [...new Set(values)].flatMap((value) => {
    const text = value.startsWith('!')
      ? [value.slice(1), ...rest].join(' ')
      : [program?.source ?? '', value, ...rest].join(' ');
    // What stands behind `!` runs at the top of the repository.
    const places = value.startsWith('!') ? [...cwds, nesting[0].rules.workspace] : cwds;
    return [...new Set(places)].map((cwd) => ({ text, cwd, of: `the alias ${name}` }));
  });
}

/** What a line sets an alias to: by `config alias.NAME VALUE`, by variables, or in a text that becomes a file of settings. */
function aliasesSetBy(name: string, context: CheckContext): readonly string[] {
  const isKey = (word: Word | undefined) => {
    const [, key] = /^alias\.(.+?)(?:\.command)?$/is.exec(word?.value ?? '') ?? [];
    return key?.toLowerCase() === name;
  };
  const commands = commandsOf(context.parsed);
  const inWords = commands.flatMap(({ words }) =>
    words.flatMap((word, at) => (isKey(word) ? (words[at + 1]?.value ?? []) : [])),
  );
  const assignments = commands.flatMap((command) => command.assignments);
  const inVariables = assignments.flatMap(({ name: variable, value }) => {
    const [, number] = /^GIT_CONFIG_KEY_(\d+)$/.exec(variable) ?? [];
    const other = assignments.find((one) => one.name === `GIT_CONFIG_VALUE_${number}`);
    return number !== undefined && isKey(value) ? (other?.value.value ?? []) : [];
  });
  const inParameters = assignments.flatMap(({ name: variable, value }) =>
    variable === 'GIT_CONFIG_PARAMETERS'
      ? [...(value.value ?? '').matchAll(/alias\.([\w-]+)'?='?([^']*)/gi)].flatMap(([, key, text]) =>
          key?.toLowerCase() === name ? (text ?? []) : [],
        )
      : [],
  );
  const [, ...sections] = context.text.replaceAll('\\n', '\n').split(/\[alias\]/i);
  const inTexts = sections.flatMap((section) =>
    [...section.matchAll(/^\s*([\w.-]+)\s*=\s*"?([^"\n']*)/gm)].flatMap(([, key = '', value = '']) =>
      key.toLowerCase() === name ? [value.trim()] : [],
    ),
  );
  return [...inWords, ...inVariables, ...inParameters, ...inTexts];
}
