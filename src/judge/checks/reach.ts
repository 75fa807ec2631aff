import { assertNever } from '../../base/assert-never.ts';
import type { Reason, Review, Taint } from '../../model/index.ts';
import { type Check, type CheckContext, reasonFor } from './check.ts';

const reason = reasonFor('reach');
const say = (...opinion: Parameters<typeof reason>) => [reason(...opinion)];

const MEANINGS: Readonly<Record<Taint, string>> = {
  corruption: 'read untrusted content',
  secret: 'saw secret data',
};

const meaning = (taints: ReadonlySet<Taint>) => [...taints].map((taint) => MEANINGS[taint]).join(' and ');

/** The verdict after the reviewer's answer, which may be missing or nonsense. */
function afterReview(answer: Review | undefined, taints: ReadonlySet<Taint>): readonly Reason[] {
  if (answer === undefined)
    return say('ask', 'reviewer_slow', 'the reviewer did not answer in time; a person has to decide');
  const note = typeof answer.reason === 'string' && answer.reason !== '' ? `: ${answer.reason}` : '';
  switch (answer.outcome) {
    case 'clear':
      return say('allow', 'reviewer_cleared', `the reviewer does not object${note}`);
    case 'flag':
      return taints.size > 1
        ? say('ask', 'reviewer_flagged', `the reviewer objects and a person has to decide${note}`)
        : say('deny', 'reviewer_flagged', `the reviewer objects${note}`);
    // Whatever else it says: the answer comes from outside.
    default:
      return say(
        'ask',
        'reviewer_unclear',
        `the reviewer’s answer is unclear; a person has to decide${note}`,
      );
  }
}

async function askReviewer(context: CheckContext): Promise<readonly Reason[]> {
  const { gate, parsed, text, reach, taints, rules } = context;
  if (gate.reviewer === undefined)
    return say(
      'ask',
      'no_reviewer',
      `the session ${meaning(taints)}, the command ${reach === 'network' ? 'uses' : 'may use'} the network, and there is no reviewer; a person has to decide`,
    );
  try {
    const line = parsed.understood ? parsed.line : undefined;
    const work = gate.reviewer.review({ line, text, reach, taints: [...taints] });
    const answer: unknown = await gate.within(work, rules.reviewerTimeoutMs);
    if (answer !== undefined && (typeof answer !== 'object' || answer === null))
      return say('ask', 'reviewer_unclear', 'the reviewer’s answer is unclear; a person has to decide');
    return afterReview(answer as Review | undefined, taints);
  } catch {
    return say('ask', 'reviewer_unreachable', 'the reviewer cannot be reached; a person has to decide');
  }
}

/** Keeps what a session was exposed to from meeting the network unseen. */
export const reach: Check = {
  name: 'reach',
  summary: 'In a session that read untrusted content or saw secrets, asks about what can reach the network.',
  judge(context) {
    const { taints, reach: reached, rules } = context;
    if (taints.size === 0) return say(undefined, 'untainted', 'the session was exposed to nothing');
    switch (reached) {
      case 'local':
        return say(undefined, 'local', 'nothing in the command can use the network');
      case 'network':
        if (rules.held.network)
          return say(undefined, 'network_off', 'the kernel keeps the command off the network');
        if (taints.size > 1)
          return say(
            'ask',
            'both_taints',
            `the session ${meaning(taints)}, and the command uses the network; a person has to decide`,
          );
        return askReviewer(context);
      case 'unknown':
        if (rules.held.network)
          return say(undefined, 'network_off', 'the kernel keeps the command off the network');
        return askReviewer(context);
      default:
        return assertNever(reached);
    }
  },
};
