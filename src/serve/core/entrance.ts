/**
 * Who is let in to a server: connections that have asked for nothing yet, and those that asked for something that they may
 * have. Each kind has its own bound. Of the first the oldest give way, so that nobody keeps others out by holding
 * connections open.
 */
interface Entrance<Connection> {
  /** One that has asked for nothing yet. */
  enter(connection: Connection): void;
  /** It asked for something that it may have, so it stays. False: as many do as may. */
  admit(connection: Connection): boolean;
  /** It is over. */
  leave(connection: Connection): void;
  /** Whether as many were admitted as may be. */
  isFull(): boolean;
}

/** How many there may be at once. */
interface EntranceLimits {
  readonly admitted: number;
  /** Of those that have asked for nothing yet. */
  readonly waiting: number;
}

/** @see Entrance. `giveUp`: ends one that has asked for nothing. */
export function createEntrance<Connection>(
  limits: EntranceLimits,
  giveUp: (connection: Connection) => void,
): Entrance<Connection> {
  /** Oldest first. */
  const waiting = new Set<Connection>();
  const admitted = new Set<Connection>();
  let looking = false;

  function look(): void {
    looking = false;
    for (const oldest of waiting) {
      if (waiting.size <= limits.waiting) return;
      waiting.delete(oldest);
      giveUp(oldest);
    }
  }

  return {
    enter(connection) {
      waiting.add(connection);
      if (looking || waiting.size <= limits.waiting) return;
      looking = true;
      // Many are accepted at once, and read from in the next turn of the loop: one that has sent its request is never among
      // those that are given up, however many came after it.
      setImmediate(() => setImmediate(look));
    },
    admit(connection) {
      waiting.delete(connection);
      if (admitted.has(connection)) return true;
      if (admitted.size >= limits.admitted) return false;
      admitted.add(connection);
      return true;
    },
    leave(connection) {
      waiting.delete(connection);
      admitted.delete(connection);
    },
    isFull: () => admitted.size >= limits.admitted,
  };
}
