import { assertNever } from '../../base/assert-never.ts';
import { literalWord, type Redirect, type Span, type Word } from '../../model/index.ts';
import { findProgram } from '../programs/program-table.ts';
import type { Numbers } from './numbers.ts';
import {
  childrenOf,
  type LoopNode,
  type RedirectedNode,
  type SimpleNode,
  type SyntaxNode,
} from './syntax.ts';

/** What holds for a command because of where it stands. */
export interface Scope {
  readonly background: boolean;
  readonly runBy: number | undefined;
  readonly place: Span | undefined;
  /** A shell looks the command up, so that builtins and functions count. */
  readonly inShell: boolean;
  readonly functions: ReadonlySet<string>;
  readonly numbers: Numbers;
  /** Runners around it. */
  readonly depth: number;
  /** A variable is set that changes what `cd` does. */
  readonly lost: boolean;
  /** Some command of the text, at whatever depth, may change the directory. */
  readonly moving: boolean;
  /** The text runs when what stands behind it may have run: a function, a trap. */
  readonly later: boolean;
}

/** What holds for a command that nothing stands around. */
export function outermost(inShell: boolean, numbers: Numbers): Scope {
  return {
    background: false,
    runBy: undefined,
    place: undefined,
    inShell,
    functions: new Set(),
    numbers,
    depth: 0,
    lost: false,
    moving: false,
    later: false,
  };
}

/** Variables that change what `cd` does. */
export const LOSING: ReadonlySet<string> = new Set(['CDPATH', 'HOME', 'PWD', 'OLDPWD']);

/** True if such a variable is set, also where eval, a loop or `read` assigns to it. */
export function isLost({ lost, numbers }: Scope): boolean {
  if (lost) return true;
  for (const name of LOSING) if (numbers.tainted.has(name) || numbers.assigned.has(name)) return true;
  return false;
}

/** What is done with the commands on the way. */
export interface Visitor {
  /** A simple command, what it substitutes included. */
  simple(node: SimpleNode, scope: Scope, directories: Directories): Flow;
  /** Only the redirects of a compound command. */
  redirects(node: RedirectedNode, scope: Scope, directories: Directories): void;
}

/** Visits the commands of a tree in an order in which they could run, each with where the shell may stand then. */
export function follow(node: SyntaxNode, scope: Scope, directories: Directories, visitor: Visitor): Flow {
  switch (node.kind) {
    case 'simple':
      return visitor.simple(node, scope, directories);
    case 'list': {
      let now: Flow = both(directories);
      for (const item of node.items) {
        const before = afterwards(now);
        const inner = item.background ? { ...scope, background: true } : scope;
        const flow = follow(item.node, inner, before, visitor);
        now = item.background ? both(before) : flow;
      }
      return now;
    }
    case 'and-or':
      return andOr(node.nodes, node.operators, scope, directories, visitor);
    case 'pipeline': {
      const [only, ...others] = node.nodes;
      if (only === undefined) return both(directories);
      if (others.length > 0) {
        node.nodes.forEach((child, index) => {
          follow(fed(child, node.nodes[index - 1], scope), scope, directories, visitor);
        });
        return both(directories);
      }
      const flow = follow(only, scope, directories, visitor);
      return node.negated ? { ok: flow.fail, fail: flow.ok } : flow;
    }
    case 'group': {
      const flow = follow(node.body, scope, directories, visitor);
      return node.subshell ? both(directories) : flow;
    }
    case 'redirected': {
      visitor.redirects(node, scope, directories);
      const flow = follow(node.body, scope, directories, visitor);
      followAll(node.substitutions, scope, directories, visitor);
      return { ok: flow.ok, fail: union(flow.fail, directories) };
    }
    case 'if': {
      let outcome: Flow = { ok: [], fail: [] };
      let open: Directories = directories;
      for (const branch of node.branches) {
        const condition = follow(branch.condition, scope, open, visitor);
        outcome = joined(outcome, follow(branch.body, scope, condition.ok, visitor));
        open = condition.fail;
      }
      return joined(
        outcome,
        node.otherwise === undefined ? both(open) : follow(node.otherwise, scope, open, visitor),
      );
    }
    case 'loop':
      return loop(node, scope, directories, visitor);
    case 'case': {
      followAll(node.substitutions, scope, directories, visitor);
      return node.bodies
        .map((body) => follow(body, scope, directories, visitor))
        .reduce(joined, both(directories));
    }
    case 'function':
      // Called from anywhere, so nothing is known about the place unless nothing ever moves.
      follow(node.body, { ...scope, later: true }, scope.moving ? undefined : directories, visitor);
      return both(directories);
    case 'expression':
      followAll(node.substitutions, scope, directories, visitor);
      return both(directories);
    default:
      return assertNever(node);
  }
}

/** `echo text | sh`: the command with what is written into it, where that can be told. */
function fed(node: SyntaxNode, before: SyntaxNode | undefined, { functions }: Scope): SyntaxNode {
  if (node.kind !== 'simple' || before?.kind !== 'simple') return node;
  const isDocument = ({ operator }: Redirect) => operator.startsWith('<<');
  if (node.redirects.some(({ operator }) => operator.startsWith('<')) || !before.redirects.every(isDocument))
    return node;
  const name = before.words[0]?.value;
  if (name === undefined || functions.has(name)) return node;
  return { ...node, input: findProgram(name)?.prints?.(before.words, before.input) };
}

function andOr(
  nodes: readonly SyntaxNode[],
  operators: readonly ('&&' | '||')[],
  scope: Scope,
  directories: Directories,
  visitor: Visitor,
): Flow {
  let now = both(directories);
  nodes.forEach((node, index) => {
    const operator = operators[index - 1];
    if (operator === '&&') {
      const next = follow(node, scope, now.ok, visitor);
      now = { ok: next.ok, fail: union(now.fail, next.fail) };
    } else if (operator === '||') {
      const next = follow(node, scope, now.fail, visitor);
      now = { ok: union(now.ok, next.ok), fail: next.fail };
    } else now = follow(node, scope, directories, visitor);
  });
  return now;
}

function loop(node: LoopNode, scope: Scope, directories: Directories, visitor: Visitor): Flow {
  followAll(node.substitutions, scope, directories, visitor);
  const mayLeave = (part: SyntaxNode | undefined) => part !== undefined && mayMove(part, scope.functions);
  const moves = scope.moving && (mayLeave(node.body) || mayLeave(node.condition));
  const inside = moves ? undefined : directories;
  const condition =
    node.condition === undefined ? both(inside) : follow(node.condition, scope, inside, visitor);
  follow(node.body, scope, node.until ? condition.fail : condition.ok, visitor);
  return both(inside);
}

export function followAll(
  nodes: readonly SyntaxNode[],
  scope: Scope,
  directories: Directories,
  visitor: Visitor,
): void {
  for (const node of nodes) follow(node, scope, directories, visitor);
}

/** The `cd`s that may have been made: see `SimpleCommand.directories`. Empty: this place is never reached. */
export type Directories = readonly (readonly Word[])[] | undefined;

/** Where the shell may stand after a command that succeeded, and after one that failed. */
export interface Flow {
  readonly ok: Directories;
  readonly fail: Directories;
}

/** More possibilities than this cannot be told apart. */
const MAX_POSSIBILITIES = 8;

/** No `cd` yet. */
export const START: Directories = [[]];

export function both(directories: Directories): Flow {
  return { ok: directories, fail: directories };
}

function afterwards(flow: Flow): Directories {
  return union(flow.ok, flow.fail);
}

function union(a: Directories, b: Directories): Directories {
  if (a === b) return a;
  if (a === undefined || b === undefined) return undefined;
  const all = [...a, ...b.filter((list) => !a.some((other) => isSame(list, other)))];
  return all.length > MAX_POSSIBILITIES ? undefined : all;
}

/** After one of two commands; it is not known which. */
export function joined(a: Flow, b: Flow): Flow {
  return { ok: union(a.ok, b.ok), fail: union(a.fail, b.fail) };
}

/** After `cd target`. */
export function changed(directories: Directories, target: Word): Flow {
  return { ok: directories?.map((list) => [...list, target]), fail: directories };
}

function isSame(a: readonly Word[], b: readonly Word[]): boolean {
  return a.length === b.length && a.every((word, index) => word === b[index]);
}

/** Builtins that change the directory of the shell, or run what may. */
const MOVERS = new Set(['cd', 'pushd', 'popd', 'eval', 'source', '.', 'command', 'builtin']);

/** True if any shell within the node may change its directory, subshells included. */
export function movesSomewhere(node: SyntaxNode): boolean {
  return (node.kind === 'simple' && mayMove(node, NONE)) || childrenOf(node).some(movesSomewhere);
}

const NONE: ReadonlySet<string> = new Set();

/** True if the shell that runs the node may stand elsewhere afterwards. */
function mayMove(node: SyntaxNode, functions: ReadonlySet<string>): boolean {
  const within = (child: SyntaxNode) => mayMove(child, functions);
  switch (node.kind) {
    case 'simple': {
      const name = node.words[0]?.value;
      return name !== undefined && (MOVERS.has(name) || functions.has(name));
    }
    case 'list':
      return node.items.some((item) => !item.background && within(item.node));
    case 'and-or':
      return node.nodes.some(within);
    case 'pipeline':
      return node.nodes.length === 1 && node.nodes.some(within);
    case 'group':
      return !node.subshell && within(node.body);
    case 'redirected':
      return within(node.body);
    case 'if':
      return (
        node.branches.some((branch) => within(branch.condition) || within(branch.body)) ||
        (node.otherwise !== undefined && within(node.otherwise))
      );
    case 'loop':
      return within(node.body) || (node.condition !== undefined && within(node.condition));
    case 'case':
      return node.bodies.some(within);
    case 'function':
      return within(node.body);
    case 'expression':
      return false;
  }
}

/** The effect of builtins on where the shell stands, and on whether it goes on. */
export function moves(name: string, args: readonly Word[], directories: Directories): Flow | undefined {
  switch (name) {
    case 'cd':
      return afterCd(name, args, directories);
    case 'pushd':
      return args.length === 0 ? both(undefined) : afterCd(name, args, directories);
    case 'popd':
      return both(undefined);
    case 'exit':
      // With two arguments bash complains and goes on.
      return args.length < 2 && args.every((word) => word.value !== undefined) ? both([]) : both(directories);
    case 'source':
    case '.':
      return /(?:^|\/)bin\/activate$/.test(args[0]?.value ?? '') ? both(directories) : both(undefined);
    default:
      return undefined;
  }
}

function afterCd(name: 'cd' | 'pushd', args: readonly Word[], directories: Directories): Flow {
  let rest = args;
  while (/^-[LPe]+$/.test(rest[0]?.value ?? '')) rest = rest.slice(1);
  const isEnded = rest[0]?.value === '--';
  if (isEnded) rest = rest.slice(1);
  const [target, ...others] = rest;
  if (others.length > 0) return both(undefined);
  if (target === undefined) {
    const span = args[0]?.span ?? { start: 0, end: 0 };
    return changed(directories, {
      ...literalWord('~', span),
      value: undefined,
      parts: [{ kind: 'tilde', user: '' }],
    });
  }
  // `cd -` goes back, `pushd +1` turns the stack, and another option is not known.
  if ((isEnded && name === 'cd' ? /^-$/ : /^[-+]/).test(target.value ?? '')) return both(undefined);
  // An empty word leaves the directory as it is in bash; it is not worth a possibility of its own.
  return target.value === '' ? both(directories) : changed(directories, target);
}
