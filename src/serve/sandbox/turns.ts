/** The place of one piece of work. */
export interface Turn {
  /** Gives the place up while it waits for somebody, and has one again before it goes on, ahead of what has not begun. */
  without<T>(wait: () => Promise<T>): Promise<T>;
}

/** Lets so much work be done at once. */
export class Turns {
  readonly #most: number;
  #running = 0;
  readonly #waiting: (() => void)[] = [];
  readonly #turn: Turn = {
    without: async (wait) => {
      this.#leave();
      try {
        return await wait();
      } finally {
        await this.#enter(true);
      }
    },
  };

  constructor(most: number) {
    this.#most = most;
  }

  isFull(): boolean {
    return this.#running >= this.#most;
  }

  /** Begins at once, where it is not full, and keeps the place until it is over; what throws keeps none. */
  hold<T>(begin: (turn: Turn) => T, over: Promise<void>): T {
    this.#running += 1;
    let end = over;
    try {
      return begin(this.#turn);
    } catch (error) {
      end = Promise.resolve();
      throw error;
    } finally {
      void end.then(() => this.#leave());
    }
  }

  /** Does it at once if there is a place; what comes on top waits, in order. */
  async take<T>(work: (turn: Turn) => Promise<T>): Promise<T> {
    if (this.isFull()) await this.#enter(false);
    else this.#running += 1;
    try {
      return await work(this.#turn);
    } finally {
      this.#leave();
    }
  }

  async #enter(isFirst: boolean): Promise<void> {
    if (!this.isFull()) this.#running += 1;
    else await new Promise<void>((go) => (isFirst ? this.#waiting.unshift(go) : this.#waiting.push(go)));
  }

  #leave(): void {
    const next = this.#waiting.shift();
    // Whoever is next takes the place over.
    if (next === undefined) this.#running -= 1;
    else next();
  }
}
