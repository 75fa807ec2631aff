import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Tests remember nothing in the state directory of whoever runs them. */
export default function setUp(): () => void {
  const directory = mkdtempSync(join(tmpdir(), 'sandbox-run-state-test-'));
  process.env.XDG_STATE_HOME = directory;
  return () => rmSync(directory, { recursive: true, force: true });
}
