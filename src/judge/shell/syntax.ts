import type { Assignment, Redirect, Span, Word } from '../../model/index.ts';

/**
 * The shell's syntax as this folder sees it: what the adapter makes of a parser's tree, and all that the rest of the
 * folder knows about syntax. Substitutions are listed with what contains them; each runs in a subshell of its own.
 */
export type SyntaxNode =
  | SimpleNode
  | ListNode
  | AndOrNode
  | PipelineNode
  | GroupNode
  | RedirectedNode
  | IfNode
  | LoopNode
  | CaseNode
  | FunctionNode
  | ExpressionNode;

/** Words, assignments and redirects: what becomes a `SimpleCommand`. */
export interface SimpleNode {
  readonly kind: 'simple';
  readonly words: readonly Word[];
  readonly assignments: readonly Assignment[];
  readonly redirects: readonly Redirect[];
  /** The text of a here-document or a here-string, where it is the command's standard input. */
  readonly input: Word | undefined;
  readonly substitutions: readonly SyntaxNode[];
  /** Variables that surely hold a number when its words are expanded. */
  readonly numeric: ReadonlySet<string>;
  readonly span: Span;
}

/** `a; b & c`. */
interface ListNode {
  readonly kind: 'list';
  readonly items: readonly { readonly node: SyntaxNode; readonly background: boolean }[];
}

/** `a && b || c`: one operator less than there are nodes. */
interface AndOrNode {
  readonly kind: 'and-or';
  readonly nodes: readonly SyntaxNode[];
  readonly operators: readonly ('&&' | '||')[];
}

export interface PipelineNode {
  readonly kind: 'pipeline';
  readonly nodes: readonly SyntaxNode[];
  readonly negated: boolean;
  /** As written before it: `!` and `time`. */
  readonly prefixes: readonly ('!' | 'time')[];
  /** One less than there are nodes. */
  readonly operators: readonly ('|' | '|&')[];
}

/** `( … )` or `{ …; }`. */
interface GroupNode {
  readonly kind: 'group';
  readonly subshell: boolean;
  readonly body: SyntaxNode;
}

/** A compound command with redirects of its own. */
export interface RedirectedNode {
  readonly kind: 'redirected';
  readonly body: SyntaxNode;
  readonly redirects: readonly Redirect[];
  readonly substitutions: readonly SyntaxNode[];
  readonly span: Span;
}

interface IfNode {
  readonly kind: 'if';
  readonly branches: readonly { readonly condition: SyntaxNode; readonly body: SyntaxNode }[];
  readonly otherwise: SyntaxNode | undefined;
}

/** `for`, `while` and `until`; a `for` has no condition. */
export interface LoopNode {
  readonly kind: 'loop';
  readonly condition: SyntaxNode | undefined;
  readonly until: boolean;
  readonly body: SyntaxNode;
  readonly substitutions: readonly SyntaxNode[];
}

interface CaseNode {
  readonly kind: 'case';
  readonly bodies: readonly SyntaxNode[];
  readonly substitutions: readonly SyntaxNode[];
}

export interface FunctionNode {
  readonly kind: 'function';
  readonly name: string;
  readonly body: SyntaxNode;
  readonly span: Span;
}

/** `[[ … ]]` and `(( … ))`: they run nothing but the substitutions in them. */
interface ExpressionNode {
  readonly kind: 'expression';
  readonly substitutions: readonly SyntaxNode[];
}

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
