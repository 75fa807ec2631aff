/**
 * A process that makes sandboxes and runs commands in them for a test that runs as somebody else.
 * Started by `lab.ts`; one JSON request per line on standard input, one JSON answer per line on standard output.
 */
import { createInterface } from 'node:readline';
import { pretendTier, runOnce } from './run-once.ts';

pretendTier(process.argv[2] === 'landlock' ? 'landlock' : 'view');
createInterface({ input: process.stdin }).on('line', async (line) => {
  const { id, request } = JSON.parse(line);
  const answer = await runOnce(request).catch((error: unknown) => ({ error: String(error) }));
  process.stdout.write(`${JSON.stringify({ id, answer })}\n`);
});
