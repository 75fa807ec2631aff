import type { Decision, Reason } from './decision.ts';

/** The reason that decided: of the strictest, the first; of questions, the first that names what it is about. */
export function decisiveReason({ verdict, reasons }: Decision): Reason | undefined {
  const strictest = reasons.filter((reason) => reason.verdict === verdict);
  const [first] = strictest;
  return verdict === 'ask' ? (strictest.find(({ words }) => words.length > 0) ?? first) : first;
}

/** How the codes of losses end that are not of the workspace: nothing brings those back. */
export const BESIDE = '_beside';

/** Whether a reason says that work would be lost. */
export const isLoss = ({ check, code }: Reason): boolean =>
  (check === 'losses' && code !== 'nothing') || code.endsWith(BESIDE);
