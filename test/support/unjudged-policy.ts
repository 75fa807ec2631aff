import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Makes a configuration directory whose policy judges no command: what these tests try, a policy may refuse, and here
 * the kernel is to refuse it. Tests of the policy say so themselves.
 */
export function makeUnjudgedConfiguration(root: string): string {
  const configuration = join(root, 'config');
  mkdirSync(join(configuration, 'sandbox-run'), { recursive: true });
  writeFileSync(join(configuration, 'sandbox-run/policy.toml'), '[unsafe]\nunjudged_commands = true\n', {
    mode: 0o600,
  });
  return configuration;
}
