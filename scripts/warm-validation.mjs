// Reading policies, done once: V8 keeps the compiled code of the functions that are called here.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SAMPLE = `
[security]
autonomy = "supervised"
max_actions_per_hour = 500
[commands]
rules = [{ program = "git", words = ["push"], verdict = "ask" }]
[filesystem]
read = ["~/data"]
[environment]
pass = ["NODE_ENV"]
[limits]
timeout_seconds = 60
[audit]
enabled = true
`;

/** Reads a policy of the user and one of a workspace. */
export async function readSamples({ loadLayer, loadWorkspaceFile }) {
  const directory = mkdtempSync(join(tmpdir(), 'sandbox-run-build-'));
  try {
    const path = join(directory, 'policy.toml');
    writeFileSync(path, SAMPLE, { mode: 0o600 });
    await loadLayer('user', path);
    writeFileSync(path, '[security]\nautonomy = "supervised"\n', { mode: 0o600 });
    await loadWorkspaceFile(path, process.geteuid());
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
