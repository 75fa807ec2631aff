import { describe, expect, it } from 'vitest';
import { visibleJson, visibleText } from '../../../src/util/visible-text.ts';

describe('visibleText', () => {
  it.each([
    ['plain text, äöü, 漢字, 😀', 'plain text, äöü, 漢字, 😀'],
    ['a\nb\r\tc', 'a\\nb\\r\\tc'],
    ['\x1b[2J\x07\x7f\x00', '\\x1b[2J\\x07\\x7f\\x00'],
    ['\x9b31m\x85', '\\x9b31m\\x85'],
    ['\u202egnp.exe\u2066', '\\u202egnp.exe\\u2066'],
    ['a\u200bb\u00adc\ufeffd\u2028e\u00a0f\u3164g', 'a\\u200bb\\xadc\\ufeffd\\u2028e\\xa0f\\u3164g'],
    ['\u{e0041}', '\\u{e0041}'],
    ['\ud800', '\\ud800'],
  ])('%j becomes %j', (text, expected) => {
    expect(visibleText(text)).toBe(expected);
  });

  it('keeps line breaks if it is asked to, and nothing else', () => {
    expect(visibleText('a\nb\r\n\x1bc', { keepLineBreaks: true })).toBe('a\nb\\r\n\\x1bc');
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
