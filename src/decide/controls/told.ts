import type { Control } from '../control.ts';

/** Hooks are told what became of a command that was started. */
export const told: Control = {
  name: 'told',
  isNeeded: ({ tellHooks }) => tellHooks !== undefined,
  async ended({ request, ports, resolved, warnings }, { result, started }) {
    if (!started || result === undefined) return;
    const said = await ports.tellHooks?.(request.command, resolved?.cwd ?? result.cwd, result);
    warnings.push(...(said ?? []));
  },
};
