import { SandboxError } from '../errors/sandbox-error.ts';
import type { SymbolicLink } from '../model/launch-plan.ts';
import type { PathLookup, ResolvedPath } from '../model/path-lookup.ts';
import type { Policy } from '../model/policy.ts';
import { isBeneath } from '../util/absolute-path.ts';

/** What of the workspace is shut for writing. */
interface Protection {
  readonly paths: readonly string[];
  /** Links inside the workspace on the way to a protected path: nothing can be mounted on a link to keep it. */
  readonly links: readonly SymbolicLink[];
}

/**
 * Protected paths by the names that exist; a link is followed, but only within the workspace.
 * @throws {SandboxError} `confinement.failed` for one of which it cannot be known.
 */
export function protectedInWorkspace({
  workspace,
  policy,
  obeyed,
  lookup,
}: {
  /** Canonical. */
  readonly workspace: string;
  readonly policy: Policy;
  /** What was found in the workspace beside the paths of the policy. Absolute. */
  readonly obeyed: readonly string[];
  readonly lookup: PathLookup;
}): Protection {
  if (policy.filesystem.workspaceAccess !== 'write') return { paths: [], links: [] };
  const inside = (path: string) => path !== workspace && isBeneath(path, workspace);
  const named = policy.filesystem.protect.map((relative) => `${workspace}/${relative}`);
  const resolved: readonly ResolvedPath[] = [...named, ...obeyed].map((path) => lookup.resolve(path));
  for (const { unknown } of resolved) {
    if (unknown === undefined) continue;
    // A command may have shut it, for the next one to open it again.
    throw new SandboxError(
      'confinement.failed',
      `${unknown.path} cannot be looked at (${unknown.errno}), so that protected paths in it cannot be shut; make it accessible (chmod u+rwx) or move it out of the workspace`,
    );
  }
  return {
    paths: [...new Set(resolved.map((path) => path.canonical))].filter(inside),
    links: resolved.flatMap((path) => path.links).filter(({ path }) => inside(path)),
  };
}
