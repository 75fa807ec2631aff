import type { PathLookup, SymbolicLink } from '../model/path-lookup.ts';
import type { Policy } from '../model/policy.ts';
import { isBeneath } from '../util/absolute-path.ts';

/** What of the workspace is shut for writing. */
export interface Protection {
  readonly paths: readonly string[];
  /** Links inside the workspace on the way to a protected path: nothing can be mounted on a link to keep it. */
  readonly links: readonly SymbolicLink[];
}

/** Protected paths by the names that exist; a link is followed, but only within the workspace. */
export function protectedInWorkspace({
  workspace,
  policy,
  lookup,
}: {
  /** Canonical. */
  readonly workspace: string;
  readonly policy: Policy;
  readonly lookup: PathLookup;
}): Protection {
  if (policy.filesystem.workspaceAccess !== 'write') return { paths: [], links: [] };
  const inside = (path: string) => path !== workspace && isBeneath(path, workspace);
  // The `.git` of a worktree or submodule is a file that names the repository.
  const gitFile = lookup.resolve(`${workspace}/.git`).kind === 'other' ? ['.git'] : [];
  const resolved = [...gitFile, ...policy.filesystem.protected].map((relative) =>
    lookup.resolve(`${workspace}/${relative}`),
  );
  return {
    paths: [...new Set(resolved.map((path) => path.canonical))].filter(inside),
    links: resolved.flatMap((path) => path.links).filter(({ path }) => inside(path)),
  };
}
