import type { Reason } from '../../model/decision.ts';
import { assertNever } from '../../util/assert-never.ts';
import type { Check, CheckContext } from './check.ts';

function opinion({ autonomy, approved, risk }: CheckContext): Omit<Reason, 'check' | 'words'> {
  switch (autonomy) {
    case 'readonly':
      return { verdict: 'deny', code: 'readonly', message: 'autonomy is readonly: no command is run' };
    case 'autonomous':
      return {
        verdict: 'allow',
        code: 'autonomous',
        message: 'autonomy is autonomous: nothing is asked for risk',
      };
    case 'supervised':
      if (risk === 'low')
        return { verdict: 'allow', code: 'low_risk', message: 'autonomy is supervised and the risk is low' };
      if (approved)
        return {
          verdict: 'allow',
          code: 'approved',
          message: `the risk is ${risk} and the request was approved`,
        };
      return {
        verdict: 'ask',
        code: 'needs_approval',
        message: `the risk is ${risk}, and with autonomy supervised somebody has to approve that`,
      };
    default:
      return assertNever(autonomy);
  }
}

/** How much is left to the agent. */
export const autonomy: Check = {
  name: 'autonomy',
  summary:
    'readonly refuses everything, supervised asks for medium and high risk, autonomous asks for nothing.',
  judge: (context) => [{ check: 'autonomy', ...opinion(context), words: [] }],
};
