import type { Decision } from '../model/decision.ts';
import { decisiveReason } from './evaluate.ts';

/** Another autonomy answers only what is asked because of this one. */
const SETTLED_BY_AUTONOMY: ReadonlySet<string> = new Set(['autonomy', 'risk']);

/** Why a command does not run, in one sentence, and what would let it. `undefined`: it runs. */
export function refusalSentence(decision: Decision): string | undefined {
  const reason = decisiveReason(decision)?.message ?? 'no reason was given';
  switch (decision.verdict) {
    case 'allow':
      return undefined;
    case 'deny':
      return `refused by the policy: ${reason}`;
    case 'ask': {
      const asked = decision.reasons.filter(({ verdict }) => verdict === 'ask');
      const other = asked.every(({ check }) => SETTLED_BY_AUTONOMY.has(check))
        ? '; so does --autonomy autonomous, or security.autonomy in the policy'
        : '';
      return `the policy asks before it runs this, and nobody is there to answer: ${reason} (--approved, or approved: true in the library, runs it, --ask queue waits for sandbox-run approvals${other})`;
    }
  }
}
