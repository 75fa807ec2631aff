import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

let directory: string | undefined;

/** Tests remember nothing in the state directory of whoever runs them. */
export function setup(): void {
  directory = mkdtempSync(join(tmpdir(), 'sandbox-run-state-test-'));
  process.env.XDG_STATE_HOME = directory;
}

export function teardown(): void {
  if (directory === undefined) return;
  // What commands left in layers may be shut, for their user, too.
  spawnSync('chmod', ['-R', 'u+rwx', directory]);
  rmSync(directory, { recursive: true, force: true });
}
