import type { Assignment, Redirection, Word } from 'unbash';
import type { ShellText } from './shell-text.ts';

type Piece = Word | Assignment | Redirection;

/**
 * Between two pieces of a command stand blanks and line continuations. Only a redirect that begins with its operator
 * may touch what stands before it.
 */
export function checkNeighbours(nodes: readonly Piece[], text: ShellText): void {
  nodes.forEach((node, index) => {
    const before = nodes[index - 1];
    if (before === undefined) return;
    const gap = text.source.slice(before.end, node.pos);
    const mayTouch = isRedirection(node) && /^[<>&]/.test(text.of(node));
    if (!/^(?:[ \t]|\\\n)*$/.test(gap) || (gap === '' && !mayTouch)) {
      text.refuse('ambiguous', 'Two words touch: put a blank between them.', node);
    }
  });
}

function isRedirection(node: Piece): boolean {
  return node.type !== 'Word' && node.type !== 'Assignment';
}
