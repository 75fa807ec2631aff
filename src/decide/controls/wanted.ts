import type { Control } from '../control.ts';

/** What was given up meanwhile is not counted, remembered or launched. */
export const wanted: Control = {
  name: 'wanted',
  isNeeded: ({ policy, session, record }) =>
    session !== undefined || record !== undefined || policy.security.maxActionsPerHour !== undefined,
  decide: ({ request }) => (request.signal?.().aborted === true ? { status: 'canceled' } : undefined),
};
