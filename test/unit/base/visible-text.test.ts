import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { visibleJson, visibleLine, visibleText } from '../../../src/base/visible-text.ts';

describe('visibleText', () => {
  it.each([
    ['plain text', 'git commit -m "a" #\\n', 'git commit -m "a" #\\n'],
    ['letters of other scripts', 'grüße 世界 שלום', 'grüße 世界 שלום'],
    ['letters with marks of their own', 'e\u0301', 'e\u0301'],
    ['control characters', 'a\x1b[2J\r\t\0', 'a\\u{1b}[2J\\u{d}\\u{9}\\u{0}'],
    ['the second set of controls', '\x9b31m', '\\u{9b}31m'],
    ['bidirectional characters', 'a\u202eb\u2066c\u200f', 'a\\u{202e}b\\u{2066}c\\u{200f}'],
    ['characters without a width', 'r\u200bm\u2060\ufeff', 'r\\u{200b}m\\u{2060}\\u{feff}'],
    ['spaces that are none', 'a\u00a0b\u3000c\u2003', 'a\\u{a0}b\\u{3000}c\\u{2003}'],
    ['blanks that count as letters', '\u3164\u115f\u2800', '\\u{3164}\\u{115f}\\u{2800}'],
    ['other line ends', 'a\u2028b\u2029c\u0085', 'a\\u{2028}b\\u{2029}c\\u{85}'],
    ['tags and selectors', 'a\u{e0041}\ufe0f', 'a\\u{e0041}\\u{fe0f}'],
    ['marks on what is no letter', '=\u0338', '=\\u{338}'],
    ['marks piled up', 'a\u0301\u0301\u0301', 'a\u0301\u0301\\u{301}'],
    ['halves of pairs', '\ud800', '\\u{d800}'],
    ['line breaks', 'a\nb', 'a\\u{a}b'],
    ['text that looks like an escape', '\\u{202e}', '\\u{5c}u{202e}'],
  ])('%s', (_, text, shown) => {
    expect(visibleText(text)).toBe(shown);
  });

  it('keeps line breaks where they are wanted, and nothing else', () => {
    expect(visibleText('a\r\nb\u2028', { keep: '\n' })).toBe('a\\u{d}\nb\\u{2028}');
  });

  it('different texts stay different', () => {
    const text = fc.string({
      unit: fc.oneof(fc.constantFrom('\\', 'u', '{', '}', '5', 'c', '\u202e'), fc.string()),
    });
    fc.assert(
      fc.property(text, (original) => {
        const back = visibleText(original).replace(/\\u\{([0-9a-f]+)\}/g, (_, hex) =>
          String.fromCodePoint(Number.parseInt(hex, 16)),
        );
        expect(back).toBe(original);
      }),
    );
  });
});

describe('visibleLine', () => {
  it('is at most as long as it may be, and says when something is missing', () => {
    expect(visibleLine('abcd', 4)).toBe('abcd');
    expect(visibleLine(' abcd\n', 4)).toBe('abcd');
    expect(visibleLine('abcde', 4)).toBe('abc…');
    expect(visibleLine('\n\n\na', 4)).toBe('a');
    expect(visibleLine('a\0b', 4)).toBe('a\\u…');
    expect(visibleLine(`${' '.repeat(9)}ab`, 4)).toBe('ab');
  });

  it('cuts no character in halves', () => {
    for (let limit = 2; limit < 9; limit += 1) {
      const line = visibleLine('a😀😀😀😀😀', limit);
      expect(line.length).toBeLessThanOrEqual(limit);
      expect(line).not.toMatch(/\p{Surrogate}/u);
    }
  });
});

describe('visibleJson', () => {
  it('means the same and shows everything', () => {
    const value = { text: 'a\u202eb\x9b\u{e0041}\x1b\u2028 ä 😀' };
    const json = visibleJson(JSON.stringify(value));
    expect(JSON.parse(json)).toEqual(value);
    expect(json).toBe('{"text":"a\\u202eb\\u009b\\udb40\\udc41\\u001b\\u2028 ä 😀"}');
  });
});
