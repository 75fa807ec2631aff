/** Lines of one trail that were put into a stream together, in the order of the trail, each with its line break. */
export interface StreamedLines {
  /** Which trail of which machine and user: a word of letters, digits, `_` and `-`. */
  readonly trail: string;
  /** Where in the stream; grows by one with each, whatever the trail. */
  readonly position: number;
  readonly lines: Buffer;
}

/**
 * A stream on other machines that keeps what is put into it. Each method rejects with a `SandboxError` (`fleet.…`) when
 * there is no answer in time; whether something was put into it is unknown then.
 */
export interface RecordStream {
  /** The last lines of a trail. */
  last(trail: string): Promise<StreamedLines | undefined>;
  /**
   * Puts lines behind those of the same trail at `behind` (0: as its first); returns their position once most of the
   * servers that keep the stream have them. `undefined`: others are there by now, so nothing was put there.
   */
  append(trail: string, lines: Buffer, behind: number): Promise<number | undefined>;
  /** What it holds, by its own count. */
  extent(): Promise<StreamExtent>;
  /** Everything that there is now, in its order; with a time only what was put there later. */
  read(since?: number): AsyncIterable<StreamedLines>;
  close(): Promise<void>;
}

/** The positions in a stream. */
interface StreamExtent {
  /** Position of the oldest record; 0: there never was one. */
  readonly first: number;
  /** The highest position that was ever assigned. */
  readonly last: number;
  /** How many positions hold something. */
  readonly count: number;
  /** The name of the stream on its server. */
  readonly name: string;
  /** Whether the server refuses to delete and purge. */
  readonly deletesNothing: boolean;
  /** Whether it drops the oldest by limits of age, size or number. */
  readonly dropsOld: boolean;
}
