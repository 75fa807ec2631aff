import type { OutputLimits } from '../../model/output.ts';
import { wholeCharactersEnd, wholeCharactersStart } from '../../util/utf8-edges.ts';

/** Where something of a stream is missing, and what is left on both sides, in whole characters. */
interface Gap {
  readonly head: Uint8Array;
  readonly tail: Uint8Array;
  /** What came right before the tail, if that was kept. */
  readonly beforeTail: Uint8Array;
  /** Bytes of the stream that are in neither. */
  readonly missing: number;
}

/**
 * The gap in what was kept of a stream, `undefined` if everything is to be shown.
 * @param kept its first `headBytes` bytes and directly after them its last ones, perhaps more than the limits say.
 * @param total bytes that the stream had.
 */
export function findGap(
  kept: Uint8Array,
  headBytes: number,
  total: number,
  limits: OutputLimits,
): Gap | undefined {
  if (total === kept.length && total <= limits.head + limits.tail) return undefined;
  const head = kept.subarray(0, Math.min(headBytes, limits.head));
  // Of a stream that was kept as a whole the tail may begin anywhere behind the head.
  const from = Math.max(kept.length - limits.tail, head.length);
  const shownHead = head.subarray(0, wholeCharactersEnd(head));
  const tail = kept.subarray(from);
  const shownTail = tail.subarray(wholeCharactersStart(tail));
  return {
    head: shownHead,
    tail: shownTail,
    beforeTail: kept.subarray(head.length, from),
    missing: total - shownHead.length - shownTail.length,
  };
}

let digits: Intl.NumberFormat | undefined;

/** The line that stands in output where bytes of it are missing. Always of this form. */
export function omissionLine(missing: number): string {
  return `\n[... ${numberFormat().format(missing)} bytes left out ...]\n`;
}

/** Made on first use: it takes milliseconds of every start. */
function numberFormat(): Intl.NumberFormat {
  digits ??= new Intl.NumberFormat('en-US');
  return digits;
}
