import type { Span, Word, WordPart } from './command-line.ts';

/** A word that is just `text`. */
export function literalWord(text: string, span: Span): Word {
  return { value: text, parts: [{ kind: 'literal', text }], source: text, span };
}

/** What a runner adds when it runs. */
export function inputWord(span: Span): Word {
  return { value: undefined, parts: [{ kind: 'input' }], source: '', span };
}

/** The word with `marker` replaced by what a runner puts in; the same word if it does not hold the marker. */
export function withInput(word: Word, marker: string, path: boolean): Word {
  const holds = (part: WordPart) => part.kind === 'literal' && part.text.includes(marker);
  if (marker === '' || !word.parts.some(holds)) return word;
  const input: WordPart = path ? { kind: 'input', path } : { kind: 'input' };
  const parts = word.parts.flatMap((part): readonly WordPart[] => {
    if (part.kind !== 'literal') return [part];
    return part.text
      .split(marker)
      .flatMap((text, index): readonly WordPart[] => [
        ...(index === 0 ? [] : [input]),
        ...(text === '' ? [] : [{ kind: 'literal', text } as const]),
      ]);
  });
  return { ...word, value: undefined, parts };
}

/** A word for a part of the text of another one, at the place of that one. */
export function wordFrom(text: string, origin: Word): Word {
  return literalWord(text, origin.span);
}

/** Neighbouring literals as one. */
export function mergeLiterals(parts: readonly WordPart[]): readonly WordPart[] {
  if (parts.length < 2) return parts;
  const merged: WordPart[] = [];
  for (const part of parts) {
    const last = merged.at(-1);
    if (last?.kind === 'literal' && part.kind === 'literal') {
      merged[merged.length - 1] = { kind: 'literal', text: last.text + part.text };
    } else merged.push(part);
  }
  return merged;
}

/**
 * The parts with a tilde at the beginning recognized, and in assignments also one behind `=` or `:`. `raw` is the word
 * as written; it begins with unquoted text.
 */
export function tildeParts(
  raw: string,
  parts: readonly WordPart[],
  inAssignment: boolean,
): readonly WordPart[] {
  if (!raw.includes('~')) return parts;
  const first = parts[0];
  if (first?.kind !== 'literal') return parts;
  const isAssignment = inAssignment || /^[A-Za-z_][A-Za-z0-9_]*\+?=/.test(raw);
  const at = isAssignment
    ? (/(?:^|[=:])~/.exec(raw)?.[0].length ?? 0) + (/(?:^|[=:])~/.exec(raw)?.index ?? 0) - 1
    : 0;
  if (at < 0 || raw[at] !== '~') return parts;
  // Everything before is unquoted text without escapes, or the offsets differ and the word is dynamic anyway.
  const before = first.text.slice(0, at);
  const user = /^[A-Za-z0-9._+-]*/.exec(first.text.slice(at + 1))?.[0] ?? '';
  const after = first.text.slice(at + 1 + user.length);
  return [
    ...(before === '' ? [] : [{ kind: 'literal', text: before } as const]),
    { kind: 'tilde', user },
    ...(after === '' ? [] : [{ kind: 'literal', text: after } as const]),
    ...parts.slice(1),
  ];
}

/** The text that the word certainly begins with; the whole of a static word. */
export function prefixOf(word: Word): string {
  if (word.value !== undefined) return word.value;
  const first = word.parts[0];
  return first?.kind === 'literal' ? first.text : '';
}

/** The literal text at the beginning of a word; all of it if the word is static. */
export function leadingText(word: Word): string {
  if (word.value !== undefined) return word.value;
  let text = '';
  for (const part of word.parts) {
    if (part.kind !== 'literal') {
      // Not an option, whatever follows.
      return part.kind === 'tilde' ? `${text}~${part.user}` : text;
    }
    text += part.text;
  }
  return text;
}

/** True if the word becomes exactly one word whatever it expands to. */
export function isSingle(word: Word): boolean {
  return word.parts.every((part) => {
    if (part.kind === 'glob' || part.kind === 'brace' || part.kind === 'input') return false;
    if (part.kind === 'parameter') {
      const isOne = part.plain || part.single === true;
      return part.quoted === true && isOne && !/^[@*]$/.test(part.name);
    }
    return part.kind !== 'command-substitution' || part.quoted === true;
  });
}

/** The word without its first `length` characters, which are literal. */
export function withoutPrefix(word: Word, length: number): Word {
  const [first, ...others] = word.parts;
  const text = first?.kind === 'literal' ? first.text.slice(length) : '';
  return {
    value: word.value?.slice(length),
    parts: text === '' && others.length > 0 ? others : [{ kind: 'literal', text }, ...others],
    source: word.source,
    span: word.span,
  };
}
