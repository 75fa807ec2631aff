import { SandboxError } from '../errors/sandbox-error.ts';
import { commandRules } from './command-rules.ts';
import { createGate } from './gate.ts';
import { resolvePolicy } from './resolve-policy.ts';
import type { SandboxOptions } from './sandbox-options.ts';
import { sessionOf } from './session.ts';
import { lazyState, openOwnState, stateDirectory } from './state.ts';

/**
 * Ends a session of this user from outside, and tells the hooks of the policy.
 * @throws {SandboxError} `session.invalid` if there is no such session that is open.
 */
export async function endSession(id: string, options: SandboxOptions): Promise<void> {
  const { state, principal } = await openOwnState();
  const found = await state.sessions.find(id);
  state.close();
  if (found === undefined || found.principal !== principal || found.endedAt !== undefined)
    throw new SandboxError(
      'session.invalid',
      `there is no open session ${id} of this user (sandbox-run session list shows them)`,
    );
  const resolved = await resolvePolicy(options);
  const { policy, workspace } = resolved;
  const session = sessionOf(id, principal, lazyState(stateDirectory()));
  const writable = () => commandRules(resolved, undefined).writable;
  const gate = await createGate({ policy, options: { ...options, session }, workspace, writable });
  await session.end();
  await gate.close();
}
