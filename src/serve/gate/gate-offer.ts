import type { Answerer } from '../../gate/server/answer.ts';
import { principalOf, type ReportRefusal } from '../../gate/server/ports.ts';
import type { Offer } from '../core/offer.ts';
import { type ConnectionLimits, GATE_LIMITS } from '../protocol/limits.ts';
import { LONGEST_REASON } from '../protocol/results.ts';

/** What a gate answers with. */
interface GateParts {
  readonly answer: Answerer;
  readonly report: ReportRefusal;
  readonly onProblem: (message: string) => void;
  readonly limits?: Partial<ConnectionLimits>;
}

/** What a gate offers: whoever asks is who the kernel says it is. */
export function gateOffer({ answer, report, onProblem, limits }: GateParts): Offer {
  return {
    limits: { ...GATE_LIMITS, ...limits },
    strangers: true,
    notifications: [],
    open: ({ peer }) => {
      const principal = peer === undefined ? 'unknown' : principalOf(peer.uid);
      return {
        handlers: {
          'gate.check': async ({ command, session, tool }, { id, signal }) => {
            const requestId = String(id);
            const { decision, reason } = await answer({
              ...{ requestId, command, session, tool, principal, signal },
            });
            return { decision, ...(reason === undefined ? {} : { reason: reason.slice(0, LONGEST_REASON) }) };
          },
        },
        begin: () => ({ approvals: 'nobody' }),
        close: async () => {},
      };
    },
    onProblem,
    onRefused: ({ code, peer, message, requestId }) => {
      const principal = peer === undefined ? 'unknown' : principalOf(peer.uid);
      return report({ code, principal, message, requestId });
    },
  };
}
