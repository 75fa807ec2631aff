import type { Reservation } from '../../model/gate-ports.ts';
import type { Control, Deciding } from '../control.ts';
import { budgetRefusal } from '../refusal.ts';

const reserved = new WeakMap<Deciding, Reservation>();

/** At most so many actions an hour. What cannot be given back stays counted. */
export const counted: Control = {
  name: 'counted',
  isNeeded: ({ policy, budget }) => policy.security.maxActionsPerHour !== undefined && budget !== undefined,
  async decide(deciding) {
    const { policy, budget } = deciding.ports;
    const limit = policy.security.maxActionsPerHour;
    if (limit === undefined || budget === undefined) return undefined;
    const reservation = await budget.reserve(limit);
    if (reservation === undefined) return { status: 'denied', error: budgetRefusal(limit) };
    reserved.set(deciding, reservation);
    return undefined;
  },
  refused: async (deciding) => {
    try {
      await reserved.get(deciding)?.release();
    } catch {
      // It stays counted.
    }
  },
  async ended(deciding, { started }) {
    const reservation = reserved.get(deciding);
    await (started ? reservation?.commit() : reservation?.release());
  },
};
