import { randomBytes } from 'node:crypto';
import type { Objection } from '../../decide/control.ts';
import { createDecider } from '../../decide/decide.ts';
import type { DecisionPorts, SessionMemory } from '../../decide/ports.ts';
import { type Assembly, requestMakerOf } from '../../run/assemble.ts';
import { budgetOf } from '../../run/stateful-ports.ts';
import type { GateDecide } from './answer.ts';

/**
 * Decides for programs that run their commands themselves, in containers say: nothing counts on enforcement by us. An
 * `allow` says that the policy has no objection, and is on record before it is returned.
 */
export function createGateDecider(
  assembly: Assembly,
  onProblem: ((message: string) => void) | undefined,
): GateDecide {
  return async ({ command, principal, session, requestId, signal }) => {
    const decide = createDecider(await portsFor(assembly, principal, session));
    const decided = await decide({
      ...{ command, cwd: assembly.workspace, signal: () => signal },
      // A client may use the same id again.
      id: `gate:${requestId}:${randomBytes(8).toString('hex')}`,
    });
    for (const warning of decided.warnings) onProblem?.(warning);
    if (!decided.allowed) return { decision: 'deny', reason: reasonOf(decided.objection) };
    // What cannot be counted for certain stays reserved, and so counted.
    await decided.ended?.({ result: undefined, started: true });
    return { decision: 'allow' };
  };
}

async function portsFor(
  assembly: Assembly,
  principal: string,
  session: string | undefined,
): Promise<DecisionPorts> {
  const { policy, stateful } = assembly;
  const budget = budgetOf(principal, stateful.state);
  return {
    ...{ policy, plan: undefined, principal, budget, outcome: () => 'allow' },
    judge: await assembly.judge(budget),
    makeRequest: requestMakerOf(assembly, { principal, session: { id: session } }),
    session: memoryOf(assembly, principal, session),
    approvals: stateful.approvals,
    record: stateful.record,
  };
}

/**
 * What a request without a session taints: one that belongs to the principal, that no client can name, and that is in use
 * at the same time as all its others. Without it a container could leave the session out whenever it does something that
 * is not to be remembered.
 */
const sessionWithoutName = (principal: string) => `gate:${principal}`;

function memoryOf({ stateful }: Assembly, principal: string, session: string | undefined): SessionMemory {
  return {
    id: session,
    begin: async () => {
      if (session !== undefined) await stateful.startSession({ id: session, principal });
    },
    // Without a name: those of every session of the principal.
    taints: async () => (await stateful.state()).sessions.taints(session ?? '', principal),
    taint: async (taint, reason) =>
      (await stateful.state()).sessions.taint(
        session ?? sessionWithoutName(principal),
        principal,
        taint,
        reason,
      ),
  };
}

/** What failed on this host is not told outside of it. */
function reasonOf(objection: Objection): string {
  if (objection.status === 'canceled') return 'the request was withdrawn';
  if (objection.error.code === 'audit.failed')
    return 'the decision could not be recorded, so the answer is no';
  return objection.error.message;
}
