import type { HereDoc, Redirection } from 'unbash';
import type { Redirect, Word } from '../../model/command-line.ts';
import { literalWord } from '../words.ts';
import type { Context } from './context.ts';
import { readHereDocument, staticBody } from './here-documents.ts';
import { readWord } from './word.ts';

export function readRedirect(node: Redirection, context: Context): Redirect {
  const { text } = context;
  const descriptor = node.descriptor?.type === 'FileDescriptor' ? node.descriptor.value : undefined;
  if (descriptor !== undefined && descriptor > 255) {
    text.refuse('construct', 'A descriptor above 255 is not understood.', node);
  }
  if (node.descriptor !== undefined && !/^\d{1,3}$/.test(text.of(node.descriptor))) {
    text.refuse('construct', 'A redirect to {variable} is not understood.', node);
  }
  const { operator } = node;
  const target = node.type === 'HereDoc' ? readHereDocument(node, context) : readTarget(node, context);
  const gap = node.type === 'HereDoc' ? node.delimiter : node.target;
  const start = node.descriptor?.end ?? node.pos;
  if (gap !== undefined && !isOperator(operator, text.source.slice(start, gap.pos))) {
    text.refuse('ambiguous', 'A redirect is not what it looks like: write it more plainly.', node);
  }
  const redirect = { operator, descriptor, target, span: text.span(node) };
  return node.type === 'HereDoc' ? { ...redirect, body: staticBody(node) } : redirect;
}

/** Between descriptor and target stands the operator, and nothing but blanks behind it. */
function isOperator(operator: string, written: string): boolean {
  return written.startsWith(operator) && /^(?:[ \t]|\\\n)*$/.test(written.slice(operator.length));
}

function readTarget(node: Exclude<Redirection, HereDoc>, context: Context): Word {
  const { text } = context;
  if (node.target === undefined) {
    text.refuse('syntax_error', 'A redirect has no target.', node);
    return literalWord('', text.span(node));
  }
  const target = readWord(node.target, context);
  const duplicates = node.operator === '>&' || node.operator === '<&';
  if (duplicates && !/^(?:\d{1,3}|-)$/.test(text.of(node.target))) {
    text.refuse(
      'construct',
      `${node.operator} is understood only with a descriptor number or "-": use &> for a file.`,
      node,
    );
  }
  return target;
}
