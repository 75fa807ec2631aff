/** How {@link retried} goes on. */
interface Retries {
  /** Whether an error may be another one, or none, the next time. */
  readonly mayPass: (error: unknown) => boolean;
  readonly forMs: number;
  /** Before the next try. */
  readonly pause: () => Promise<unknown>;
}

/** Does something again for as long as what it throws may pass. @throws what the last try threw. */
export async function retried<T>(work: () => Promise<T>, { mayPass, forMs, pause }: Retries): Promise<T> {
  const until = performance.now() + forMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!mayPass(error) || performance.now() > until) throw error;
      await pause();
    }
  }
}
