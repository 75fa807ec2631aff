import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  createNeutralizer,
  LONGEST_OPEN_SEQUENCE,
  neutralize,
} from '../../../../src/run/output/neutralize.ts';
import { createDecoder, omissionLine, showStream } from '../../../../src/run/output/show.ts';

const ESC = '\x1b';
const UNWANTED = /(?![\n\t])\p{Cc}|[\p{Bidi_Control}\u{e0000}-\u{e007f}]/u;

/** What terminals obey, and what surrounds it. */
const piece = fc.oneof(
  fc.constantFrom(
    ...[
      'a',
      'ü',
      '😀',
      '\n',
      '\t',
      '\r',
      '\r\n',
      '\b',
      '\x07',
      '\x00',
      '\x7f',
      '\x85',
      '\u202e',
      '\u{e0041}',
    ],
    ...['31m', '[', ']', '0;title', '\\', ESC, '\x9b', '\x9d', '\x90', '\x9c', '\x18'],
    ...[
      `${ESC}[31m`,
      `${ESC}[?25l`,
      `${ESC}]0;title\x07`,
      `${ESC}]8;;http://x${ESC}\\`,
      `${ESC}P1$q${ESC}\\`,
    ],
    ...[`${ESC}(B`, `${ESC}7`, `${ESC}c`, '\x9b2K', `${ESC}[>4;1m`, `${ESC}_app${ESC}\\`],
  ),
  fc.string({ unit: 'binary', maxLength: 8 }),
);
const terminalText = fc
  .array(piece, { maxLength: 40 })
  .map((pieces) => pieces.join('').replace(/\p{Cs}/gu, ''));

describe('neutralized text', () => {
  it.each([
    ['colours', `${ESC}[1;31mred${ESC}[0m and ${ESC}[38;5;196mmore${ESC}[m`, 'red and more'],
    ['eight-bit controls', '\x9b31mred\x9b0m', 'red'],
    ['private modes', `${ESC}[?1049h${ESC}[>4;1mtext${ESC}[?25l`, 'text'],
    ['titles and links', `${ESC}]0;title\x07a ${ESC}]8;;http://x${ESC}\\link${ESC}]8;;${ESC}\\`, 'a link'],
    ['the clipboard', `a${ESC}]52;c;cm0gLXJm\x07b`, 'ab'],
    ['images', `a${ESC}Pq#0;2;0;0;0\n#0~~@@vv${ESC}\\b`, 'ab'],
    ['other functions', `${ESC}(B${ESC}7a${ESC}8${ESC}=${ESC}c`, 'a'],
    ['a sequence within a sequence', `${ESC}${ESC}[31m[31mred`, '[31mred'],
    ['bells and their kin', 'a\x07b\x00c\x0ed\x7fe', 'abcde'],
    ['line breaks of all kinds', 'a\r\nb\r\r\nc\vd\fe\x85f', 'a\nb\nc\nd\ne\nf'],
    ['a progress bar', '10%\r50%\r100%\ndone\n', '100%\ndone\n'],
    ['a progress bar that erases', `10%\r${ESC}[K50%\r${ESC}[Kdone\r\n`, 'done\n'],
    ['a line that ends with a return', 'working\r', 'working'],
    ['a spinner', 'wait |\b/\b-\b\\\b done', 'wait  done'],
    ['bold of manual pages', 'N\bNA\bAM\bME\bE', 'NAME'],
    ['backspaces at the beginning', '\b\ba', 'a'],
    ['bidirectional controls', 'a\u202eb\u2066c', 'a\\u{202e}b\\u{2066}c'],
    ['invisible tags', 'a\u{e0041}b', 'a\\u{e0041}b'],
    ['invisible characters', 'a\u200bb\u200cc\u2060d\ufeff', 'a\\u{200b}b\\u{200c}c\\u{2060}d\\u{feff}'],
    ['more of them', 'a\u00adb\u3164\u{e0100}c\ufe00', 'a\\u{ad}b\\u{3164}\\u{e0100}c\\u{fe00}'],
    ['fillers of half width', 'a\uffa0b', 'a\\u{ffa0}b'],
    [
      'joiners and selectors out of place',
      'a\u200db1\ufe0f😀\ufe0f\ufe0f',
      'a\\u{200d}b1\\u{fe0f}😀\ufe0f\\u{fe0f}',
    ],
    ['what belongs to emoji and words', '❤️ 👩🏽‍💻 🏳️‍🌈 1️⃣ می\u200cخواهم', '❤️ 👩🏽‍💻 🏳️‍🌈 1️⃣ می\u200cخواهم'],
    ['what is fine', 'ä\t👩‍👩‍👧 → \u00a0 \\u{1f600} 日本\n', 'ä\t👩‍👩‍👧 → \u00a0 \\u{1f600} 日本\n'],
    ['a sequence without an end', `a${ESC}[31`, 'a'],
    ['a title without an end', `a${ESC}]0;tit`, 'a'],
    ['what a line break ends before its end', `a${ESC}]0;b\nc`, 'a0;b\nc'],
  ])('has no %s', (_, text, expected) => {
    expect(neutralize(text)).toBe(expected);
  });

  it('has no escape sequence, no control character and nothing that deceives, whatever it was', () => {
    fc.assert(
      fc.property(terminalText, (text) => {
        expect(neutralize(text)).not.toMatch(UNWANTED);
      }),
      { numRuns: 3000 },
    );
  });

  it('has all other text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (text) => {
        // What is invisible is shown, unless it is in its place: the rows above say where that is.
        fc.pre(!UNWANTED.test(text) && !/\p{Default_Ignorable_Code_Point}/u.test(text));
        expect(neutralize(text)).toBe(text);
      }),
    );
  });

  it('does not hide what a title that is never closed would', () => {
    const text = `a${ESC}]0;${'b'.repeat(LONGEST_OPEN_SEQUENCE)}`;
    expect(neutralize(text)).toBe(`a0;${'b'.repeat(LONGEST_OPEN_SEQUENCE)}`);
  });

  it.each([ESC, `${ESC}]`, '\x9d', `${ESC}P`, '\x9b', `${ESC}[`, '\r', '\b', 'a', `${ESC}]a`, '\x90\n'])(
    'takes time that grows with the text, not with its square: %j',
    (unit) => {
      const text = unit.repeat(1_000_000 / unit.length);
      const started = performance.now();
      neutralize(text);
      const stream = createNeutralizer();
      stream.write(text);
      stream.end();
      expect(performance.now() - started).toBeLessThan(15_000);
    },
  );
});

describe('neutralized pieces', () => {
  const inPieces = (text: string, cuts: readonly number[]): string => {
    const stream = createNeutralizer();
    let shown = '';
    let from = 0;
    for (const cut of [...cuts].sort((one, other) => one - other)) {
      const to = Math.min(cut, text.length);
      shown += stream.write(text.slice(from, to));
      from = to;
    }
    return shown + stream.write(text.slice(from)) + stream.end();
  };

  it('are the same wherever they were cut', () => {
    fc.assert(
      fc.property(terminalText, fc.array(fc.nat({ max: 120 }), { maxLength: 12 }), (text, cuts) => {
        // A pair is never cut: a decoder gives whole characters.
        const whole = cuts.filter((at) => !/[\ud800-\udbff]/.test(text.charAt(at - 1)));
        expect(inPieces(text, whole)).toBe(inPieces(text, []));
        expect(inPieces(text, whole)).not.toMatch(UNWANTED);
      }),
      { numRuns: 3000 },
    );
  });

  it('begin a new line where one is written over', () => {
    expect(inPieces('10%\r50%\r100%\r\ndone', [4, 8, 13])).toBe('10%\n50%\n100%\ndone');
  });
});

describe('decoded pieces', () => {
  it('are the text, wherever its bytes were cut', () => {
    const bytes = fc.string({ unit: 'binary' }).map((text) => Buffer.from(text.replace(/\p{Cs}/gu, '')));
    fc.assert(
      fc.property(bytes, fc.array(fc.nat({ max: 60 })), (all, cuts) => {
        const decoder = createDecoder(false);
        let text = '';
        let from = 0;
        for (const cut of [...cuts].sort((one, other) => one - other)) {
          text += decoder.write(all.subarray(from, cut));
          from = Math.max(from, Math.min(cut, all.length));
        }
        expect(text + decoder.write(all.subarray(from)) + decoder.end()).toBe(all.toString());
      }),
    );
  });

  it('leave out what a gap cut in two', () => {
    const decoder = createDecoder(false);
    const [euro, smile] = [Buffer.from('€'), Buffer.from('😀')];
    expect(decoder.write(Buffer.concat([Buffer.from('a'), euro.subarray(0, 2)]))).toBe('a');
    expect(decoder.skip(7)).toBe(omissionLine(7));
    expect(decoder.write(Buffer.concat([smile.subarray(1), Buffer.from('b')]))).toBe('b');
  });
});

describe('a gap in neutralized output', () => {
  const show = (text: string, head: number, tail: number) => {
    const all = Buffer.from(text);
    const keptTail = tail + LONGEST_OPEN_SEQUENCE;
    const kept =
      all.length <= head + keptTail
        ? all
        : Buffer.concat([all.subarray(0, head), all.subarray(all.length - keptTail)]);
    const limits = { head, tail };
    return showStream(kept, all.length, { limits, headBytes: head, asBytes: false, neutralizes: true });
  };

  it('leaves nothing of a sequence that it cuts', () => {
    const red = `${ESC}[38;2;100;100;100m`;
    for (let cut = 0; cut <= red.length + 1; cut += 1) {
      const { text } = show(`ab${red}${'x'.repeat(50)}${red}yz`, 1 + cut, 1 + cut);
      const [before, after] = text.split(/\n\[\.\.\. \d+ bytes left out \.\.\.\]\n/);
      expect(before).toMatch(/^ab?$/);
      expect(after).toMatch(/^y?z$/);
    }
  });

  it('is where the limits say, though more is kept', () => {
    expect(show('a'.repeat(100), 10, 20)).toEqual({
      text: `${'a'.repeat(10)}${omissionLine(70)}${'a'.repeat(20)}`,
      missing: 70,
    });
    expect(show('a'.repeat(100_000), 10, 20).missing).toBe(99_970);
    expect(show('a'.repeat(30), 10, 20)).toEqual({ text: 'a'.repeat(30), missing: 0 });
  });

  it('lets no control character through, whatever is cut', () => {
    fc.assert(
      fc.property(terminalText, fc.nat({ max: 30 }), fc.nat({ max: 30 }), (text, head, tail) => {
        expect(show(text, head, tail).text).not.toMatch(UNWANTED);
      }),
    );
  });
});
