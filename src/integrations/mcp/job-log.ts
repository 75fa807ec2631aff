import { createDecoder } from '../../run/output/show.ts';

/** Characters that are kept of the output of a job: its last ones. */
const KEPT = 128 * 1024;

/** A part of what a job wrote. */
interface LogPart {
  readonly output: string;
  /** Where the next part begins: characters from the start of the job. */
  readonly next: number;
  /** Characters that were asked for and are not kept any more. */
  readonly leftOut: number;
  /** There is more behind this part already. */
  readonly more: boolean;
}

/** The output of a job as text for a model, to be read piece by piece. */
export interface JobLog {
  write(bytes: Uint8Array): void;
  /** Nothing more will come. */
  end(): void;
  /** At most so many characters, from `since`, or from where the last part ended. */
  read(since: number | undefined, most: number): LogPart;
}

/** Makes an empty one, which keeps its last `limit` characters. */
export function createJobLog(limit = KEPT): JobLog {
  const decoder = createDecoder(true);
  let text = '';
  /** Characters before `text`. */
  let gone = 0;
  let cursor = 0;

  function add(piece: string): void {
    text += piece;
    // Not each time: cutting copies what is left.
    if (text.length > 2 * limit) drop(text.length - limit);
  }

  function drop(count: number): void {
    const from = isInsidePair(text, count) ? count + 1 : count;
    text = text.slice(from);
    gone += from;
  }

  return {
    write: (bytes) => add(decoder.write(bytes)),
    end: () => add(decoder.end()),
    read(since = cursor, most) {
      const asked = Math.min(since, gone + text.length);
      const from = Math.max(asked, gone);
      const end = from - gone + most;
      const output = text.slice(from - gone, isInsidePair(text, end) ? end - 1 : end);
      const next = from + output.length;
      cursor = next;
      return { output, next, leftOut: from - asked, more: next < gone + text.length };
    },
  };
}

/** Between the halves of a character that takes two. */
function isInsidePair(text: string, at: number): boolean {
  return /^[\ud800-\udbff][\udc00-\udfff]$/.test(text.slice(Math.max(at - 1, 0), at + 1));
}
