import { isDeepStrictEqual } from 'node:util';
import type { PathRule } from '../../confine/plan/grant.ts';
import type { PathLookup } from '../../confine/plan/path-lookup.ts';
import type { Places } from '../proposals.ts';
import { programsOnPath } from './programs-on-path.ts';
import { systemTree } from './system-tree.ts';

/** Variables that `programsOnPath` reads. */
const OF_PROGRAMS = /^(?:PATH|XDG_\w+)$/;

/**
 * What of the machine commands may read beside what the policy lists. To find it takes most of the look-ups of a start. Where one call
 * of an agent is decided about and then run, both go by what was found once: the same question has the same answer.
 */
export class HostFindings {
  readonly #answers: { readonly question: readonly unknown[]; readonly answer: unknown }[] = [];

  /** As `systemTree`. */
  systemTree(workspace: string): ReturnType<typeof systemTree> {
    return this.#once(['system', workspace], () => systemTree(workspace));
  }

  /** As `programsOnPath`. */
  programsOnPath(places: Places, granted: readonly PathRule[], lookup: PathLookup): readonly PathRule[] {
    const { home, workspace, secret, env } = places;
    const variables = Object.entries(env).filter(([name]) => OF_PROGRAMS.test(name));
    const question = ['programs', home, workspace, secret, new Map(variables), granted];
    return this.#once(question, () => programsOnPath(places, granted, lookup));
  }

  #once<Answer>(question: readonly unknown[], find: () => Answer): Answer {
    const known = this.#answers.find((one) => isDeepStrictEqual(one.question, question));
    if (known !== undefined) return known.answer as Answer;
    const answer = find();
    this.#answers.push({ question, answer });
    return answer;
  }
}
