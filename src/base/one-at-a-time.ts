/**
 * A work that several callers ask for and that runs once at a time. A caller that asks while it runs shares the next run,
 * which begins after the caller asked; a run that fails fails for those who share it.
 */
export function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  let next: Promise<void> | undefined;
  const start = () => {
    const run = work().finally(() => {
      running = next;
      next = undefined;
    });
    return run;
  };
  return () => {
    if (running !== undefined) {
      next ??= running.then(start, start);
      return next;
    }
    running = start();
    return running;
  };
}
