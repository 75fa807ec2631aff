import type { GuardAnswer } from './gate-ports.ts';

/**
 * What a guard, a hook or a plug-in says: `{ allowed, reason? }`, `{ decision: 'allow' | 'deny', reason? }`, or `{}`, which is no
 * objection. `undefined`: none of these, or both at once and not the same, which nobody may take for a yes.
 */
export function clearAnswer(answer: unknown): GuardAnswer | undefined {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return undefined;
  const given: { readonly allowed?: unknown; readonly decision?: unknown; readonly reason?: unknown } =
    answer;
  if (Object.keys(answer).length === 0) return { allowed: true };
  const { allowed, decision, reason } = given;
  const said = [
    ...(allowed === undefined ? [] : [typeof allowed === 'boolean' ? allowed : undefined]),
    ...(decision === undefined ? [] : [decision === 'allow' || (decision === 'deny' ? false : undefined)]),
  ];
  const [first] = said;
  if (first === undefined || said.some((other) => other !== first)) return undefined;
  return { allowed: first, ...(typeof reason === 'string' && reason !== '' ? { reason } : {}) };
}
