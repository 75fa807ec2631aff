import type { Check } from './check.ts';
import { askGuard } from './guards.ts';

const NAME = 'git-guard';

/** The guard of the repository, behind a port. */
export const gitGuard: Check = {
  name: NAME,
  summary: 'Asks the git guard, where there is one, about what would happen to the repository.',
  judge(context) {
    const guard = context.gate.gitGuard;
    if (guard === undefined) return [];
    const reason = askGuard(NAME, 'the git guard', context, () =>
      guard.judge(context.parsed, context.cwd, context.text),
    );
    return reason instanceof Promise ? reason.then((settled) => [settled]) : [reason];
  },
};
