import type { Decision } from '../model/decision.ts';
import { decisiveReason } from './evaluate.ts';

/** Checks whose questions another autonomy level would not ask. */
const SETTLED_BY_AUTONOMY: ReadonlySet<string> = new Set(['autonomy', 'risk']);

/** Why a command does not run, in one sentence, and what would allow it. `undefined`: it runs. */
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
      return `this command needs approval, and there is no one to ask: ${reason} (--approved, or approved: true in the library, runs it; --ask queue waits for sandbox-run approvals${other})`;
    }
  }
}
