/** Tries an assertion until it holds, for at most five seconds. */
export async function eventually(assertion: () => void | Promise<void>): Promise<void> {
  const end = Date.now() + 5_000;
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
