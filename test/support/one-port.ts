/**
 * Has servers take the same port at several addresses, as any one is given for the first and somebody may have it at
 * another: tried again until all have it. What a failed attempt opened is the caller's to close.
 */
export async function onOnePort<Result>(listen: () => Promise<Result>): Promise<Result> {
  for (;;) {
    try {
      return await listen();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    }
  }
}
