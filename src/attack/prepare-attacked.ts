import type { SandboxOptions } from '../model/options.ts';
import { type PreparedSandbox, prepareSandbox } from '../run/prepare-sandbox.ts';
import { type Sandbox, sandboxOn } from '../run/sandbox.ts';

/** Makes a sandbox ready; a test gives one that has a hole. */
export type Prepare = (options: SandboxOptions) => Promise<PreparedSandbox>;

/** A sandbox that is to be attacked. */
export interface Attacked {
  readonly prepared: PreparedSandbox;
  readonly sandbox: Sandbox;
}

/**
 * The sandbox that a command would get here. What judges the text of commands, counts and records them is left out: it is
 * the kernel that is attacked, and the user's trail and budget are none of the doctor's business. Under the backend
 * `application` this shows what a program may do that was let through.
 * @throws {SandboxError} as `createSandbox`.
 */
export async function prepareAttacked(
  options: SandboxOptions,
  prepare: Prepare = prepareSandbox,
): Promise<Attacked> {
  const prepared = await prepare(options);
  const sandbox = await sandboxOn(prepared, options, undefined, (ports) => ({
    ...ports,
    ...{ judge: undefined, budget: undefined, record: undefined, session: undefined, tellHooks: undefined },
  }));
  return { prepared, sandbox };
}
