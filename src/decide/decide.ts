import { randomUUID } from 'node:crypto';
import { SandboxError } from '../errors/sandbox-error.ts';
import type { ApprovalAnswer } from '../model/approval.ts';
import type { Decision, Taint } from '../model/decision.ts';
import type { ExecutionError, ExecutionResult } from '../model/execution-result.ts';
import type { ApprovedRequest } from '../model/options.ts';
import type { CommandEffects } from '../policy/effects.ts';
import { isPromise } from '../util/promise.ts';
import { CONTROLS } from './controls/all-controls.ts';
import type { Judgement, JudgeRequest } from './judge.ts';
import type { DecisionPorts, ResolvedCommand } from './ports.ts';
import { unusableGate } from './refusal.ts';

/** A command that somebody wants to run. */
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

/** What a command is at one moment: before a question, and again after the answer. */
export interface Seen {
  readonly judgement: Judgement;
  readonly decision: Decision;
  readonly effects: () => CommandEffects;
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
  readonly said: Map<object, unknown>;
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

/** What became of a request. */
export type Decided = {
  readonly decision: Decision | undefined;
  readonly approval: ApprovalAnswer | undefined;
  readonly judgement: Judgement | undefined;
  readonly seen: Seen | undefined;
  readonly resolved: ResolvedCommand | undefined;
  readonly warnings: readonly string[];
} & (
  | {
      readonly allowed: true;
      /**
       * To be called when it has ended: counts, records and tells. Gives warnings about what of that failed. Undefined:
       * there is nothing to do.
       */
      readonly ended: ((ending: Ending) => Promise<readonly string[]>) | undefined;
    }
  | { readonly allowed: false; readonly objection: Objection }
);

/** Decides about a request: at once where nothing has to be asked, counted or written. */
export type Decide = (request: DecisionRequest) => Decided | Promise<Decided>;

/** THE pipeline: judge, ask, look again, count, taint, record. Whatever fails on the way is a refusal. */
export function createDecider(ports: DecisionPorts, all: readonly Control[] = CONTROLS): Decide {
  const controls = all.filter((control) => control.isNeeded?.(ports) ?? true);
  return (request) => step(begin(request, ports), controls, 0);
}

function begin(request: DecisionRequest, ports: DecisionPorts): Deciding {
  let { id } = request;
  return {
    request,
    ports,
    get id() {
      id ??= randomUUID();
      return id;
    },
    taints: request.taints ?? [],
    seen: undefined,
    resolved: undefined,
    approval: undefined,
    said: new Map(),
    warnings: [],
  };
}

/** Goes through the controls from one on; waits only for those that make it wait. */
function step(deciding: Deciding, controls: readonly Control[], from: number): Decided | Promise<Decided> {
  for (const [index, control] of controls.entries()) {
    if (index < from) continue;
    try {
      const objection = control.decide?.(deciding);
      if (isPromise(objection))
        return objection.then(
          (said) =>
            said === undefined ? step(deciding, controls, index + 1) : refuse(deciding, controls, said),
          (error) => refuseBecause(deciding, controls, error),
        );
      if (objection !== undefined) return refuse(deciding, controls, objection);
    } catch (error) {
      return refuseBecause(deciding, controls, error);
    }
  }
  return allow(deciding, controls);
}

function allow(deciding: Deciding, controls: readonly Control[]): Decided {
  const following = controls.filter((control) => control.ended !== undefined);
  const ended = async (ending: Ending): Promise<readonly string[]> => {
    const before = deciding.warnings.length;
    for (const control of following) {
      try {
        await control.ended?.(deciding, ending);
      } catch (error) {
        // The command has run: what is left is to say so.
        deciding.warnings.push(error instanceof Error ? error.message : String(error));
      }
    }
    return deciding.warnings.slice(before);
  };
  return { ...known(deciding), allowed: true, ended: following.length === 0 ? undefined : ended };
}

function refuse(
  deciding: Deciding,
  controls: readonly Control[],
  objection: Objection,
): Decided | Promise<Decided> {
  const concerned = controls.filter((control) => control.refused !== undefined);
  const refused = (why: Objection): Decided => ({ ...known(deciding), allowed: false, objection: why });
  if (concerned.length === 0) return refused(objection);
  return (async () => {
    let why = objection;
    for (const control of concerned) {
      try {
        await control.refused?.(deciding, why);
      } catch (error) {
        why = { status: 'denied', error: unusableGate(error) };
      }
    }
    return refused(why);
  })();
}

function refuseBecause(
  deciding: Deciding,
  controls: readonly Control[],
  error: unknown,
): Decided | Promise<Decided> {
  return refuse(deciding, controls, { status: 'denied', error: unusableGate(error) });
}

function known({ seen, resolved, approval, warnings }: Deciding) {
  return {
    decision: seen?.decision,
    judgement: seen?.judgement,
    seen,
    resolved,
    approval,
    warnings: [...warnings],
  };
}

/**
 * The decision itself, where commands are always judged.
 * @throws {SandboxError} for what made it impossible.
 */
export function decisionOf(decided: Decided): Decision {
  if (decided.decision !== undefined) return decided.decision;
  const error =
    decided.allowed || decided.objection.status === 'canceled' ? undefined : decided.objection.error;
  throw new SandboxError(error?.code ?? 'command.denied', error?.message ?? 'the command was not judged');
}
