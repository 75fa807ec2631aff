const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Runs work that goes on until one of the signals that end a process comes; its own signal is aborted then. */
export async function untilEnded<T>(work: (over: AbortController) => Promise<T>): Promise<T> {
  const over = new AbortController();
  const end = () => over.abort();
  for (const signal of ENDING) process.on(signal, end);
  try {
    return await work(over);
  } finally {
    for (const signal of ENDING) process.removeListener(signal, end);
  }
}

/** Settles when it is aborted. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
