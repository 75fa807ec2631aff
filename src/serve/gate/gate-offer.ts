import type { Offer } from '../core/offer.ts';
import type { Peer } from '../core/peer.ts';
import { type ConnectionLimits, GATE_LIMITS } from '../protocol/limits.ts';
import { LONGEST_REASON } from '../protocol/results.ts';
import type { GateDecide } from './answer.ts';
import type { ReportRefusal } from './refusal-report.ts';

/** What a gate answers with. */
interface GateParts {
  readonly answer: GateDecide;
  readonly report: ReportRefusal;
  readonly onProblem: (message: string) => void;
  readonly limits?: Partial<ConnectionLimits>;
}

const principalOf = (peer: Peer | undefined) => (peer === undefined ? 'unknown' : `uid:${peer.uid}`);

/** What a gate offers: whoever asks is who the kernel says it is. */
export function gateOffer({ answer, report, onProblem, limits }: GateParts): Offer {
  return {
    limits: { ...GATE_LIMITS, ...limits },
    strangers: true,
    notifications: [],
    open: ({ peer }) => {
      const principal = principalOf(peer);
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
      return report({ code, principal: principalOf(peer), message, requestId });
    },
  };
}
