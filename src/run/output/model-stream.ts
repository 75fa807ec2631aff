import { createDecoder, omissionLine } from './show.ts';

/** Characters of output that a model gets of each stream by default. */
export const DEFAULT_MODEL_OUTPUT = 30_000;

/** Room for the line that says what is missing. */
const OMISSION_CHARACTERS = 60;

/** Output of one stream on its way to a model. */
interface ModelStream {
  /** What can be shown now. */
  write(bytes: Uint8Array): string;
  /** What is left at the end. */
  end(): string;
}

/**
 * Output for a model, as it comes: text without escape sequences, at most `most` characters of it. Of what is longer the
 * beginning is shown at once, and at the end a line that says how much is missing, and the end. `undefined`: all of it.
 */
export function createModelStream(most: number | undefined): ModelStream {
  const decoder = createDecoder(true);
  if (most === undefined) return decoder;
  const tailRoom = Math.floor((most - OMISSION_CHARACTERS) / 2);
  const headRoom = most - OMISSION_CHARACTERS - tailRoom;
  let shown = 0;
  let held = '';
  let missingBytes = 0;

  function drop(count: number): void {
    const from = wholeBefore(held, count);
    missingBytes += Buffer.byteLength(held.slice(0, from));
    held = held.slice(from);
  }
  function add(text: string): string {
    const head = text.slice(0, wholeBefore(text, headRoom - shown));
    // Once something is held back, everything is.
    const now = held === '' ? head : '';
    shown += now.length;
    held += text.slice(now.length);
    // Not each time: cutting copies what is left.
    if (held.length > 2 * tailRoom + 1) drop(held.length - tailRoom);
    return now;
  }
  return {
    write: (bytes) => add(decoder.write(bytes)),
    end: () => {
      const last = add(decoder.end());
      if (held.length > tailRoom) drop(held.length - tailRoom);
      return last + (missingBytes === 0 ? '' : omissionLine(missingBytes)) + held;
    },
  };
}

/** At most so many characters, and none that takes two is cut. */
function wholeBefore(text: string, count: number): number {
  const end = Math.min(Math.max(count, 0), text.length);
  return isInsidePair(text, end) ? end - 1 : end;
}

/** Between the halves of a character that takes two. */
export function isInsidePair(text: string, at: number): boolean {
  return /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(Math.max(at - 1, 0), at + 1));
}
