import type { Command, HereDoc, Redirection } from 'unbash';
import type { Assignment, Redirect, Word } from '../../model/command-line.ts';
import type { SimpleNode, SyntaxNode } from '../syntax.ts';
import { readAssignment, readDeclaration } from './assignments.ts';
import type { Context } from './context.ts';
import { checkNeighbours } from './neighbours.ts';
import { readRedirect } from './redirects.ts';
import { readWord } from './word.ts';

/** Words, assignments and redirects; `substitutions` is the list that the context adds to. */
export function readSimple(
  node: Command,
  context: Context,
  substitutions: readonly SyntaxNode[],
): SimpleNode {
  const words: Word[] = [];
  const assignments: Assignment[] = [];
  const redirects: Redirect[] = [];
  let input: string | undefined;
  const all = [...node.prefix, ...(node.name === undefined ? [] : [node.name]), ...node.suffix];
  checkNeighbours(all, context.text);
  for (const item of all) {
    if (item.type === 'Word') words.push(readWord(item, context));
    else if (item.type !== 'Assignment') {
      redirects.push(readRedirect(item, context));
      if (item.type === 'HereDoc' && item.delimiter?.quoted === true) input = inputOf(item);
      else if (!leavesInput(item)) input = undefined;
    } else if (words.length === 0) assignments.push(readAssignment(item, context));
    else words.push(readDeclaration(item, context));
  }
  return {
    kind: 'simple',
    words,
    assignments,
    redirects,
    input,
    substitutions,
    span: context.text.span(node),
  };
}

function inputOf(document: HereDoc): string | undefined {
  const descriptor = document.descriptor;
  if (descriptor !== undefined && !(descriptor.type === 'FileDescriptor' && descriptor.value === 0))
    return undefined;
  return document.operator === '<<-' ? document.body.text.replace(/^\t+/gm, '') : document.body.text;
}

/** True if the redirect leaves the standard input alone. */
function leavesInput(node: Redirection): boolean {
  const { descriptor } = node;
  if (descriptor === undefined) return !node.operator.startsWith('<');
  return descriptor.type === 'FileDescriptor' && descriptor.value !== 0;
}
