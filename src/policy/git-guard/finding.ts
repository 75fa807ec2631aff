/** What something means for the guard: one command of git, or a whole line. */
export interface Finding {
  /** Why it is refused. */
  readonly refusal?: string;
  /** It brings commits from elsewhere. */
  readonly fetches?: boolean;
  /** Why it is refused if something in the same line fetches: it moves a branch to what may have been fetched. */
  readonly integrates?: string;
  /** It prints what may have been fetched. */
  readonly prints?: boolean;
  /** Why it is refused if something in the same line fetches and something prints: it applies patches. */
  readonly applies?: string;
}

export const NOTHING: Finding = {};

/** The first reason of each kind counts. */
export function merged(findings: readonly Finding[]): Finding {
  const refusal = findings.find((finding) => finding.refusal !== undefined)?.refusal;
  const integrates = findings.find((finding) => finding.integrates !== undefined)?.integrates;
  const applies = findings.find((finding) => finding.applies !== undefined)?.applies;
  return {
    fetches: findings.some((finding) => finding.fetches === true),
    prints: findings.some((finding) => finding.prints === true),
    ...(refusal === undefined ? {} : { refusal }),
    ...(integrates === undefined ? {} : { integrates }),
    ...(applies === undefined ? {} : { applies }),
  };
}
