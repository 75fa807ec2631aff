import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createModelStream } from '../../../../src/run/output/model-stream.ts';

/** What a model gets of output that comes in such pieces. */
function shown(pieces: readonly (string | Uint8Array)[], most: number | undefined): string {
  const stream = createModelStream(most);
  return pieces.map((piece) => stream.write(Buffer.from(piece))).join('') + stream.end();
}

const GAP = /\n\[\.\.\. ([\d,]+) bytes left out \.\.\.\]\n/;

describe('output on its way to a model', () => {
  it('has no escape sequences, wherever it was cut', () => {
    expect(shown(['\x1b[3', '1mred\x1b[0m\x1b]0;ti', 'tle\x07 \xe9\n'], 1_000)).toBe('red é\n');
  });

  it('of what is too long has the beginning at once, the end at the end, and says how much is missing', () => {
    const stream = createModelStream(1_000);
    const head = stream.write(Buffer.from('a'.repeat(700)));
    expect(head).toBe('a'.repeat(470));
    expect(stream.write(Buffer.from('é'.repeat(5_000)))).toBe('');
    const end = stream.end();
    expect(end).toMatch(/^\n\[\.\.\. [\d,]+ bytes left out \.\.\.\]\né{470}$/);
    const [, missing = ''] = GAP.exec(end) ?? [];
    expect(Number(missing.replaceAll(',', ''))).toBe(230 + 2 * (5_000 - 470));
  });

  it('leaves nothing out where the model reads it as it comes', () => {
    expect(shown(['x'.repeat(100_000), 'y'], undefined)).toBe(`${'x'.repeat(100_000)}y`);
  });

  it('is never longer than was said, and whole where it fits', () => {
    const text = fc.string({ unit: fc.constantFrom('a', 'é', '🦊', '\n'), maxLength: 400 });
    fc.assert(
      fc.property(fc.array(text, { maxLength: 12 }), fc.integer({ min: 100, max: 400 }), (pieces, most) => {
        const whole = pieces.join('');
        const said = shown(pieces, most);
        expect(said.length).toBeLessThanOrEqual(Math.max(most, 0));
        expect(said).not.toMatch(/\p{Surrogate}/u);
        // A character that takes two is not cut for the sake of one place.
        if (whole.length <= most - 60 || !GAP.test(said)) expect(said).toBe(whole);
        else {
          const [before = '', missing, after = ''] = said.split(GAP);
          expect(missing).toBeDefined();
          expect(whole.startsWith(before) && whole.endsWith(after)).toBe(true);
          expect(Buffer.byteLength(before + after) + Number(missing?.replaceAll(',', ''))).toBe(
            Buffer.byteLength(whole),
          );
        }
      }),
    );
  });
});
