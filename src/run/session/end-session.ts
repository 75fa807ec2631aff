import { SandboxError } from '../../errors/sandbox-error.ts';
import { operatorPolicy } from '../resolve/policy-layers.ts';
import { lazyState, openOwnState, stateDirectory } from '../state.ts';
import { createStatefulPorts } from '../stateful-ports.ts';
import { sessionOf } from './agent-session.ts';

/**
 * Ends a session of this user from outside, and tells the hooks of the policy.
 * @throws {SandboxError} `session.invalid` if there is no such session that is open.
 */
export async function endSession(id: string, policyFile?: string): Promise<void> {
  const { state, principal } = await openOwnState();
  const found = await state.sessions.find(id);
  state.close();
  if (found === undefined || found.principal !== principal || found.endedAt !== undefined)
    throw new SandboxError(
      'session.invalid',
      `there is no open session ${id} of this user (sandbox-run session list shows them)`,
    );
  const policy = await operatorPolicy(policyFile);
  const session = sessionOf(id, principal, lazyState(stateDirectory()));
  // There is no workspace here; no plug-in may lie where the state is.
  const ports = await createStatefulPorts({
    policy,
    options: { session },
    workspace: stateDirectory(),
    writable: () => [],
  });
  await session.end();
  await ports.close();
}
