import type { Word } from '../model/command-line.ts';
import { literalWord } from '../model/word.ts';
import { childrenOf, type SyntaxNode } from './syntax.ts';

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

export function afterwards(flow: Flow): Directories {
  return union(flow.ok, flow.fail);
}

export function union(a: Directories, b: Directories): Directories {
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
export function mayMove(node: SyntaxNode, functions: ReadonlySet<string>): boolean {
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
      return afterCd(args, directories);
    case 'pushd':
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

function afterCd(args: readonly Word[], directories: Directories): Flow {
  let rest = args;
  while (/^-[LPe]+$/.test(rest[0]?.value ?? '')) rest = rest.slice(1);
  if (rest[0]?.value === '--') rest = rest.slice(1);
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
  if (/^-|^\+/.test(target.value ?? '')) return both(undefined);
  // An empty word leaves the directory as it is in bash; it is not worth a possibility of its own.
  return target.value === '' ? both(directories) : changed(directories, target);
}
