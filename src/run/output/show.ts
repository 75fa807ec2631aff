import type { NativeCapture } from '../../confine/native/contract.ts';
import type { ExecutionResultBase, OutputLimits } from '../../model/index.ts';
import { createNeutralizer, neutralize, openSequence } from './neutralize.ts';

/** Where something of a stream is missing, and what is left on both sides, in whole characters. */
interface Gap {
  readonly head: Uint8Array;
  readonly tail: Uint8Array;
  /** Retained bytes directly before the tail. */
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
  // If all of a stream is in memory, its tail begins anywhere behind the head.
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

/** What a caller wants of captured output. */
export interface OutputView {
  readonly limits: OutputLimits;
  /** How many bytes of what the addon keeps are the first of a stream. */
  readonly headBytes: number;
  readonly asBytes: boolean;
  readonly neutralizes: boolean;
}

/** The part of a result that shows output. */
export type ShownOutput = Pick<ExecutionResultBase, 'stdout' | 'stderr' | 'truncated' | 'bytes'>;

interface ShownStream {
  readonly text: string;
  readonly missing: number;
}

/** Captured output as a result shows it. `headBytes`: as the addon says, where it differs from the view. */
export function showOutput(
  captured: NativeCapture,
  view: OutputView,
  headBytes?: readonly [number, number],
): ShownOutput {
  if (view.asBytes) return showBytes(captured, headBytes?.[0] ?? view.headBytes, headBytes?.[1]);
  const stdout = showStream(captured.stdout, captured.stdoutBytes, view, headBytes?.[0]);
  const stderr = showStream(captured.stderr, captured.stderrBytes, view, headBytes?.[1]);
  return {
    stdout: stdout.text,
    stderr: stderr.text,
    truncated: { stdout: stdout.missing, stderr: stderr.missing },
    bytes: undefined,
  };
}

/** One stream as text: what was kept, and a line where something is missing. */
export function showStream(
  kept: Uint8Array | undefined,
  total: number,
  view: OutputView,
  headBytes: number = view.headBytes,
): ShownStream {
  const bytes = kept ?? NOTHING;
  const show = (part: Uint8Array) => (view.neutralizes ? neutralize(decode(part)) : decode(part));
  const gap = findGap(bytes, headBytes, total, view.limits);
  if (gap === undefined) return { text: show(bytes), missing: 0 };
  const { head, tail, beforeTail, missing } = gap;
  const shownTail = view.neutralizes
    ? neutralize(openSequence(decode(beforeTail)) + decode(tail))
    : decode(tail);
  return { text: show(head) + omissionLine(missing) + shownTail, missing };
}

const NOTHING = new Uint8Array(0);

function showBytes(
  captured: NativeCapture,
  stdoutHead: number,
  stderrHead: number = stdoutHead,
): ShownOutput {
  const { stdout = NOTHING, stderr = NOTHING, stdoutBytes, stderrBytes } = captured;
  const truncated = { stdout: stdoutBytes - stdout.length, stderr: stderrBytes - stderr.length };
  return {
    stdout: '',
    stderr: '',
    truncated,
    bytes: {
      stdout,
      stderr,
      gapAt: {
        stdout: truncated.stdout === 0 ? undefined : Math.min(stdoutHead, stdout.length),
        stderr: truncated.stderr === 0 ? undefined : Math.min(stderrHead, stderr.length),
      },
    },
  };
}

function decode(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}

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

/** Most bytes of a character that can be on one side of a cut through it. */
const MOST_BYTES_OF_A_PART = 3;

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;

function bytesOfCharacter(first: number): number {
  if (first < 0xc0) return 1;
  if (first < 0xe0) return 2;
  return first < 0xf0 ? 3 : 4;
}

/** Where UTF-8 that was cut at its end ends, without the beginning of a character that goes on behind the cut. */
function wholeCharactersEnd(bytes: Uint8Array): number {
  for (let back = 1; back <= Math.min(MOST_BYTES_OF_A_PART, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (!isContinuation(byte)) return bytesOfCharacter(byte) > back ? bytes.length - back : bytes.length;
  }
  return bytes.length;
}

/** Where UTF-8 that was cut at its beginning begins, without the end of a character from before the cut. */
function wholeCharactersStart(bytes: Uint8Array): number {
  let start = 0;
  while (start < MOST_BYTES_OF_A_PART && isContinuation(bytes[start])) start += 1;
  return start;
}
