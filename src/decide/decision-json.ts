import type { Decision } from '../model/decision.ts';

/** A decision in the shape of `check --json`, `--batch` and `serve`. */
export function decisionAsJson({ verdict, risk, reach, reasons }: Decision) {
  return {
    verdict,
    risk,
    reach,
    reasons: reasons.map((reason) => ({
      check: reason.check,
      verdict: reason.verdict ?? null,
      code: reason.code,
      message: reason.message,
    })),
  };
}
