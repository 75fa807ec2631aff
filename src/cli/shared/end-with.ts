import { writeSync } from 'node:fs';
import { describeShortage } from '../../base/errors/shortage.ts';

/** Time for output that still has a reader. */
const FLUSH_MS = 1_000;

/**
 * Ends the process with the status of its work, and with `otherwise` whatever else ends it before: a plug-in of the policy
 * that calls process.exit(), an exception, or nothing being left to wait for. None of them is a success, and `otherwise` is
 * no status that a command could have ended with. A shortage is said in one line; another exception is a mistake of ours.
 */
export function endWith(work: Promise<number>, otherwise: number): void {
  let status: number | undefined;
  process.once('exit', (code) => {
    process.exitCode = status ?? otherwise;
    // Another one was told with its reason.
    if (status === undefined && code === 0)
      console.error(
        'sandbox-run: ended before there was an answer: by a plug-in, or by a mistake of its own',
      );
  });
  const end = (ended: number) => {
    status = ended;
    // What a plug-in waits for must not keep this process, nor output without a reader.
    setTimeout(() => process.exit(), FLUSH_MS).unref();
  };
  void work.then(end, (error: unknown) => {
    const ours = error instanceof Error ? (error.stack ?? error.message) : String(error);
    writeSync(2, `sandbox-run: ${describeShortage(error) ?? ours}\n`);
    end(otherwise);
  });
}
