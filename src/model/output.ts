import { z } from 'zod';
import type { Value } from '../base/value.ts';
import { MAX_OUTPUT_BYTES } from '../base/words.ts';

/** The name of an output stream. */
export const OutputStream = z.enum(['stdout', 'stderr']);
export type OutputStream = Value<typeof OutputStream>;

/** How much of a stream is kept: so many of its first bytes, and so many of its last. */
const limits = (must: string, most: number) => {
  const bytes = z.number(must).int(must).min(0, must).max(most, must);
  return { bytes, both: z.strictObject({ head: bytes, tail: bytes }, must) };
};
export type OutputLimits = Value<ReturnType<typeof limits>['both']>;

/** What is kept of each stream; `most`: bytes that may be kept at the most. */
export function maxOutput(most: number) {
  const must = `a number of bytes, or { head, tail } with one of each: ${most} (${most / 1024 ** 2} MiB) at most; spill keeps more`;
  const { bytes, both } = limits(must, most);
  return z
    .union([bytes, both], must)
    .refine((given) => (typeof given === 'number' ? given : given.head + given.tail) <= most, must);
}

/** @see maxOutput */
export const MaxOutput = maxOutput(MAX_OUTPUT_BYTES);

/** A piece of output, in the order in which it was read. */
export interface OutputChunk {
  readonly stream: OutputStream;
  readonly bytes: Uint8Array;
  /** Bytes of the stream that came before these and were not kept, because reading began late. */
  readonly missing?: number;
}

/** A piece of output as text. */
export interface OutputText {
  readonly stream: OutputStream;
  readonly text: string;
}
