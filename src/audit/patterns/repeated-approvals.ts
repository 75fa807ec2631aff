import type { ObservedDecision, Pattern } from './pattern.ts';

/** So many earlier requests that were not approved make the next one conspicuous. */
const REFUSED_BEFORE = 2;
/** Of all words of both commands, so many are in both. */
const ALIKE = 0.5;

/** An agent that was not approved asks again in other words, until a person gets tired and approves. */
export const repeatedApprovals: Pattern = {
  code: 'repeated_approval_requests',
  summary: `approval is asked for a command after ${REFUSED_BEFORE} requests for variants of it got no yes`,
  find: (latest, earlier) => {
    if (!latest.asked) return [];
    const alike = earlier.filter(
      (one) => isRefusedRequest(one) && similarity(latest.words, one.words) >= ALIKE,
    );
    if (alike.length < REFUSED_BEFORE) return [];
    const [program = ''] = latest.words;
    return [
      {
        about: program,
        message: `approval was asked ${alike.length + 1} times for variants of one command: ${program}`,
        details: {
          program,
          requests: alike.length + 1,
          first: alike[0]?.request ?? '',
          latest: latest.request,
          approved: latest.launched,
        },
      },
    ];
  },
};

function isRefusedRequest({ asked, launched }: ObservedDecision): boolean {
  return asked && !launched;
}

function similarity(a: ReadonlySet<string>, b: ReadonlySet<string>): number {
  const both = [...a].filter((word) => b.has(word)).length;
  const all = a.size + b.size - both;
  return all === 0 ? 0 : both / all;
}
