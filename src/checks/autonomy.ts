import type { Reason } from '../model/decision.ts';
import { reachOfLine } from '../programs/risk.ts';
import { assertNever } from '../util/assert-never.ts';
import { type Check, type CheckContext, reasonFor } from './check.ts';
import { isForeignTo } from './locations.ts';

const reason = reasonFor('autonomy');

function opinion(context: CheckContext): Reason {
  const { autonomy, approved, risk } = context;
  switch (autonomy) {
    case 'readonly':
      return risk === 'low' && onlyReads(context)
        ? reason('allow', 'reads', 'autonomy is readonly, and it only reads')
        : reason(
            'deny',
            'readonly',
            'autonomy is readonly: only commands that are known to do nothing but read are run',
          );
    case 'autonomous':
      return reason('allow', 'autonomous', 'autonomy is autonomous: nothing is asked because of risk');
    case 'contained':
      return reason(
        'allow',
        'contained',
        'autonomy is contained: nothing is asked about what the sandbox holds',
      );
    case 'supervised':
      if (risk === 'low') return reason('allow', 'low_risk', 'autonomy is supervised and the risk is low');
      if (approved) return reason('allow', 'approved', `the risk is ${risk} and the request was approved`);
      return reason(
        'ask',
        'needs_approval',
        `the risk is ${risk}, and with autonomy supervised a person has to approve that`,
      );
    default:
      return assertNever(autonomy);
  }
}

/** An unknown program may do more than read. */
function onlyReads(context: CheckContext): boolean {
  return reachOfLine(context.parsed, isForeignTo(context), { settingsHeld: true }) === 'local';
}

/** How much is left to the agent. */
export const autonomy: Check = {
  name: 'autonomy',
  summary:
    'readonly runs what only reads; supervised asks about medium and high risk; contained asks about what acts outside the sandbox; autonomous asks nothing.',
  judge: (context) => [opinion(context)],
};
