import { z } from 'zod';
import { count, maybe, text, time, type Value } from '../base/value.ts';
import { Taint } from './decision.ts';

/** One taint of a session, and where it came from. */
const TaintInfo = z.strictObject({ taint: Taint, reason: text, at: time });

/** What is known of a session of an agent. */
export const SessionInfo = z
  .strictObject({
    id: text,
    principal: text,
    startedAt: time,
    lastUsedAt: time,
    endedAt: maybe(time).describe('missing: it has not ended'),
    taints: z.array(TaintInfo),
  })
  .describe('a session of an agent');
export type SessionInfo = Value<typeof SessionInfo>;

/** What a shell session is and does. */
export const ShellInfo = z.strictObject({
  id: text,
  pid: count,
  workspace: text,
  cwd: text,
  startedAt: time,
  lastUsedAt: time,
  running: z.boolean(),
  unusedTimeout: z.number().describe('milliseconds without a command after which it ends; 0: never'),
});
export type ShellInfo = Value<typeof ShellInfo>;

/** The session of an agent: what it was exposed to is remembered, also by later processes. */
export interface AgentSession {
  readonly id: string;
  readonly principal: string;
  /**
   * Notes that the session was exposed to something: `corruption`, content that may instruct the model; `secret`, data
   * that must not leave. It is never taken away.
   */
  taint(taint: Taint, reason?: string): Promise<void>;
  /** Its taints; where `gate.taints` says `user`, those of every session of the same principal that is used at the same time, too. */
  taints(): Promise<readonly Taint[]>;
  /**
   * Ends it: its taints count for it alone from now on, and what was approved for the session is asked again. Hooks of
   * sandboxes that use it are told.
   */
  end(): Promise<void>;
  /** @internal Called with the end. */
  onEnd(tell: () => Promise<unknown>): void;
}
