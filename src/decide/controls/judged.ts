import { andThen } from '../../util/promise.ts';
import type { Control, Deciding, Objection } from '../control.ts';
import { look } from '../look.ts';
import { refusalOf } from '../refusal.ts';

/** What the policy says. A question about a program that is not there is not asked. */
export const judged: Control = {
  name: 'judged',
  decide: (deciding) =>
    andThen(look(deciding), (seen): Objection | undefined => {
      deciding.seen = seen;
      const refusal = seen && refusalOf(seen.decision, deciding.request.approved === true);
      if (refusal?.code === 'command.denied') return { status: 'denied', error: refusal };
      return notResolved(deciding);
    }),
};

function notResolved({ resolved }: Deciding): Objection | undefined {
  if (resolved === undefined || resolved.ok) return undefined;
  const { code, message, path } = resolved;
  return { status: 'setup-failed', error: { code, message, stage: undefined, errno: undefined, path } };
}
