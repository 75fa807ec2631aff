import type { Risk } from '../model/decision.ts';
import { riskOf } from '../programs/risk.ts';
import { type Check, commandsOf, reasonFor } from './check.ts';
import { isForeignTo } from './locations.ts';

const reason = reasonFor('risk');

const SENTENCES: Readonly<Record<Exclude<Risk, 'low'>, string>> = {
  medium: 'changes something, or is an unknown program',
  high: 'may destroy data, change permissions or use the network',
};

/** Supervised: whatever may break something is asked about first. */
export const riskCheck: Check = {
  name: 'risk',
  summary: 'with autonomy supervised, asks about medium and high risk unless the request is approved',
  judge: (context) => {
    if (context.risk === 'low' || context.autonomy !== 'supervised') return [];
    if (context.approved) {
      return [reason(undefined, 'approved', `The ${context.risk} risk was approved.`)];
    }
    const isForeign = isForeignTo(context);
    const { risk } = context;
    const all = commandsOf(context.parsed)
      .filter((command) => riskOf(command, isForeign) === risk)
      .map((command) => command.words[0]?.source ?? command.redirects[0]?.target.source ?? '');
    const words = [...new Set(all)];
    const named = words.length === 0 ? 'The command' : words.join(', ');
    return [reason('ask', risk, `${named}: ${risk} risk, ${SENTENCES[risk]}.`, ...words)];
  },
};
