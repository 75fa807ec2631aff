/** How many there may be at once. */
interface EntranceLimits {
  readonly admitted: number;
  /** Of those that have asked for nothing yet. */
  readonly waiting: number;
}

/**
 * Who is let in to a server: connections that have asked for nothing yet, and those that asked for something that they may
 * have. Each kind has its own bound. Of the first the oldest give way, so that nobody keeps others out by holding
 * connections open.
 */
export class Entrance<Connection> {
  readonly #limits: EntranceLimits;
  readonly #giveUp: (connection: Connection) => void;
  /** Oldest first. */
  readonly #waiting = new Set<Connection>();
  readonly #admitted = new Set<Connection>();
  #looking = false;

  /** `giveUp`: ends one that has asked for nothing. */
  constructor(limits: EntranceLimits, giveUp: (connection: Connection) => void) {
    this.#limits = limits;
    this.#giveUp = giveUp;
  }

  /** One that has asked for nothing yet. */
  enter(connection: Connection): void {
    this.#waiting.add(connection);
    if (this.#looking || this.#waiting.size <= this.#limits.waiting) return;
    this.#looking = true;
    // Many are accepted at once, and read from in the next turn of the loop: one that has sent its request is never among
    // those that are given up, however many came after it.
    setImmediate(() => setImmediate(() => this.#look()));
  }

  /** Admits a connection that made a valid request. False: the limit of admitted connections is reached. */
  admit(connection: Connection): boolean {
    this.#waiting.delete(connection);
    if (this.#admitted.has(connection)) return true;
    if (this.isFull()) return false;
    this.#admitted.add(connection);
    return true;
  }

  /** A connection has ended. */
  leave(connection: Connection): void {
    this.#waiting.delete(connection);
    this.#admitted.delete(connection);
  }

  /** Whether as many were admitted as may be. */
  isFull(): boolean {
    return this.#admitted.size >= this.#limits.admitted;
  }

  #look(): void {
    this.#looking = false;
    for (const oldest of this.#waiting) {
      if (this.#waiting.size <= this.#limits.waiting) return;
      this.#waiting.delete(oldest);
      this.#giveUp(oldest);
    }
  }
}
