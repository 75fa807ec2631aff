import type {
  Redirect,
  Span,
  Stage,
  StepPipeline,
  StepRedirect,
  Steps,
  StepsOrNot,
  Word,
  WordPart,
} from '../model/command-line.ts';
import { assertNever } from '../util/assert-never.ts';
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

/**
 * Reads a shell string as a list of programs that can be started one by one: simple commands of words that are known,
 * pipelines, `&&`, `||`, `;` and redirects. Anything else is refused by name. Pure.
 */
export function stepsOf(source: string): StepsOrNot {
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
    const steps: Steps = { pipelines: listOf(tree) };
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

function listOf(tree: SyntaxNode): readonly StepPipeline[] {
  if (tree.kind !== 'list') return andOr(tree);
  return tree.items.flatMap(({ node, background }) => {
    if (background) needsShell('A command in the background (&)', 'start it as a job of its own', undefined);
    return andOr(node);
  });
}

function andOr(node: SyntaxNode): readonly StepPipeline[] {
  if (node.kind !== 'and-or') return [pipeline(node, 'then')];
  return node.nodes.map((child, index) => {
    const operator = node.operators[index - 1];
    return pipeline(child, operator === undefined ? 'then' : operator === '&&' ? 'and' : 'or');
  });
}

function pipeline(node: SyntaxNode, joinedBy: StepPipeline['joinedBy']): StepPipeline {
  if (node.kind !== 'pipeline') return { joinedBy, stages: [stage(node, 'alone')] };
  refusePrefixes(node);
  const alone = node.nodes.length === 1;
  const stages = node.nodes.map((child, index) => {
    const read = stage(child, alone ? 'alone' : 'piped');
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

function stage(node: SyntaxNode, where: 'alone' | 'piped'): Stage {
  if (node.kind !== 'simple') {
    const { name, instead } = NAMES_OF_NODES[node.kind];
    return needsShell(name, instead, 'span' in node ? node.span : undefined);
  }
  const [assignment] = node.assignments;
  if (assignment !== undefined)
    needsShell(`An assignment (${assignment.name}=)`, 'give variables with the request', assignment.span);
  const words = node.words.map(textOf);
  const redirects = node.redirects.flatMap(redirectsOf);
  refuseBuiltin(node, where, redirects);
  return { words, redirects };
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
  glob: { name: 'A pattern for file names', instead: 'write the names out, or quote it if it is text' },
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
