import { wholeCharactersStart } from '../../util/utf8-edges.ts';
import { omissionLine } from './gap.ts';
import { createNeutralizer } from './neutralize.ts';

const KEEPER = { write: (text: string) => text, end: () => '' };
const newDecoder = () => new TextDecoder('utf-8', { ignoreBOM: true });

/** Decodes one stream piece by piece; a character that was cut between two of them is whole. */
export function createDecoder(neutralizes: boolean) {
  const show = neutralizes ? createNeutralizer() : KEEPER;
  let decoder = newDecoder();
  let afterGap = false;
  return {
    write(bytes: Uint8Array): string {
      const whole = afterGap ? bytes.subarray(wholeCharactersStart(bytes)) : bytes;
      afterGap = false;
      return show.write(decoder.decode(whole, { stream: true }));
    },
    /** So many bytes are missing here; what was cut in two by that is left out. */
    skip(missing: number): string {
      decoder = newDecoder();
      afterGap = true;
      return show.end() + omissionLine(missing);
    },
    /** What is left at the end. */
    end: (): string => show.write(decoder.decode()) + show.end(),
  };
}
