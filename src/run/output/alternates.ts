import { dirname } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { orElse } from '../../base/or-else.ts';
import { readableWord } from '../../base/shell-quote.ts';
import { visibleLine } from '../../base/visible-text.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import { alternatesOf, isGitDirectory } from '../../workspace/index.ts';
import { type Places, whyNotByPath } from '../proposals.ts';

/** With which git ends that cannot go on. */
const GIT_FAILED = 128;

/**
 * Of a command that ended as git does: objects that the workspace's repository takes from elsewhere and that the sandbox does not
 * show. What names them may be a command's, so only objects of a repository are named, and none that would not be proposed.
 */
export function missingAlternates(
  exitCode: number,
  { paths }: Pick<LaunchPlan, 'paths'>,
  places: Places,
): readonly string[] {
  if (exitCode !== GIT_FAILED) return [];
  return orElse(() => alternatesOf(places.workspace), [])
    .filter(
      (path) =>
        !paths.some((granted) => isBeneath(path, granted.path)) &&
        path.endsWith('/objects') &&
        visibleLine(path, 1_000) === path &&
        orElse(() => isGitDirectory(dirname(path)), false) &&
        whyNotByPath(path, places, 'filesystem.read') === undefined,
    )
    .slice(0, 1)
    .map(
      (path) =>
        `the repository takes objects from ${path}, which commands do not see; the option readable ${readableWord(path)} shows them`,
    );
}
