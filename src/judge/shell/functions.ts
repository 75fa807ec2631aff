import { findProgram } from '../programs/program-table.ts';
import { isBuiltin } from './builtins.ts';
import { type Report, refuse } from './report.ts';
import { childrenOf, type FunctionNode, type SyntaxNode } from './syntax.ts';
import { isVariableName } from './text-checks.ts';

/**
 * The functions that a text defines, with those known before. A definition is understood if it stands at the top,
 * before the first call of any function, under a name that means nothing else, and if it does not call itself.
 */
export function collectFunctions(
  root: SyntaxNode,
  report: Report,
  inherited: ReadonlySet<string>,
): ReadonlySet<string> {
  const all: FunctionNode[] = [];
  visit(root, (node) => {
    if (node.kind === 'function') all.push(node);
  });
  if (all.length === 0) return inherited;
  const top = new Set(
    root.kind === 'list' ? root.items.filter((item) => !item.background).map((item) => item.node) : [],
  );
  const bodies = new Map<string, FunctionNode>();
  for (const definition of all) {
    const problem = nameProblem(
      definition.name,
      bodies.has(definition.name) || inherited.has(definition.name),
    );
    const calls = callsOf(definition.body);
    if (calls.has(definition.name)) refuseBomb(report, definition);
    else if (problem !== undefined) refuse(report, 'construct', problem, definition.span);
    else if (!top.has(definition)) {
      refuse(
        report,
        'construct',
        'A function is understood only if it is defined at the top of the command.',
        definition.span,
      );
    }
    bodies.set(definition.name, definition);
  }
  for (const definition of all) if (reaches(definition, bodies)) refuseBomb(report, definition);
  refuseEarlyCalls(root, bodies, report);
  return new Set([...inherited, ...bodies.keys()]);
}

function nameProblem(name: string, isKnown: boolean): string | undefined {
  if (!isVariableName(name)) return 'The name of a function must consist of letters, digits and underscores.';
  if (isKnown) return `The function ${name} is defined twice.`;
  // A reader, or a check, would take the call for the program. Bash itself calls the last one.
  const meansSomething =
    isBuiltin(name) || findProgram(name) !== undefined || name === 'command_not_found_handle';
  return meansSomething
    ? `A function named ${name} would hide what that name means: choose another.`
    : undefined;
}

function refuseBomb(report: Report, { name, span }: FunctionNode): void {
  const message = `The function ${name} calls itself, as a fork bomb does: recursive functions are not understood.`;
  refuse(report, 'fork_bomb', message, span);
}

/** Builtins and keywords whose words may be, or hold, calls in the same shell. */
const IN_THIS_SHELL = new Set('eval trap command builtin exec time coproc . source'.split(' '));

/** Names in command position at any depth. */
function callsOf(node: SyntaxNode): ReadonlySet<string> {
  const names = new Set<string>();
  visit(node, (child) => {
    if (child.kind !== 'simple') return;
    const [first] = child.words;
    // Elsewhere a name is an argument: only the shell itself calls functions, and other programs cannot.
    const words = first?.value === undefined || IN_THIS_SHELL.has(first.value) ? child.words : [first];
    for (const word of words) for (const name of word.value?.match(/[^\s;&|(){}]+/g) ?? []) names.add(name);
  });
  return names;
}

function reaches(start: FunctionNode, bodies: ReadonlyMap<string, FunctionNode>): boolean {
  const seen = new Set<string>();
  const open = [...callsOf(start.body)];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (name === start.name) return true;
    const definition = bodies.get(name);
    if (definition === undefined || seen.has(name)) continue;
    seen.add(name);
    open.push(...callsOf(definition.body));
  }
  return false;
}

/** A call before the definition runs a program of that name instead. */
function refuseEarlyCalls(root: SyntaxNode, bodies: ReadonlyMap<string, FunctionNode>, report: Report): void {
  const items = root.kind === 'list' ? root.items : [];
  const last = items.findLastIndex((item) => item.node.kind === 'function');
  for (const { node } of items.slice(0, last)) {
    if (node.kind === 'function') continue;
    for (const name of callsOf(node)) {
      const definition = bodies.get(name);
      if (definition === undefined) continue;
      refuse(report, 'ambiguous', `${name} is called before every function is defined.`, definition.span);
    }
  }
}

function visit(node: SyntaxNode, look: (node: SyntaxNode) => void): void {
  look(node);
  for (const child of childrenOf(node)) visit(child, look);
}
