import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { abandonedOnSharedMemory } from './shared-memory.ts';

/** Names the file in which directories are that go when all tests have ended. */
const LIST = 'SANDBOX_RUN_TEST_DIRECTORIES';

/** What is younger may be another launcher's that is just about to lock it. */
const YOUNG_MS = 1_000;

let directory: string | undefined;
let abandonedBefore: readonly number[] = [];

/** Tests remember nothing in the state directory of whoever runs them. Each project calls this; the first call counts. */
export function setup(): void {
  if (process.env[LIST] !== undefined) return;
  directory = mkdtempSync(join(tmpdir(), 'sandbox-run-state-test-'));
  process.env.XDG_STATE_HOME = directory;
  process.env[LIST] = `${directory}.list`;
  writeFileSync(`${directory}.list`, '');
  abandonedBefore = abandonedOnSharedMemory().map(({ inode }) => inode);
}

export async function teardown(): Promise<void> {
  if (directory === undefined) return;
  for (const made of readFileSync(`${directory}.list`, 'utf8').split('\n').filter(Boolean)) remove(made);
  remove(directory);
  rmSync(`${directory}.list`);
  await removeAbandoned();
}

/** What launchers left that tests killed: the next launcher removes only what is a minute old. */
async function removeAbandoned(): Promise<void> {
  const found = () => abandonedOnSharedMemory().filter(({ inode }) => !abandonedBefore.includes(inode));
  if (found().length === 0) return;
  await sleep(YOUNG_MS);
  for (const { path, changedMs } of found()) if (changedMs + YOUNG_MS <= Date.now()) remove(path);
}

/** A directory of a test file, which has nobody to remove it where all of its tests are skipped. */
export function makeDirectory(prefix: string): string {
  const made = mkdtempSync(prefix);
  const list = process.env[LIST];
  if (list !== undefined) appendFileSync(list, `${made}\n`);
  return made;
}

function remove(path: string): void {
  if (!existsSync(path)) return;
  // What commands left in layers may be shut, for their user, too.
  spawnSync('chmod', ['-R', 'u+rwx', path]);
  rmSync(path, { recursive: true, force: true });
}
