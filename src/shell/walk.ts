import type { SyntaxNode } from './syntax.ts';

/** Every node directly inside of a node, substitutions included. */
export function childrenOf(node: SyntaxNode): readonly SyntaxNode[] {
  switch (node.kind) {
    case 'simple':
    case 'expression':
      return node.substitutions;
    case 'list':
      return node.items.map((item) => item.node);
    case 'and-or':
    case 'pipeline':
      return node.nodes;
    case 'group':
    case 'function':
      return [node.body];
    case 'redirected':
      return [node.body, ...node.substitutions];
    case 'if':
      return [
        ...node.branches.flatMap((branch) => [branch.condition, branch.body]),
        ...(node.otherwise === undefined ? [] : [node.otherwise]),
      ];
    case 'loop':
      return [...(node.condition === undefined ? [] : [node.condition]), node.body, ...node.substitutions];
    case 'case':
      return [...node.bodies, ...node.substitutions];
  }
}

/** True if a command of the tree assigns to one of the names. */
export function assignsAny(node: SyntaxNode, names: ReadonlySet<string>): boolean {
  if (node.kind === 'simple') {
    const assigned = node.assignments.some((assignment) => names.has(assignment.name));
    const declared = node.words.some((word) =>
      names.has(/^([A-Za-z]+)(?:\+?=|$)/.exec(word.source)?.[1] ?? ''),
    );
    if (assigned || declared) return true;
  }
  return childrenOf(node).some((child) => assignsAny(child, names));
}
