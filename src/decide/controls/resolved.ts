import type { Control } from '../control.ts';

/** Which program it is, where it starts and with which variables. That there is none is said after the policy has spoken. */
export const resolved: Control = {
  name: 'resolved',
  isNeeded: ({ resolve }) => resolve !== undefined,
  decide(deciding) {
    const { request, ports } = deciding;
    deciding.resolved = ports.resolve?.(request.command, request);
    return undefined;
  },
};
