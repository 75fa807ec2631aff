import { posix } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { assertNever } from '../../base/assert-never.ts';
import type {
  PathSearch,
  Redirect,
  Span,
  Stage,
  StepPipeline,
  StepRedirect,
  Steps,
  StepsOrNot,
  Word,
  WordPart,
} from '../../model/index.ts';
import { readShell } from './adapter/read-shell.ts';
import { isBuiltin } from './builtins.ts';
import { createNumbers } from './numbers.ts';
import { createReport, DEFAULT_LIMITS } from './report.ts';
import type { PipelineNode, SimpleNode, SyntaxNode } from './syntax.ts';
import { badCharacter } from './text-checks.ts';

/** Found on the way down; not an error of ours. */
class NeedsShell extends Error {
  readonly span: Span | undefined;

  constructor(message: string, span: Span | undefined) {
    super(message);
    this.span = span;
  }
}

const SHELLS = 'needs a shell, and the backend application runs none (landlock, namespaces and firejail do)';

function needsShell(what: string, instead: string, span: Span | undefined): never {
  throw new NeedsShell(`${what} ${SHELLS}: ${instead}.`, span);
}

/** Where the patterns of a line are replaced by the names that they match. */
export interface PatternPlace {
  readonly paths: PathSearch;
  /** Absolute directory in which the line starts. */
  readonly cwd: string;
  /** Patterns are matched beneath this canonical directory only: outside of it no directory is even listed. */
  readonly root: string;
}

/**
 * Reads a shell string as a list of programs that can be started one by one: simple commands of words that are known,
 * pipelines, `&&`, `||`, `;` and redirects. Anything else is refused by name. Pure, apart from `place`; without that, patterns
 * are refused, too.
 */
export function stepsOf(source: string, place?: PatternPlace): StepsOrNot {
  const refused = (message: string, span?: Span): StepsOrNot => ({ ok: false, problem: { message, span } });
  if (new TextEncoder().encode(source).length > DEFAULT_LIMITS.maxBytes)
    return refused(`The command is longer than ${DEFAULT_LIMITS.maxBytes} bytes: split it.`);
  const bad = badCharacter(source);
  if (bad !== undefined) return refused(bad);
  const report = createReport(DEFAULT_LIMITS.maxCommands, DEFAULT_LIMITS.maxBytes * 2);
  try {
    const { maxDepth } = DEFAULT_LIMITS;
    const tree = readShell(source, { report, numbers: createNumbers(), maxDepth, place: undefined });
    if (report.problem !== undefined) return refused(report.problem.message, report.problem.span);
    const patterns = place && new Patterns(place);
    const pipelines = listOf(tree, patterns);
    const steps: Steps = { pipelines, ...(patterns && { patterns: patterns.found }) };
    const count = steps.pipelines.reduce((sum, { stages }) => sum + stages.length, 0);
    if (count === 0) return refused('There is no command.');
    return count > DEFAULT_LIMITS.maxCommands
      ? refused(`There are more than ${DEFAULT_LIMITS.maxCommands} commands: split them.`)
      : { ok: true, steps };
  } catch (error) {
    if (error instanceof NeedsShell) return refused(error.message, error.span);
    // The parser ran out of stack, or met a tree that it does not expect.
    return refused('The command made the parser fail: write it differently.');
  }
}

function listOf(tree: SyntaxNode, patterns: Patterns | undefined): readonly StepPipeline[] {
  if (tree.kind !== 'list') return andOr(tree, patterns);
  return tree.items.flatMap(({ node, background }) => {
    if (background) needsShell('A command in the background (&)', 'start it as a job of its own', undefined);
    return andOr(node, patterns);
  });
}

function andOr(node: SyntaxNode, patterns: Patterns | undefined): readonly StepPipeline[] {
  if (node.kind !== 'and-or') return [pipeline(node, 'then', patterns)];
  return node.nodes.map((child, index) => {
    const operator = node.operators[index - 1];
    const joinedBy = operator === undefined ? 'then' : operator === '&&' ? 'and' : 'or';
    return pipeline(child, joinedBy, patterns);
  });
}

function pipeline(
  node: SyntaxNode,
  joinedBy: StepPipeline['joinedBy'],
  patterns: Patterns | undefined,
): StepPipeline {
  patterns?.joins(joinedBy);
  if (node.kind !== 'pipeline') return { joinedBy, stages: [stage(node, 'alone', patterns)] };
  refusePrefixes(node);
  const alone = node.nodes.length === 1;
  const stages = node.nodes.map((child, index) => {
    const read = stage(child, alone ? 'alone' : 'piped', patterns);
    // `|&`: behind all other redirects of the command.
    const copy: StepRedirect = { kind: 'copy', fd: 2, from: 1 };
    return node.operators[index] === '|&' ? { ...read, redirects: [...read.redirects, copy] } : read;
  });
  return { joinedBy, stages };
}

function refusePrefixes({ prefixes }: PipelineNode): void {
  const [first] = prefixes;
  if (first === '!') needsShell('A negation (!)', 'use || instead of && behind the command', undefined);
  if (first === 'time') needsShell('The keyword time', 'leave it out', undefined);
}

function stage(node: SyntaxNode, where: 'alone' | 'piped', patterns: Patterns | undefined): Stage {
  if (node.kind !== 'simple') {
    const { name, instead } = NAMES_OF_NODES[node.kind];
    return needsShell(name, instead, 'span' in node ? node.span : undefined);
  }
  const [assignment] = node.assignments;
  if (assignment !== undefined)
    needsShell(`An assignment (${assignment.name}=)`, 'give variables with the request', assignment.span);
  const words = node.words.flatMap((word, index) =>
    index > 0 && patterns?.has(word) === true ? patterns.matches(word) : [textOf(word)],
  );
  const redirects = node.redirects.flatMap(redirectsOf);
  refuseBuiltin(node, where, redirects);
  const directory = patterns?.directory;
  if (words[0] === 'cd') patterns?.moves(words[1] ?? '');
  return { words, redirects, ...(directory === undefined ? {} : { directory }) };
}

/** More names than this for the patterns of a line are not judged one by one. */
const MOST_MATCHES = 1000;

/** What bash's patterns are made of here: brackets depend on the language that is set. */
const STARS = /^[*?]+$/;
const SPECIAL = /[*?[\\]/;

/** First characters of names that programs do not take for a file: options, operators of expressions, `@file`. */
const MEANS_MORE = /^[-+!(),=@]/;

/** One path that a pattern may stand for. */
interface Candidate {
  /** The parts of the path as the word names them. */
  readonly names: readonly string[];
  /** Absolute. */
  readonly path: string;
}

/** Replaces patterns by what they match, as bash does: no hidden files, sorted by bytes, the word itself if nothing matches. */
class Patterns {
  readonly found = new Map<number, readonly string[]>();
  /** `undefined`: which one it is depends on a `cd` that may fail. */
  directory: string | undefined;
  readonly #place: PatternPlace;
  #hasMoved = false;
  #count = 0;

  constructor(place: PatternPlace) {
    this.#place = place;
    this.directory = place.cwd;
  }

  /** Another pipeline follows. */
  joins(by: StepPipeline['joinedBy']): void {
    if (this.#hasMoved && by !== 'and') this.directory = undefined;
  }

  /** A `cd` was read. */
  moves(target: string): void {
    this.#hasMoved = true;
    if (target.startsWith('/')) this.directory = posix.normalize(target);
    else if (this.directory !== undefined) this.directory = posix.join(this.directory, target);
  }

  /** Whether a word has patterns in it, and else only what is known. */
  has({ parts }: Word): boolean {
    return (
      parts.some(({ kind }) => kind === 'glob') &&
      parts.every(({ kind }) => kind === 'literal' || kind === 'glob')
    );
  }

  matches(word: Word): readonly string[] {
    for (const part of word.parts) {
      if (part.kind === 'glob' && !STARS.test(part.text))
        needsShell(`A pattern with brackets (${shortened(word.source)})`, WRITE_NAMES, word.span);
      if (part.kind === 'literal' && SPECIAL.test(part.text))
        needsShell(`A pattern with quoted stars (${shortened(word.source)})`, WRITE_NAMES, word.span);
    }
    const text = word.parts.map((part) => ('text' in part ? part.text : '')).join('');
    const matches = this.#expand(text, word);
    this.#count += matches.length;
    if (this.#count > MOST_MATCHES) this.#isTooMuch(word);
    const texts = matches.length === 0 ? [text] : matches;
    this.found.set(word.span.start, texts);
    return texts;
  }

  #expand(text: string, word: Word): readonly string[] {
    const { directory } = this;
    if (directory === undefined && !text.startsWith('/'))
      return needsShell(
        `A pattern (${shortened(word.source)}) behind a cd that may fail`,
        'write cd DIRECTORY && before it',
        word.span,
      );
    const { paths } = this.#place;
    const names = text.split('/');
    let candidates: readonly Candidate[] = [
      { names: [], path: text.startsWith('/') ? '' : (directory ?? '') },
    ];
    for (const name of names)
      candidates = /[*?]/.test(name)
        ? candidates.flatMap((candidate) => this.#namesIn(candidate, name, word))
        : candidates.map((candidate) => ({
            names: [...candidate.names, name],
            path: name === '' ? candidate.path : `${candidate.path}/${name}`,
          }));
    const isThere = ({ path }: Candidate) => {
      const { kind, links } = paths.resolve(path);
      return names.at(-1) === '' ? kind === 'directory' : kind !== 'missing' || links.length > 0;
    };
    const matches = candidates.filter(isThere).map((candidate) => candidate.names.join('/'));
    if (matches.some((match) => /\p{Surrogate}/u.test(match)))
      needsShell(
        `A pattern (${shortened(word.source)}) that matches a name that is no text`,
        WRITE_NAMES,
        word.span,
      );
    if (matches.length > 0 && text.startsWith('-'))
      needsShell(
        `A pattern (${shortened(word.source)}) that makes an option of a file name`,
        'put ./ before it, or quote it if it is text',
        word.span,
      );
    return matches
      .toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other)))
      .map((match) => (MEANS_MORE.test(match) ? `./${match}` : match));
  }

  #namesIn(candidate: Candidate, pattern: string, word: Word): readonly Candidate[] {
    const { paths, root } = this.#place;
    const { kind, canonical } = paths.resolve(candidate.path === '' ? '/' : candidate.path);
    // What is there outside of the root is not told, not even by what is said of it.
    if (!isBeneath(canonical, root))
      needsShell(`A pattern outside of the workspace (${shortened(word.source)})`, WRITE_NAMES, word.span);
    if (kind !== 'directory') return [];
    if (SPECIAL.test(canonical))
      needsShell(
        `A pattern (${shortened(word.source)}) beneath a directory with * or [ in its name`,
        WRITE_NAMES,
        word.span,
      );
    const found = paths.expand(`${canonical}/${pattern}`) ?? this.#isTooMuch(word);
    if (found.length > MOST_MATCHES) this.#isTooMuch(word);
    return found.map((path) => {
      const name = path.slice(canonical.length + 1);
      return { names: [...candidate.names, name], path: `${candidate.path}/${name}` };
    });
  }

  #isTooMuch({ source, span }: Word): never {
    return needsShell(
      `A pattern (${shortened(source)}) that matches too much, or where not everything can be read,`,
      `match at most ${MOST_MATCHES} names`,
      span,
    );
  }
}

/** The text of a word that is known. */
function textOf(word: Word): string {
  if (word.value !== undefined) return word.value;
  const part = word.parts.find(({ kind }) => kind !== 'literal');
  const { name, instead } = NAMES_OF_PARTS[(part as Exclude<WordPart, { kind: 'literal' }>).kind];
  return needsShell(`${name} (${shortened(word.source)})`, instead, word.span);
}

function shortened(text: string): string {
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}

/** Builtins that are programs too run as those. */
const PROGRAMS_TOO: ReadonlySet<string> = new Set(['true', 'false', 'echo', 'printf', 'pwd', 'test', '[']);

function refuseBuiltin(
  { words, span }: SimpleNode,
  where: 'alone' | 'piped',
  redirects: readonly StepRedirect[],
): void {
  const name = words[0]?.value;
  if (name === undefined || !isBuiltin(name) || PROGRAMS_TOO.has(name)) return;
  if (name !== 'cd')
    needsShell(`The builtin ${name}`, INSTEAD_OF_BUILTIN[name] ?? 'run a program that does it', span);
  const target = words[1]?.value;
  if (words.length !== 2 || target === undefined || target === '' || /^[-+]/.test(target))
    needsShell(`This form of cd`, 'write cd DIRECTORY, inside the workspace', span);
  if (where === 'piped' || redirects.length > 0)
    needsShell('A cd in a pipeline or with redirects', 'write cd DIRECTORY && before the command', span);
}

const HIGHEST_DESCRIPTOR = 9;

function redirectsOf(redirect: Redirect): readonly StepRedirect[] {
  const { operator, target, span } = redirect;
  const text = textOf(target);
  const fd = redirect.descriptor ?? (operator.startsWith('<') ? 0 : 1);
  if (fd > HIGHEST_DESCRIPTOR)
    needsShell(`A descriptor above ${HIGHEST_DESCRIPTOR}`, 'use a smaller one', span);
  const file = (kind: 'read' | 'write' | 'append' | 'update'): StepRedirect => ({
    kind,
    fd,
    path: path(text),
  });
  const path = (name: string): string =>
    name === '' ? needsShell('A redirect to an empty name', 'name a file', span) : name;
  switch (operator) {
    case '<':
      return [file('read')];
    case '>':
    case '>|':
      return [file('write')];
    case '>>':
      return [file('append')];
    case '<>':
      return [file('update')];
    case '&>':
    case '&>>':
      return [
        { kind: operator === '&>' ? 'write' : 'append', fd: 1, path: path(text) },
        { kind: 'copy', fd: 2, from: 1 },
      ];
    case '>&':
    case '<&':
      if (text === '-') return [{ kind: 'close', fd }];
      if (!/^[0-9]$/.test(text)) needsShell(`The redirect ${operator}${text}`, 'use &> for a file', span);
      return [{ kind: 'copy', fd, from: Number(text) }];
    case '<<':
    case '<<-':
      if (redirect.body?.value === undefined)
        needsShell('A here-document with expansions', "quote its delimiter ('EOF')", span);
      return [{ kind: 'text', fd, text: redirect.body.value }];
    case '<<<':
      return [{ kind: 'text', fd, text: `${text}\n` }];
    default:
      return assertNever(operator);
  }
}

/** What a construct is called where it is refused, and what to write instead. */
interface Named {
  readonly name: string;
  readonly instead: string;
}

const WRITE_NAMES = 'write the names out, or quote it if it is text';
const WRITE_OUT = 'write the commands out, or run a program directly';

/** Syntax that is no simple command. */
const NAMES_OF_NODES: Readonly<Record<Exclude<SyntaxNode['kind'], 'simple'>, Named>> = {
  list: { name: 'A list inside a list', instead: WRITE_OUT },
  'and-or': { name: 'A list inside a list', instead: WRITE_OUT },
  pipeline: { name: 'A pipeline inside a pipeline', instead: WRITE_OUT },
  group: { name: 'A group, ( … ) or { …; },', instead: 'write its commands without brackets' },
  redirected: {
    name: 'A redirect of a group or loop',
    instead: 'give each command a redirect of its own (>> adds to a file)',
  },
  if: { name: 'An if', instead: 'use && and ||' },
  loop: { name: 'A loop', instead: WRITE_OUT },
  case: { name: 'A case', instead: WRITE_OUT },
  function: { name: 'A function', instead: WRITE_OUT },
  expression: { name: '[[ … ]] or (( … ))', instead: 'use the program test' },
};

/** What makes a word unknown before it runs. */
const NAMES_OF_PARTS: Readonly<Record<Exclude<WordPart['kind'], 'literal'>, Named>> = {
  glob: { name: 'A pattern for file names', instead: WRITE_NAMES },
  tilde: { name: 'A tilde', instead: 'write the path out' },
  parameter: { name: 'A variable', instead: 'write its value out, or quote it singly if it is text' },
  brace: { name: 'A brace expansion', instead: 'write the words out' },
  arithmetic: { name: 'Arithmetic', instead: 'write the result' },
  'command-substitution': {
    name: 'A command substitution',
    instead: 'run that command first and write its output',
  },
  'process-substitution': { name: 'A process substitution', instead: 'write to a file first' },
  input: { name: 'A word that a program adds', instead: WRITE_OUT },
};

/** For builtins that are not programs too. */
const INSTEAD_OF_BUILTIN: Readonly<Record<string, string>> = {
  ':': 'write true',
  exit: 'leave it out: the status is that of the last command',
  set: 'leave it out and use &&',
  shopt: 'leave it out',
  export: 'give variables with the request',
  unset: 'leave it out',
  declare: 'write values out',
  local: 'write values out',
  readonly: 'write values out',
  source: 'run the programs that the file would run',
  '.': 'run the programs that the file would run',
  eval: 'write the command itself',
  exec: 'write the command itself',
  command: 'write the command itself; which says where a program is',
  builtin: 'write the command itself',
  type: 'use which',
  hash: 'use which',
  wait: 'leave it out: every command is waited for',
  pushd: 'write cd DIRECTORY && before the command',
  popd: 'write cd DIRECTORY && before the command',
  read: 'use head or sed on a file',
};
