import { randomUUID } from 'node:crypto';
import { errorMessage } from '../../base/error-message.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { andThen, isPromise } from '../../base/promise.ts';
import type { ApprovalAnswer, Decision, Facts } from '../../model/index.ts';
import { type AskConnection, connectionAsker } from './ask-connection.ts';
import { CONTROLS } from './controls.ts';
import type { Judgement } from './judge.ts';
import type {
  Control,
  Deciding,
  DecisionPorts,
  DecisionRequest,
  Ending,
  Objection,
  ResolvedCommand,
  Seen,
} from './ports.ts';
import { unusableGate } from './refusal.ts';

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
      /** Asks what it may reach beyond what is listed. Undefined: it may not. */
      readonly askConnection: AskConnection | undefined;
    }
  | { readonly allowed: false; readonly objection: Objection }
);

/** Decides about a request: at once where nothing has to be asked, counted or written. */
export type Decide = (request: DecisionRequest) => Decided | Promise<Decided>;

/** THE pipeline: judge, ask, look again, count, taint, record. Whatever fails on the way is a refusal. */
export function createDecider(ports: DecisionPorts, all: readonly Control[] = CONTROLS): Decide {
  const controls = all.filter((control) => control.isNeeded?.(ports) ?? true);
  return (request) => {
    const decision = ports.telemetry.begin('decision');
    return andThen(
      decision.within(() => step(begin(request, ports), controls, 0)),
      (decided) => {
        decision.end(factsOf(decided));
        return decided;
      },
    );
  };
}

/** Attributes of a decision for telemetry. */
function factsOf(decided: Decided): Facts {
  const { verdict, risk, reach } = decided.decision ?? {};
  const said = { verdict, risk, reach, approved: decided.approval?.approved };
  if (decided.allowed) return { ...said, outcome: 'allowed' };
  const { objection } = decided;
  return { ...said, outcome: objection.status === 'canceled' ? 'canceled' : objection.error.code };
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
    said: request.said ?? new Map(),
    warnings: [],
    beforeStart: [],
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
  if (deciding.beforeStart.length === 0) return allow(deciding, controls);
  return Promise.all(deciding.beforeStart).then(
    () => allow(deciding, controls),
    (error) => refuseBecause(deciding, controls, error),
  );
}

function allow(deciding: Deciding, controls: readonly Control[]): Decided {
  const following = controls.filter(
    (control) => control.ended !== undefined && (control.follows?.(deciding) ?? true),
  );
  const ended = async (ending: Ending): Promise<readonly string[]> => {
    const before = deciding.warnings.length;
    for (const control of following) {
      try {
        await control.ended?.(deciding, ending);
      } catch (error) {
        // The command has run: what is left is to say so.
        deciding.warnings.push(errorMessage(error));
      }
    }
    return deciding.warnings.slice(before);
  };
  return {
    ...known(deciding),
    allowed: true,
    ended: following.length === 0 ? undefined : ended,
    askConnection: connectionAsker(deciding),
  };
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
