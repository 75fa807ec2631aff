import { createHash, randomBytes } from 'node:crypto';
import type { SessionMemory } from '../../gate/index.ts';
import {
  defaultPrincipal,
  hasState,
  lazyState,
  operatorStateSettings,
  stateDirectory,
} from '../../run/index.ts';
import type { Environment } from '../../workspace/index.ts';

/** What is remembered of an agent's session, opened only where something is or will be. */
export interface AgentMemory extends SessionMemory {
  readonly id: string;
  close(): Promise<void>;
}

/**
 * The session of ours for one of an agent. Its name has the agent's before it, so that none is that of another agent or one
 * that the operator named; an id that cannot stand in a name is hashed.
 */
export function sessionNameOf(agent: string, id: string): string {
  const plain = /^[A-Za-z0-9_-]{1,80}$/.test(id);
  return `${agent}.${plain ? id : `sha256.${createHash('sha256').update(id).digest('hex')}`}`;
}

/** The memory of a session. */
export function sessionMemory(id: string): AgentMemory {
  const principal = defaultPrincipal();
  const state = lazyState(stateDirectory());
  return {
    id,
    begin: () => {},
    taints: async (given, sharing) => {
      if (!hasState() && (await operatorStateSettings())?.url === undefined) return given;
      const { sessions } = await state();
      await sessions.use(id, principal);
      return [...new Set([...given, ...(await sessions.taints(id, principal, sharing))])];
    },
    taint: async (taint, reason) => (await state()).sessions.taint(id, principal, taint, reason),
    close: () => state.close(),
  };
}

/** The agent's shell finds programs along its own search path, which is about that of its hooks. */
export const ofAgent = ({ PATH }: Environment) => ({ PATH });

/** The request id in the audit trail, equal for the decision and the end of a call. If the agent gives no call id, the decision gets no result record. */
export function recordOf({ id }: AgentMemory, call: string | undefined): string {
  return `hook:${id}:${call ?? randomBytes(8).toString('hex')}`.slice(0, 400);
}
