/** A value as it was read. */
export interface KeyValueEntry {
  readonly key: string;
  readonly value: string;
  /** Grows with each write. */
  readonly revision: number;
}

/**
 * A store of texts by key, on other machines, that compares before it sets: what a fleet's state is kept in. Keys are
 * words of letters, digits, `_` and `-` with dots between. Each method rejects with a `SandboxError` (`fleet.…`) when
 * there is no answer in time; whether a write was done is unknown then.
 */
export interface KeyValue {
  /** By the member that orders all writes. */
  get(key: string): Promise<KeyValueEntry | undefined>;
  /**
   * Writes if the key still has this revision (0: if it has no value); returns the new revision. `undefined`: it has
   * another one by now, so nothing was written.
   */
  put(key: string, value: string, revision: number): Promise<number | undefined>;
  /** Takes the value away if the key still has this revision. False: it has another one. */
  remove(key: string, revision: number): Promise<boolean>;
  /** All keys that have a value and match, in the order of their writes. `*` stands for one word. */
  list(pattern: string): Promise<readonly KeyValueEntry[]>;
}

/** Where a fleet's state is kept, and by which clock. */
export interface FleetStore {
  readonly values: KeyValue;
  /**
   * A store for one key alone, by a word: what is compared there is the store's own order, on every server that keeps it.
   * For what many write at the same time and must never lose.
   */
  alone(word: string): Promise<KeyValue>;
  /** For what is forgotten after a day or two. */
  readonly shortLived: KeyValue;
  /** The clock of the store, so that no machine's own counts. */
  readonly clock: FleetClock;
  close(): Promise<void>;
}

/** The time of the store, as this machine knows it. Milliseconds since 1970. */
interface FleetClock {
  /** Asks the store if that was too long ago. */
  now(): Promise<number>;
  /** The wall clock of this machine at the same moment. */
  host(): number;
}
