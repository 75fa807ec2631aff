/** How much is read before a text counts as not understood. */
export interface Limits {
  /** Length of the whole source in bytes of UTF-8. */
  readonly maxBytes: number;
  /** Depth of the parser's tree within one text. */
  readonly maxDepth: number;
  readonly maxCommands: number;
  /** Words of one command. */
  readonly maxWords: number;
  /** Texts and runners within each other: `sh -c "env sh -c …"`. */
  readonly maxRunners: number;
}

export const DEFAULT_LIMITS: Limits = {
  maxBytes: 64 * 1024,
  maxDepth: 120,
  maxCommands: 500,
  maxWords: 4096,
  maxRunners: 16,
};
