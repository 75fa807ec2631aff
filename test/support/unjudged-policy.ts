import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Makes a configuration directory whose policy judges no command: what these tests try, a policy may refuse, and here
 * the kernel is to refuse it. Tests of the policy say so themselves.
 */
export function makeUnjudgedConfiguration(root: string): string {
  return makeConfiguration(join(root, 'config'), '[unsafe]\nunjudged_commands = true\n');
}

/**
 * The same with the level that asks by risk alone, whatever the sandbox holds: for tests of what becomes of a question.
 */
export function makeSupervisedConfiguration(root: string): string {
  return makeConfiguration(join(root, 'supervised'), SUPERVISED);
}

/** Makes a configuration directory whose policy asks about each loss of work, also where undo would bring it back. */
export function makeAskingConfiguration(root: string): string {
  return makeConfiguration(join(root, 'asking'), ASKS_ABOUT_LOSSES);
}

/** A policy that does. */
export const ASKS_ABOUT_LOSSES = '[workspace]\nundo = "never"\n';

/** A policy with that level. */
export const SUPERVISED = '[security]\nautonomy = "supervised"\n';

/** Makes a configuration directory with a policy. */
export function makeConfiguration(configuration: string, policy: string): string {
  mkdirSync(join(configuration, 'sandbox-run'), { recursive: true });
  writeFileSync(join(configuration, 'sandbox-run/policy.toml'), policy, { mode: 0o600 });
  return configuration;
}
