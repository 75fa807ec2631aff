import { resolve } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { readableWord } from '../../base/shell-quote.ts';
import type { ProposedRule, Reason, SimpleCommand, Word } from '../../model/index.ts';
import type { PathUse, Program } from '../programs/behaviour.ts';
import { inherited } from '../programs/behaviour.ts';
import { argumentOf } from '../programs/options.ts';
import { pathUses } from '../programs/path-uses.ts';
import { describeAs, findProgram } from '../programs/program-table.ts';
import { findingsOf } from '../programs/risk.ts';
import { proposedRule } from './allow-rules.ts';
import { type CheckContext, commandsOf } from './check.ts';
import { type CodeFiles, codeFrom } from './code-files.ts';
import { directoriesOf, mayWrite, pathsOf, useOf } from './locations.ts';
import { filesLost } from './losses.ts';

/** What one line would touch, as far as its words tell. The kernel knows the rest only when it happens. */
export interface CommandEffects {
  readonly parts: readonly PartOfLine[];
  /** Canonical paths, each once. */
  readonly reads: readonly string[];
  readonly writes: readonly string[];
  /** Programs and scripts that commands can change. */
  readonly executes: readonly string[];
  /** Where patterns begin to match: what is before the first `*`, as a path. */
  readonly patterns: readonly string[];
  /** Directories that programs search without being told which. */
  readonly searches: readonly string[];
  /**
   * Options that make a program run another one or use the network, which it does not do by its name, with the program
   * before them: `git core.pager=…`.
   */
  readonly flags: readonly string[];
  /** All of the text. */
  readonly text: string;
  /** The files that would be gone, of those that are asked about. Missing: not looked for. */
  readonly lost?: () => readonly string[];
  /** The hosts that its words name, as they are written. */
  readonly hosts?: readonly string[];
  /** Where it would push from, and the words behind `git push` that are no options. */
  readonly pushes?: readonly { readonly directory: string; readonly words: readonly string[] }[];
  /** A rule that would answer all that is asked about it. Missing: there is none, or it is not known. */
  readonly proposedRule?: () => ProposedRule | undefined;
}

/** One simple command of a line. */
interface PartOfLine {
  readonly source: string;
  /** Canonical; `undefined`: a builtin, a function, or nothing that was found. */
  readonly executable: string | undefined;
  /** Canonical paths of the directories in which it may run. */
  readonly directories: readonly string[];
  /**
   * Canonical paths of files that decide what it does and that commands can change, there or not: scripts and settings
   * that its words name, and what programs of its kind look for where it runs. Looked for when it is called.
   */
  readonly files: () => readonly string[];
  /** By its words alone, it runs code that cannot be seen beforehand. */
  readonly isOpen: boolean;
  /** Code that it runs and that cannot be known beforehand: what comes through a pipe, a module whose name is computed. */
  readonly unseen: () => readonly string[];
  /** Canonical paths that it removes or moves away, or patterns of them. */
  readonly removes: readonly string[];
  /** Canonical paths that it writes, or patterns of them. */
  readonly writes: readonly string[];
  /** Paths of `writes` whose content it replaces; `>> log`, `touch` and `mkdir` do not. */
  readonly overwrites: readonly string[];
  /** Patterns of its words as absolute paths: what they match is what it is about. */
  readonly matches: readonly string[];
  /** What the checks said about words of it. */
  readonly remarks: readonly string[];
}

/** More files than that no person looks through. */
const MOST_FILES = 256;

/** Whether a write keeps the present content of the file. */
function leavesContent({ redirects, words }: SimpleCommand, { argument: { word } }: PathUse): boolean {
  const redirect = redirects.find(({ target }) => target === word);
  if (redirect !== undefined) return /^(?:>>|&>>)$/.test(redirect.operator);
  return /^(?:touch|mkdir)$/.test(words[0]?.value ?? '');
}

/** Looks at every simple command of a line; a line that was not understood shows what was recognised. */
export function effectsOf(
  context: CheckContext,
  reasons: readonly Reason[],
  source: string | undefined,
): CommandEffects {
  const touched = { reads: new Set<string>(), writes: new Set<string>(), executes: new Set<string>() };
  const patterns = new Set<string>();
  const searches = new Set<string>();
  const parts = commandsOf(context.parsed).map((command): PartOfLine => {
    const cwds = directoriesOf(command, context);
    const written = new Set<string>();
    const removed = new Set<string>();
    const kept = new Set<string>();
    for (const use of pathUses(command, useOf(command, context))) {
      for (const { canonical } of pathsOf(use.argument, cwds, context)) {
        touched[use.effect === 'reads' ? 'reads' : 'writes'].add(canonical);
        if (use.effect !== 'reads') written.add(canonical);
        if (use.effect === 'removes') removed.add(canonical);
        if (leavesContent(command, use)) kept.add(canonical);
      }
    }
    for (const word of command.words) for (const place of patternsOf(word, cwds)) patterns.add(place);
    if (searchesEverything(command)) for (const place of cwds) if (place !== undefined) searches.add(place);
    const name = command.words[0]?.value;
    const [cwd] = cwds;
    const executable =
      name === undefined || name === '' || command.callsFunction === true || cwd === undefined
        ? undefined
        : context.findExecutable(name, cwd);
    const scripts = scriptsOf(command, cwds, context);
    for (const file of [executable, ...scripts]) {
      if (file !== undefined && mayWrite(file, context)) touched.executes.add(file);
    }
    const directories = cwds.flatMap((directory) =>
      directory === undefined ? [] : [context.paths.resolve(directory).canonical],
    );
    let code: CodeFiles | undefined;
    const codeOf = () => {
      code ??= codeFrom(
        [executable, ...scripts].flatMap((path) => path ?? []),
        directories,
        context,
      );
      return code;
    };
    return {
      source: sourceOf(command, source),
      executable,
      directories,
      // Files that it writes do not decide what it does.
      files: () =>
        [...new Set([...changeableFiles(command, directories, context), ...codeOf().files])].filter(
          (path) => !written.has(path),
        ),
      isOpen: cwds.includes(undefined) || unseenCodeOf(command).length > 0,
      unseen: () => [
        ...(cwds.includes(undefined) ? ['the directory in which it runs'] : []),
        ...unseenCodeOf(command),
        ...codeOf().unseen,
      ],
      removes: [...removed],
      writes: [...written].filter((path) => !removed.has(path)),
      overwrites: [...written].filter((path) => !removed.has(path) && !kept.has(path)),
      matches: command.words.flatMap((word) => matchesOf(word, cwds)),
      remarks: remarksOn(command, reasons),
    };
  });
  return {
    parts,
    reads: [...touched.reads],
    writes: [...touched.writes],
    executes: [...touched.executes],
    patterns: [...patterns],
    searches: [...searches],
    flags: [...new Set(commandsOf(context.parsed).flatMap((command) => flagsOf(command, context)))],
    text: context.text,
    lost: () =>
      filesLost(
        parts.flatMap(({ removes }) => removes),
        reasons,
        context,
      ),
    hosts: [...new Set(commandsOf(context.parsed).flatMap((command) => hostsOf(command, context)))],
    pushes: commandsOf(context.parsed).flatMap((command) => pushOf(command, context)),
    proposedRule: () => proposedRule(context, reasons),
  };
}

/** The words that say whom a program talks to; what works on a repository names remotes. */
function hostsOf(command: SimpleCommand, context: CheckContext): readonly string[] {
  const use = useOf(command, context);
  if (use === undefined || use.program.repository !== undefined) return [];
  return (inherited(use, 'hosts')?.(use) ?? []).map(({ word }) => word.value ?? word.source);
}

function pushOf(command: SimpleCommand, context: CheckContext): NonNullable<CommandEffects['pushes']> {
  const use = useOf(command, context);
  const directory = directoriesOf(command, context)[0];
  if (use?.program.repository === undefined || use.verbs[0] !== 'push' || directory === undefined) return [];
  const [, ...words] = command.words.map(({ value }) => value ?? '');
  const [elsewhere, to = ''] = words[0] === '-C' ? words : [];
  // What else stands before the verb chooses another repository, or other settings.
  if (words[elsewhere === undefined ? 0 : 2] !== 'push') return [];
  const at = resolve(directory, to);
  return [{ directory: at, words: use.operands.map(({ text, complete }) => (complete ? text : '')) }];
}

/** What editors and shells are given to do is their everyday use. */
const EVERYDAY: ReadonlySet<string> = new Set(['executes_input', 'editor_command']);

function flagsOf(command: SimpleCommand, context: CheckContext): readonly string[] {
  const use = useOf(command, context);
  if (use === undefined) return [];
  return findingsOf(use)
    .filter(({ effect, code }) => (effect === 'executes' || effect === 'network') && !EVERYDAY.has(code))
    .map(({ words }) => [use.program.name, ...words].join(' '));
}

function patternsOf(word: Word, cwds: readonly (string | undefined)[]): readonly string[] {
  const at = word.parts.findIndex(({ kind }) => kind === 'glob');
  if (at === -1) return [];
  const before = word.parts.slice(0, at);
  const literal = before.map((part) => (part.kind === 'literal' ? part.text : '')).join('');
  // What comes from a variable may lead anywhere; its text is looked at as such.
  if (before.some(({ kind }) => kind !== 'literal')) return [];
  return cwds.flatMap((cwd) =>
    literal.startsWith('/') ? [literal] : cwd === undefined ? [] : [`${cwd}/${literal}`],
  );
}

/** `rg x` and `grep -r x` read all that is beneath the directory they run in. */
function searchesEverything(command: SimpleCommand): boolean {
  const program = programOf(command);
  return program?.searchesAll?.(describeAs(command, program)) === true;
}

function sourceOf({ span, words, runBy }: SimpleCommand, source: string | undefined): string {
  // What a runner starts has the place of the runner's text.
  if (source === undefined || runBy !== undefined)
    return words
      .map(({ value, source: written }) => (value === undefined ? written : readableWord(value)))
      .join(' ');
  return source.slice(span.start, span.end);
}

/** What tools look for in the directory in which they run. */
const CONVENTIONAL_FILES =
  'package.json Makefile makefile GNUmakefile pyproject.toml setup.py setup.cfg tox.ini noxfile.py conftest.py Cargo.toml build.rs CMakeLists.txt justfile Justfile Taskfile.yml Rakefile build.gradle pom.xml .npmrc .yarnrc.yml'.split(
    ' ',
  );
/** What an interpreter runs of a directory. */
const ENTRY_FILES = ['__main__.py', '__init__.py', 'index.js', 'index.mjs', 'index.ts', 'package.json'];

function changeableFiles(
  command: SimpleCommand,
  directories: readonly string[],
  context: CheckContext,
): readonly string[] {
  const found = new Set<string>();
  const add = (path: string) => {
    const { canonical } = context.paths.resolve(path);
    if (found.size < MOST_FILES && mayWrite(canonical, context)) found.add(canonical);
  };
  const words = [...command.words.slice(1), ...command.redirects.map(({ target }) => target)];
  for (const word of words) {
    if (word.value === undefined) continue;
    const argument = argumentOf(word, startOfValue(word.value));
    for (const { kind, canonical } of pathsOf(argument, directories, context)) {
      if (kind === 'other') add(canonical);
      if (kind === 'directory' && isInterpreter(command))
        for (const name of ENTRY_FILES) add(`${canonical}/${name}`);
    }
  }
  for (const directory of directories) {
    for (const name of [...CONVENTIONAL_FILES, ...moduleFiles(command)]) add(`${directory}/${name}`);
  }
  return [...found];
}

/** `--file=build.mk` and `-fbuild.mk` name a file too. */
function startOfValue(word: string): number {
  if (word.startsWith('--')) return word.indexOf('=') + 1;
  return /^-[A-Za-z]./.test(word) ? 2 : 0;
}

/** `python3 -m tools.build` runs a file of that name. */
function moduleFiles({ words }: SimpleCommand): readonly string[] {
  const at = words.findIndex(({ value }) => value === '-m');
  const module = at < 1 ? undefined : words[at + 1]?.value?.replaceAll('.', '/');
  return module === undefined ? [] : [`${module}.py`, `${module}/__main__.py`, `${module}/__init__.py`];
}

const CODE_OPTION = /^-(?:[A-Za-z]*[cem]|-eval|-print|-command)$/;

/** By its name alone, wherever it lies: one that somebody built does what the one of the system does. */
function programOf({ words: [program] }: SimpleCommand): Program | undefined {
  const name = program?.value;
  return name === undefined ? undefined : findProgram(name.slice(name.lastIndexOf('/') + 1));
}

const isInterpreter = (command: SimpleCommand) => programOf(command)?.interprets !== undefined;

/** The file that an interpreter runs. */
function scriptsOf(
  command: SimpleCommand,
  cwds: readonly (string | undefined)[],
  context: CheckContext,
): readonly string[] {
  if (!isInterpreter(command)) return [];
  const script = command.words.slice(1).find(({ value }) => value === undefined || !value.startsWith('-'));
  if (script?.value === undefined) return [];
  return pathsOf(argumentOf(script), cwds, context).map(({ canonical }) => canonical);
}

const INPUT = ['its input'];

/** Code of an interpreter that cannot be read beforehand: its input, or a script whose name is known only at run time. */
function unseenCodeOf(command: SimpleCommand): readonly string[] {
  const interprets = programOf(command)?.interprets;
  if (interprets === undefined) return [];
  if (interprets === 'input') return INPUT;
  const rest = command.words.slice(1);
  const dynamic = rest.filter(({ value }) => value === undefined);
  if (dynamic.length > 0) return dynamic.map(({ source }) => source || 'its input');
  const values = rest.map(({ value }) => value ?? '');
  if (values.some((value) => CODE_OPTION.test(value))) return [];
  const script = values.find((value) => !/^-./.test(value));
  const isInput = script === undefined || /^(?:-|\/dev\/(?:stdin|fd\/.*)|\/proc\/self\/fd\/.*)$/.test(script);
  return isInput ? INPUT : [];
}

/** A word with a pattern in it, as absolute paths; none where it holds what is known only when it runs. */
function matchesOf({ parts }: Word, cwds: readonly (string | undefined)[]): readonly string[] {
  const isKnown = parts.every(({ kind }) => kind === 'literal' || kind === 'glob');
  if (!isKnown || !parts.some(({ kind }) => kind === 'glob')) return [];
  const text = parts.map((part) => ('text' in part ? part.text : '')).join('');
  if (text.startsWith('/')) return [text];
  return cwds.flatMap((cwd) => (cwd === undefined ? [] : [resolve(cwd, text)]));
}

function remarksOn(command: SimpleCommand, reasons: readonly Reason[]): readonly string[] {
  const words = new Set(command.words.map((word) => word.source));
  const name = command.words[0]?.value;
  return reasons
    .filter((reason) => reason.words.some((word) => words.has(word) || word === name))
    .map((reason) => reason.message);
}

/**
 * The first secret that a line names: by a path to it or to a directory around it, by a pattern that may match it, or by
 * its name anywhere in the text (in a variable, in code, in the input of xargs). Rather once too often than not.
 */
export function secretAmong(effects: CommandEffects, secrets: readonly string[]): string | undefined {
  const { reads, writes, patterns, searches, text } = effects;
  return secrets.find(
    (secret) =>
      [...reads, ...writes].some((path) => isBeneath(path, secret)) ||
      [...reads, ...searches].some((path) => isBeneath(secret, path)) ||
      patterns.some((pattern) => secret.startsWith(pattern) || pattern.startsWith(`${secret}/`)) ||
      mentions(text, secret.slice(secret.lastIndexOf('/') + 1)),
  );
}

/** The name as a word of its own: `key.pem` in `file:key.pem`, not `env` in `environment`. */
function mentions(text: string, name: string): boolean {
  const isPartOfName = (character: string | undefined) => character !== undefined && /[\w-]/.test(character);
  for (let at = text.indexOf(name); name !== '' && at !== -1; at = text.indexOf(name, at + 1)) {
    if (!isPartOfName(text[at - 1]) && !isPartOfName(text[at + name.length])) return true;
  }
  return false;
}
