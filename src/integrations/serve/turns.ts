/** Lets so much work be done at once; what comes on top waits, in order. */
export function createTurns(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running >= most) await new Promise<void>((go) => waiting.push(go));
    else running += 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      // Whoever is next takes the place over.
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
