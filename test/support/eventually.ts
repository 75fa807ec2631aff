import { patience } from './slow-host.ts';

/** However busy the machine is: what takes longer than this does not happen any more. */
const LEAST_MS = 60_000;

/**
 * Tries an assertion until it holds, and throws what it said last if it does not within a minute, or within `milliseconds`
 * if those are more. The whole test must be given that long, too: see `testTimeout` in vitest.config.ts.
 */
export async function eventually(assertion: () => void | Promise<void>, milliseconds = 0): Promise<void> {
  const end = Date.now() + patience(Math.max(LEAST_MS, milliseconds));
  for (;;) {
    try {
      await assertion();
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
      await sleep(20);
    }
  }
}

export const sleep = (milliseconds: number) => new Promise<void>((done) => setTimeout(done, milliseconds));
