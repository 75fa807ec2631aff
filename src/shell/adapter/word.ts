import type { Word as ParsedWord } from 'unbash';
import type { Word, WordPart } from '../../model/command-line.ts';
import { mergeLiterals, tildeParts } from '../../model/word.ts';
import { mayExpandBraces } from '../text-checks.ts';
import type { Context } from './context.ts';
import { readPart } from './word-parts.ts';

/** A word; `inAssignment`: it is a value, where bash expands no globs and no braces. */
export function readWord(node: ParsedWord, context: Context, inAssignment = false): Word {
  const { text } = context;
  const raw = text.of(node);
  const parts: WordPart[] = [];
  const braced = node.parts?.some((part) => part.type === 'BraceExpansion') === true;
  let at = node.pos;
  for (const part of node.parts ?? [
    { type: 'Literal', pos: node.pos, end: node.end, text: raw, value: node.value } as const,
  ]) {
    if (part.pos !== at)
      text.refuse('ambiguous', 'A word is not what it looks like: write it more plainly.', node);
    at = part.end;
    if (part.type === 'Literal' && !inAssignment && part.text.includes('{') && !braced) {
      if (mayExpandBraces(raw.slice(part.pos - node.pos))) {
        text.refuse('ambiguous', 'A brace expansion is not plain: write the words out.', node);
      }
    }
    if (part.type === 'ProcessSubstitution' && (part.pos !== node.pos || part.end !== node.end)) {
      text.refuse('construct', 'A process substitution is understood only as a word of its own.', node);
    }
    parts.push(...readPart(part, 'none', context));
  }
  if (at !== node.end)
    text.refuse('ambiguous', 'A word is not what it looks like: write it more plainly.', node);
  const first = node.parts?.[0];
  const tilded =
    first === undefined || first.type === 'Literal' ? tildeParts(raw, parts, inAssignment) : parts;
  const known = inAssignment ? tilded.map(withoutGlob) : tilded;
  const merged = mergeLiterals(known);
  const value = merged.every((part) => part.kind === 'literal')
    ? merged.map(textOfLiteral).join('')
    : undefined;
  return { value, parts: merged, source: raw, span: text.span(node) };
}

function withoutGlob(part: WordPart): WordPart {
  return part.kind === 'glob' ? { kind: 'literal', text: part.text } : part;
}

function textOfLiteral(part: WordPart): string {
  return part.kind === 'literal' ? part.text : '';
}
