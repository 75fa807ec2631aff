import { createHash } from 'node:crypto';
import type { Taint } from '../../model/decision.ts';
import { defaultPrincipal, hasState, lazyState, stateDirectory } from '../../run/state.ts';

/** What is remembered of an agent's session, opened only where something is or will be. */
export interface SessionMemory {
  readonly id: string;
  readonly taints: () => Promise<readonly Taint[]>;
  readonly taint: (taint: Taint, reason: string) => Promise<void>;
  /** Counts an action. False: `limit` is reached. */
  readonly countAction: (limit: number) => Promise<boolean>;
  readonly close: () => Promise<void>;
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
export function sessionMemory(id: string): SessionMemory {
  const principal = defaultPrincipal();
  const state = lazyState(stateDirectory());
  return {
    id,
    taints: async () => {
      if (!hasState()) return [];
      const { sessions } = await state();
      await sessions.use(id, principal);
      return sessions.taints(id, principal);
    },
    taint: async (taint, reason) => (await state()).sessions.taint(id, principal, taint, reason),
    countAction: async (limit) => {
      const { budget } = await state();
      const reservation = await budget.reserve(principal, limit);
      if (reservation === undefined) return false;
      await budget.commit(reservation);
      return true;
    },
    close: () => state.close(),
  };
}
