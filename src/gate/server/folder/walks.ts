import { type FSWatcher, watch } from 'node:fs';

/** Shared folders often tell of nothing: then it is the poll that finds requests. */
export function watchFolder(path: string, onChange: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(path, onChange);
    watcher.on('error', () => watcher.close());
    return watcher;
  } catch {
    return undefined;
  }
}

/** Walks over a folder. */
export interface Walks {
  /** Soon there is one that begins after this call. */
  request(): void;
  /** No further one; settles when there is none any more. */
  stop(): Promise<void>;
}

/** Walks one at a time: what is asked for during one becomes another, after a pause. */
export function createWalks(walk: () => Promise<void>, pauseMs: number): Walks {
  let running: Promise<void> | undefined;
  let wanted = false;
  let stopped = false;
  async function run(): Promise<void> {
    while (wanted && !stopped) {
      wanted = false;
      await walk();
      if (!stopped) await new Promise((done) => setTimeout(done, pauseMs));
    }
    running = undefined;
  }
  return {
    request: () => {
      wanted = true;
      if (!stopped) running ??= run();
    },
    stop: async () => {
      stopped = true;
      await running;
    },
  };
}
