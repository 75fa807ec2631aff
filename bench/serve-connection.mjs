// A connection to `sandbox-run serve` that was made before.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

/** Starts a server; `request(method, params)` resolves with its result. */
export async function startServe(cli) {
  const child = spawn(process.execPath, [cli, 'serve', '--stdio'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const waiting = new Map();
  let lastId = 0;
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id, result, error } = JSON.parse(line);
    const { done, fail } = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) done(result);
    else fail(new Error(error.message));
  });
  const request = (method, params) =>
    new Promise((done, fail) => {
      const id = ++lastId;
      waiting.set(id, { done, fail });
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    });
  await request('initialize', { protocolVersion: 1 });
  return {
    request,
    async stop() {
      const closed = once(child, 'close');
      child.stdin.end();
      await closed;
    },
  };
}
