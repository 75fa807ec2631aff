import type { CommandEffects } from '../checks/effects.ts';
import type { Decision } from '../model/decision.ts';
import { isPromise, type MaybePromise } from '../util/promise.ts';
import type { Deciding } from './control.ts';
import type { Judgement } from './judge.ts';
import type { Seen } from './ports.ts';

/** What the policy says about a request now; `undefined`: commands are not judged. */
export function look(deciding: Deciding): MaybePromise<Seen | undefined> {
  const { request, ports, taints, said } = deciding;
  const judgement = ports.judge?.({ ...request, approved: request.approved === true, taints, said });
  if (judgement === undefined) return undefined;
  const { decision } = judgement;
  return isPromise(decision)
    ? decision.then((decided) => seenAs(judgement, decided))
    : seenAs(judgement, decision);
}

function seenAs(judgement: Judgement, decision: Decision): Seen {
  let effects: CommandEffects | undefined;
  return {
    judgement,
    decision,
    effects: () => {
      effects ??= judgement.effects(decision);
      return effects;
    },
  };
}
