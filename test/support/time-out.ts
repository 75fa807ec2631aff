import { patience } from './slow-host.ts';

/** Longer than anything takes to begin. */
const MOST_MS = 60_000;

/**
 * Runs a command that its time limit ends, and that has to come somewhere before: where it did not, as on a machine that does
 * other things, it runs once more with three times as long.
 */
export async function untilTimeOut<T>(
  firstMs: number,
  run: (timeout: number) => Promise<T>,
  cameThere: (result: T) => boolean,
): Promise<T> {
  for (let timeout = patience(firstMs); ; timeout *= 3) {
    const result = await run(timeout);
    if (cameThere(result) || timeout > patience(MOST_MS)) return result;
  }
}
