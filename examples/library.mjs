// Runs commands as an agent would. `npm run build`, then `node examples/library.mjs`.
// prints: [exited 0]
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSandbox } from 'sandbox-run';

const workspace = await mkdtemp(join(tmpdir(), 'example-'));
// With undo, which is the default, losing work would not be asked about where it can be taken back.
const sandbox = await createSandbox({ workspace, timeout: 10_000, undo: 'never' });

/** @param {string} command */
async function run(command, approved = false) {
  const result = await sandbox.run(command, { approved, escapes: 'neutralize' });
  const end = result.error?.message ?? `${result.status} ${result.exitCode}`;
  console.log(`$ ${command}\n${result.stdout}${result.stderr}[${end}]\n`);
}

await run('uname -s && pwd');
// Refused by the policy, and the kernel would refuse it too.
await run('touch /etc/shadow');
// What the sandbox holds is not asked about.
await run('echo hello > greeting.txt && cat greeting.txt');
// Nor is what a command of this sandbox made itself.
await run('rm greeting.txt');
// The policy asks before something is gone that nothing brings back; the application answers, not the model.
await writeFile(join(workspace, 'notes.txt'), 'of the user\n');
await run('rm notes.txt');
const { decision, request } = await sandbox.check('rm notes.txt');
console.log(`the policy says: ${decision?.verdict}; to be shown: ${request?.command}\n`);
await run('rm notes.txt', true);

await sandbox.close();
await rm(workspace, { recursive: true });
