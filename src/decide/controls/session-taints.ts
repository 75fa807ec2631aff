import type { Control } from '../control.ts';

/** What the session was exposed to: known before anything is judged. */
export const sessionTaints: Control = {
  name: 'session-taints',
  isNeeded: ({ session }) => session !== undefined,
  async decide(deciding) {
    const { request, ports } = deciding;
    const { session } = ports;
    if (session === undefined) return undefined;
    await session.begin?.();
    for (const taint of request.taints ?? []) await session.taint(taint, 'said with a command');
    deciding.taints = await session.taints(request.taints ?? []);
    return undefined;
  },
};
