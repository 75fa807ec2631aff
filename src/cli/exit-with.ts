import { writeSync } from 'node:fs';
import { describeShortage } from '../errors/shortage.ts';

/**
 * Ends the process with the status that comes; with `otherwise` if none does, which was no success, and never with one that
 * a command could have ended with. A shortage is said in one line; anything else here is a mistake of ours.
 */
export function exitWith(ended: Promise<number>, otherwise: number): void {
  process.exitCode = otherwise;
  void ended.then(
    (status) => {
      process.exitCode = status;
    },
    (error: unknown) => {
      const ours = error instanceof Error ? (error.stack ?? error.message) : String(error);
      writeSync(2, `sandbox-run: ${describeShortage(error) ?? ours}\n`);
    },
  );
}
