import type { Pattern } from './pattern.ts';

const REFUSALS = 10;
const WITHIN_MS = 120_000;

/** An agent that runs against the policy again and again is lost, or looks for a hole. */
export const manyRefusals: Pattern = {
  code: 'many_refusals',
  summary: `${REFUSALS} commands were refused within ${WITHIN_MS / 1000} seconds`,
  find: (latest, earlier) => {
    if (!latest.refused) return [];
    const since = latest.at - WITHIN_MS;
    const refused = earlier.filter((one) => one.refused && one.at >= since);
    if (refused.length + 1 < REFUSALS) return [];
    return [
      {
        about: 'refusals',
        message: `${refused.length + 1} commands were refused within ${WITHIN_MS / 1000} seconds`,
        details: { refusals: refused.length + 1, first: refused[0]?.request ?? '', latest: latest.request },
      },
    ];
  },
};
