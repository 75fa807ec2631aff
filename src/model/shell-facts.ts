/** What matters, for a decision, of a shell that has run other commands before. */
export interface ShellFacts {
  /** Names that stand for something of the shell's own now: its functions and aliases. */
  readonly names: readonly string[];
  /** Why words may mean something else than they say; each completes "in this session …". */
  readonly doubts: readonly string[];
  /** Variables that name a place, as decisions resolve them, and hold another one. */
  readonly places: readonly string[];
  /** Why a relative `cd` may lead elsewhere; completes the same. */
  readonly directoryDoubt: string | undefined;
}
