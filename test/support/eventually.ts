import { patience } from './slow-host.ts';

/** Tries an assertion until it holds, for at most five seconds or as long as is said, or more on a slow host. */
export async function eventually(assertion: () => void | Promise<void>, milliseconds = 5_000): Promise<void> {
  const end = Date.now() + patience(milliseconds);
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
