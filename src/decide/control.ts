import type { ApprovalAnswer } from '../model/approval.ts';
import type { Taint } from '../model/decision.ts';
import type { ExecutionError, ExecutionResult } from '../model/execution-result.ts';
import type { ApprovedRequest } from '../model/options.ts';
import type { JudgeRequest } from './judge.ts';
import type { DecisionPorts, ResolvedCommand, Seen } from './ports.ts';

/** A command that is to be run. */
export interface DecisionRequest extends Omit<JudgeRequest, 'approved'> {
  /** A person has approved it beforehand: whatever it does by now, or exactly the request with a fingerprint. */
  readonly approved?: boolean | ApprovedRequest | undefined;
  /** What else makes a difference to an approval: its input, its time limit. */
  readonly details?: (() => readonly string[]) | undefined;
  /** The same without what `check()` does not know. */
  readonly detailsOfCheck?: (() => readonly string[]) | undefined;
  /** Names it in the records. Default: a random one. */
  readonly id?: string | undefined;
  /** Aborted when the command is given up. */
  readonly signal?: (() => AbortSignal) | undefined;
}

/** Why a command does not run. */
export type Objection =
  | { readonly status: 'denied' | 'setup-failed'; readonly error: ExecutionError }
  | { readonly status: 'canceled' };

/** A request on its way through the controls, and what is known about it so far. */
export interface Deciding {
  readonly request: DecisionRequest;
  readonly ports: DecisionPorts;
  /** For the records. */
  readonly id: string;
  taints: readonly Taint[];
  /** `undefined`: commands are not judged. */
  seen: Seen | undefined;
  /** `undefined`: another program starts it. */
  resolved: ResolvedCommand | undefined;
  approval: ApprovalAnswer | undefined;
  /** What reviewer and hooks have said. */
  readonly said: Map<string, unknown>;
  readonly warnings: string[];
}

/** One thing that stands between a request and its launch. */
export interface Control {
  readonly name: string;
  /** False: with these ports it has nothing to do. */
  isNeeded?(ports: DecisionPorts): boolean;
  /** Objects, or lets the request go on. What is thrown is an objection, too. */
  decide?(deciding: Deciding): Objection | undefined | Promise<Objection | undefined>;
  /** Another control, or this one, has objected: takes back what this one did. */
  refused?(deciding: Deciding, objection: Objection): void | Promise<void>;
  /** The command was started and has ended, or was given up before (`started` false). Failures become warnings. */
  ended?(deciding: Deciding, ending: Ending): void | Promise<void>;
}

/** How a command that was allowed ended. */
export interface Ending {
  /** `undefined`: another program runs it, and how it ends is not known here. */
  readonly result: ExecutionResult | undefined;
  readonly started: boolean;
}
