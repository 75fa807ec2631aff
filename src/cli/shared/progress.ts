import { printBytes } from './print.ts';
import { isLively } from './style.ts';

/** Before this time a person does not wonder what takes so long. */
const QUIET_MS = 1_000;
const NARROWEST = 20;
const USUAL_COLUMNS = 80;

/** A line for those who wait. */
interface Progress {
  /** What is being done now: text of our own, in ASCII. */
  show(text: string): void;
  /** Takes the line away. Has to be called at the end, before anything else is printed. */
  clear(): void;
}

/**
 * A line on standard error that is written over. It appears after one second, also while nothing is reported, and only on a
 * terminal: nothing is written anywhere else.
 */
export function startProgress(): Progress {
  if (!isLively(2)) return { show: () => {}, clear: () => {} };
  const from = performance.now();
  let text = '';
  let isShown = false;
  const write = () => {
    const columns = Math.max(process.stderr.columns ?? USUAL_COLUMNS, NARROWEST);
    // A line that is wrapped could not be written over.
    const line = `sandbox-run: ${text}`.slice(0, columns - 1);
    isShown = true;
    printBytes(2, Buffer.from(`\r\u001b[K${line}`));
  };
  const timer = setTimeout(write, QUIET_MS);
  timer.unref();
  return {
    show: (now) => {
      text = now;
      if (performance.now() - from >= QUIET_MS) write();
    },
    clear: () => {
      clearTimeout(timer);
      if (isShown) printBytes(2, Buffer.from('\r\u001b[K'));
      isShown = false;
    },
  };
}
