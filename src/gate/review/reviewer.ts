import { assertNever } from '../../base/assert-never.ts';
import type { Reviewer, ReviewerSettings } from '../../model/index.ts';

/**
 * The reviewer that a policy names; what it needs is loaded by the first review. It gives *unclear* for every failure
 * and never rejects. `env`: of the launcher, for the key of a model.
 */
export function reviewerOf(
  settings: ReviewerSettings,
  env: Readonly<Record<string, string | undefined>>,
  timeoutMs: number,
): Reviewer {
  let reviewer: Promise<Reviewer> | undefined;
  return {
    async review(request) {
      try {
        reviewer ??= load(settings, env, timeoutMs);
        return await (await reviewer).review(request);
      } catch {
        return { outcome: 'unclear', reason: 'the reviewer failed' };
      }
    },
  };
}

async function load(
  settings: ReviewerSettings,
  env: Readonly<Record<string, string | undefined>>,
  timeoutMs: number,
): Promise<Reviewer> {
  switch (settings.kind) {
    case 'model':
      return (await import('./model-reviewer.ts')).modelReviewer(settings, env, timeoutMs);
    case 'command':
      return (await import('./command-reviewer.ts')).commandReviewer(settings, env, timeoutMs);
    default:
      return assertNever(settings);
  }
}
