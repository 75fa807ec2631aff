import type { Taint } from './decision.ts';

/** What is known of a session of an agent. Times in milliseconds since 1970. */
export interface SessionInfo {
  readonly id: string;
  readonly principal: string;
  readonly startedAt: number;
  readonly lastUsedAt: number;
  /** `undefined`: it has not ended. */
  readonly endedAt: number | undefined;
  readonly taints: readonly TaintInfo[];
}

/** One taint of a session, and where it came from. */
export interface TaintInfo {
  readonly taint: Taint;
  readonly reason: string;
  readonly at: number;
}
