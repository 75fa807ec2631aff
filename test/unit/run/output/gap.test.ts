import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { findGap, omissionLine, showOutput, showStream } from '../../../../src/run/output/show.ts';

const view = (head: number, tail: number) => ({
  limits: { head, tail },
  headBytes: head,
  asBytes: false,
  neutralizes: false,
});

/** What the addon keeps of a stream. */
function keptOf(all: Buffer, head: number, tail: number): Buffer {
  if (all.length <= head + tail) return all;
  return Buffer.concat([all.subarray(0, head), all.subarray(all.length - tail)]);
}

const text = fc.string({ unit: 'binary', maxLength: 60 });
const limit = fc.nat({ max: 40 });

describe('the gap in output', () => {
  it('is none in what is short', () => {
    expect(showStream(Buffer.from('grün'), 5, view(3, 2))).toEqual({ text: 'grün', missing: 0 });
    expect(showStream(undefined, 0, view(0, 0))).toEqual({ text: '', missing: 0 });
  });

  it('is a line that counts with separators', () => {
    expect(omissionLine(12_345_678)).toBe('\n[... 12,345,678 bytes left out ...]\n');
    expect(omissionLine(1)).toBe('\n[... 1 bytes left out ...]\n');
  });

  it('takes characters with it that it would cut', () => {
    const all = Buffer.from('aä€😀zz😀€äb');
    expect(all.length).toBe(22);
    expect(showStream(keptOf(all, 2, 2), 22, view(2, 2)).text).toBe(`a${omissionLine(20)}b`);
    expect(showStream(keptOf(all, 5, 4), 22, view(5, 4)).text).toBe(`aä${omissionLine(16)}äb`);
    expect(showStream(keptOf(all, 9, 9), 22, view(9, 9)).text).toBe(`aä€${omissionLine(10)}€äb`);
  });

  it('leaves whole characters on both sides, a beginning and an end of the text, and counts the rest', () => {
    fc.assert(
      fc.property(text, limit, limit, (whole, head, tail) => {
        // Halves of pairs cannot be written to a pipe.
        const all = Buffer.from(whole.replace(/\p{Cs}/gu, ''));
        const shown = showStream(keptOf(all, head, tail), all.length, view(head, tail));
        if (all.length <= head + tail) {
          expect(shown).toEqual({ text: all.toString(), missing: 0 });
          return;
        }
        const gap = findGap(keptOf(all, head, tail), head, all.length, { head, tail });
        if (gap === undefined) throw new Error('there must be a gap');
        const [before, after] = [Buffer.from(gap.head), Buffer.from(gap.tail)];
        expect(shown.text).toBe(before.toString() + omissionLine(shown.missing) + after.toString());
        expect(all.subarray(0, before.length)).toEqual(before);
        expect(all.subarray(all.length - after.length)).toEqual(after);
        // No character was cut, so none was replaced.
        expect(Buffer.from(before.toString())).toEqual(before);
        expect(Buffer.from(after.toString())).toEqual(after);
        expect(before.length).toBeGreaterThan(head - 4);
        expect(before.length).toBeLessThanOrEqual(head);
        expect(after.length).toBeGreaterThan(tail - 4);
        expect(after.length).toBeLessThanOrEqual(tail);
        expect(shown.missing).toBe(all.length - before.length - after.length);
      }),
      { numRuns: 2000 },
    );
  });

  it('takes at most three bytes with it at each side of what is no UTF-8', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), limit, limit, (bytes, head, tail) => {
        const all = Buffer.from(bytes);
        const { missing } = showStream(keptOf(all, head, tail), all.length, view(head, tail));
        const least = Math.max(0, all.length - head - tail);
        expect(missing).toBeGreaterThanOrEqual(least);
        expect(missing).toBeLessThanOrEqual(least === 0 ? 0 : least + 6);
      }),
    );
  });

  it('is where the addon ran out of memory', () => {
    expect(showStream(Buffer.from('abyz'), 100, view(50, 50), 2).text).toBe(`ab${omissionLine(96)}yz`);
    expect(showStream(undefined, 100, view(50, 50), 0).text).toBe(omissionLine(100));
  });
});

describe('output as bytes', () => {
  it('is as it was, and says where something is missing', () => {
    const stdout = Buffer.from([0xff, 0xc3, 0xbc, 0x00]);
    const captured = { stdout, stdoutBytes: 10, stderr: undefined, stderrBytes: 0 };
    expect(showOutput(captured, { ...view(2, 2), asBytes: true })).toEqual({
      stdout: '',
      stderr: '',
      truncated: { stdout: 6, stderr: 0 },
      bytes: { stdout, stderr: new Uint8Array(0), gapAt: { stdout: 2, stderr: undefined } },
    });
  });
});
