import { InvalidArgumentError } from 'commander';
import type { OutputLimits } from '../../model/output.ts';
import { MAX_OUTPUT_BYTES } from '../../model/words.ts';

const MAX_SECONDS = 365 * 24 * 3600;

/** Seconds on the command line, as milliseconds. */
export function parseSeconds(text: string): number {
  const seconds = Number(text);
  if (text.trim() === '' || !(seconds >= 0 && seconds <= MAX_SECONDS)) {
    throw new InvalidArgumentError('it must be a number of seconds from 0 (never) to a year.');
  }
  return Math.round(seconds * 1000);
}

const SIZE_UNITS = ['', 'K', 'M', 'G', 'T'];

/** `512M` and the like, in bytes. */
export function parseSize(text: string): number {
  const size = sizeOf(text);
  if (!Number.isSafeInteger(size) || size === 0) {
    throw new InvalidArgumentError('it must be a number of bytes above 0, with K, M, G or T at most.');
  }
  return size;
}

function sizeOf(text: string): number {
  const match = /^(\d+)([KMGT]?)$/i.exec(text);
  return Number(match?.[1]) * 1024 ** SIZE_UNITS.indexOf((match?.[2] ?? '').toUpperCase());
}

/** A whole number above 0. */
export function parseWhole(text: string): number {
  if (!/^\d{1,15}$/.test(text) || Number(text) === 0) {
    throw new InvalidArgumentError('it must be a whole number above 0.');
  }
  return Number(text);
}

/** `SIZE` or `HEAD+TAIL`. */
export function parseOutputLimit(text: string): number | OutputLimits {
  const [head = Number.NaN, tail] = text.split('+', 2).map(sizeOf);
  if (text.split('+').length > 2 || !(head + (tail ?? 0) <= MAX_OUTPUT_BYTES)) {
    throw new InvalidArgumentError(
      'it must be a number of bytes such as 512K, or two with a + between them, 128M in all at most (--spill keeps more).',
    );
  }
  return tail === undefined ? head : { head, tail };
}
