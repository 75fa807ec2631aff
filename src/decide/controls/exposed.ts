import type { Control } from '../control.ts';

/** What the command shows to its session is remembered before it runs: afterwards it cannot be taken back. */
export const exposed: Control = {
  name: 'exposed',
  isNeeded: ({ session }) => session !== undefined,
  async decide({ ports, seen, approval }) {
    // A question that is answered elsewhere: whether it runs is not known yet.
    const isOpen = ports.approvals === 'elsewhere' && seen?.decision.verdict === 'ask' && !approval;
    if (seen === undefined || isOpen) return undefined;
    const { judgement, decision, effects } = seen;
    for (const { taint, reason } of judgement.exposures(decision, effects(), ports.plan))
      await ports.session?.taint(taint, reason);
    return undefined;
  },
};
