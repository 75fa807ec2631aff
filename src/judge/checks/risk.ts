import type { Risk, SimpleCommand } from '../../model/index.ts';
import { inherited } from '../programs/behaviour.ts';
import { riskOf } from '../programs/risk.ts';
import { type Check, type CheckContext, commandsOf, reasonFor } from './check.ts';
import { isForeignTo, useOf } from './locations.ts';

const reason = reasonFor('risk');

const SENTENCES: Readonly<Record<Exclude<Risk, 'low'>, string>> = {
  medium: 'changes something',
  high: 'may destroy data, change permissions or use the network',
};

/** What a command does that is asked about: completes its name. */
function whatItDoes(command: SimpleCommand, risk: Exclude<Risk, 'low'>, context: CheckContext): string {
  const use = useOf(command, context);
  if (use?.program.unlisted === true) return 'is a program that is not known';
  const outward = use === undefined ? undefined : inherited(use, 'outward');
  return (use !== undefined && typeof outward === 'function' ? outward(use) : undefined) ?? SENTENCES[risk];
}

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
    const all = commandsOf(context.parsed).filter((command) => riskOf(command, isForeign) === risk);
    const named = new Map<string, string[]>();
    for (const command of all) {
      const name = command.words[0]?.source ?? command.redirects[0]?.target.source ?? '';
      const does = whatItDoes(command, risk, context);
      named.set(does, [...new Set([...(named.get(does) ?? []), name])]);
    }
    const sentences = [...named].map(
      ([does, names]) => `${names.join(', ')}${names.length > 1 ? ':' : ''} ${does}`,
    );
    const said = sentences.length === 0 ? `The command ${SENTENCES[risk]}` : sentences.join('; ');
    return [reason('ask', risk, `${said}.`, ...new Set([...named.values()].flat()))];
  },
};
