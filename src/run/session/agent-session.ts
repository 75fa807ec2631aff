import { randomUUID } from 'node:crypto';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { TAINTS } from '../../base/words.ts';
import type { AgentSession } from '../../model/index.ts';
import { operatorPolicy } from '../resolve/policy-layers.ts';
import { defaultPrincipal, type LazyState, lazyState, stateDirectory } from '../state.ts';

/** Options of `openSession`. */
export interface SessionOptions {
  /** Letters, digits, `.`, `_` and `-`, at most 128. Default: a new one that cannot be guessed. */
  readonly id?: string;
  /** Who it belongs to. Default: the user of this process. */
  readonly principal?: string;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,127}$/;

/** @throws {SandboxError} `session.invalid` for an id that is none. */
export function checkSessionId(id: string): string {
  if (NAME.test(id)) return id;
  throw new SandboxError(
    'session.invalid',
    `${JSON.stringify(id)} cannot be the id of a session; it takes letters, digits, ".", "_" and "-", at most 128`,
  );
}

/**
 * Opens a session of an agent, or goes on with one.
 * @throws {SandboxError} `session.invalid`, `state.unusable`, `state.untrusted`.
 */
export async function openSession(options: SessionOptions = {}): Promise<AgentSession> {
  const id = checkSessionId(options.id ?? randomUUID());
  const principal = options.principal ?? defaultPrincipal();
  const state = lazyState(stateDirectory());
  const known = await (await state()).sessions.find(id);
  if (known !== undefined && known.principal !== principal)
    throw new SandboxError('session.invalid', `the session ${id} belongs to another principal`);
  return sessionOf(id, principal, state);
}

/** A session in a state. */
export function sessionOf(id: string, principal: string, state: LazyState): AgentSession {
  const atEnd = new Set<() => Promise<unknown>>();
  return {
    id,
    principal,
    taint: async (taint, reason = 'the application says so') => {
      if (!TAINTS.includes(taint))
        throw new SandboxError('usage.invalid', `a taint is one of ${TAINTS.join(', ')}`);
      await (await state()).sessions.taint(id, principal, taint, reason);
    },
    taints: async () => (await state()).sessions.taints(id, principal, (await operatorPolicy()).gate.taints),
    end: async () => {
      await (await state()).sessions.end(id, principal);
      await Promise.all([...atEnd].map((tell) => tell()));
      await state.close();
    },
    onEnd: (tell) => {
      atEnd.add(tell);
    },
  };
}
