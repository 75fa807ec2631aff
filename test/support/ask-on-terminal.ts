// A program for tests: asks on its terminal about the request in its first argument and prints the answer. The others:
// how long in milliseconds, and a file with the native addon (for the lock).
import { createRequire } from 'node:module';
import type { NativeAddon } from '../../src/confine/native/index.ts';
import { createTerminalApprover } from '../../src/gate/index.ts';

const [request = '', timeoutMs, addon] = process.argv.slice(2);
const tryLock =
  addon === undefined ? undefined : (createRequire(addon)(addon) as Pick<NativeAddon, 'tryLock'>).tryLock;
void createTerminalApprover({ tryLock })
  .ask(JSON.parse(request), { timeoutMs: Number(timeoutMs) })
  .then((answer) => process.stdout.write(`ANSWER ${JSON.stringify(answer)}\n`));
