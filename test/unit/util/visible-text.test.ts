import { describe, expect, it } from 'vitest';
import { visibleLine, visibleText } from '../../../src/util/visible-text.ts';

describe('visibleText', () => {
  it('leaves what can be seen', () => {
    for (const text of ['', 'a b', 'é ü 漢字 العربية 😀', '\\u{202e}', '"$(x)"'])
      expect(visibleText(text)).toBe(text);
  });

  it('writes out what cannot', () => {
    expect(visibleText('\u001b\u007f\u0085')).toBe('\\u{1b}\\u{7f}\\u{85}');
    expect(visibleText('\u202e\u2066\u200b\u2060\ufeff')).toBe(
      '\\u{202e}\\u{2066}\\u{200b}\\u{2060}\\u{feff}',
    );
    expect(visibleText('\u2028\u2029\u00a0\u3000\u3164\u034f\ufe0f')).toBe(
      '\\u{2028}\\u{2029}\\u{a0}\\u{3000}\\u{3164}\\u{34f}\\u{fe0f}',
    );
    expect(visibleText('\u{e0041}\ud800\ue000')).toBe('\\u{e0041}\\u{d800}\\u{e000}');
    expect(visibleText('a\n\tb')).toBe('a\\u{a}\\u{9}b');
  });

  it('keeps what it is told to', () => {
    expect(visibleText('a\n\tb\r', '\n\t')).toBe('a\n\tb\\u{d}');
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
