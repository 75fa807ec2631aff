/** The place of one piece of work. */
export interface Turn {
  /** Gives the place up while it waits for somebody, and has one again before it goes on, ahead of what has not begun. */
  without<T>(wait: () => Promise<T>): Promise<T>;
}

/** Places for work. */
interface Turns {
  isFull(): boolean;
  /** Does it at once if there is a place; what comes on top waits, in order. */
  take<T>(work: (turn: Turn) => Promise<T>): Promise<T>;
  /** Begins at once, where it is not full, and keeps the place until it is over; what throws keeps none. */
  hold<T>(begin: (turn: Turn) => T, over: Promise<void>): T;
}

/** Lets so much work be done at once. */
export function createTurns(most: number): Turns {
  let running = 0;
  const waiting: (() => void)[] = [];
  const enter = async (isFirst: boolean) => {
    if (running < most) running += 1;
    else await new Promise<void>((go) => (isFirst ? waiting.unshift(go) : waiting.push(go)));
  };
  const leave = () => {
    const next = waiting.shift();
    // Whoever is next takes the place over.
    if (next === undefined) running -= 1;
    else next();
  };
  const turn: Turn = {
    without: async (wait) => {
      leave();
      try {
        return await wait();
      } finally {
        await enter(true);
      }
    },
  };
  return {
    isFull: () => running >= most,
    hold: (begin, over) => {
      running += 1;
      try {
        return begin(turn);
      } catch (error) {
        over = Promise.resolve();
        throw error;
      } finally {
        void over.then(leave);
      }
    },
    take: async (work) => {
      if (running < most) running += 1;
      else await enter(false);
      try {
        return await work(turn);
      } finally {
        leave();
      }
    },
  };
}
