import { isBeneath } from '../../base/absolute-path.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import { shownPath } from '../../base/path-text.ts';
import type { FullGrant, OwnPath } from './grant.ts';
import type { PlannedPath, SymbolicLink } from './launch-plan.ts';
import type { Mechanisms, TmpOfHost } from './mechanisms.ts';
import type { PathLookup, ResolvedPath } from './path-lookup.ts';

/** What a plan does about our own paths that lie in granted ones. */
interface OwnPathsWithin {
  /** Directories that the view covers with an empty one. */
  readonly hidden: readonly string[];
  /** Files and directories that are shut for writing. */
  readonly readOnly: readonly string[];
  /** By which this program is started or finds its parts, where commands can replace them. */
  readonly links: readonly SymbolicLink[];
}

const DIRECTORY_REACHABLE = {
  what: 'reach {}, where sandbox-run keeps what it trusts,',
  instead:
    'set XDG_STATE_HOME and XDG_CONFIG_HOME to directories outside, or choose another workspace or path',
};
/** What is said where commands could get at each kind; `{}` is its path. */
const REACHABLE: Readonly<Record<OwnPath['kind'], { readonly what: string; readonly instead: string }>> = {
  state: DIRECTORY_REACHABLE,
  settings: DIRECTORY_REACHABLE,
  private: {
    what: 'reach {}, where other commands have their private directories,',
    instead: 'choose another path, or set TMPDIR to a directory outside',
  },
  policy: { what: 'change the policy {}', instead: 'move it to where commands cannot write' },
  program: {
    what: 'change {}, which sandbox-run itself runs,',
    instead: 'install it where commands cannot write (npm install --global)',
  },
};

/** Where what commands may not change is looked for. */
export type OwnPathsInput = Pick<
  FullGrant,
  'workspace' | 'workspaceAccess' | 'readOnlyInside' | 'obeyed' | 'beside' | 'own' | 'tmp' | 'parentBesideTmp'
> & {
  readonly lookup: PathLookup;
  /** Canonical paths of `own` that do not exist and that no command can create. */
  readonly impossible?: readonly string[];
};

/** @throws {SandboxError} `state.reachable` where our own paths cannot be kept from commands. */
export function ownPathsWithin(
  { workspace, lookup, own, impossible = [] }: OwnPathsInput,
  paths: readonly PlannedPath[],
  hasView: boolean,
): OwnPathsWithin {
  const hidden: string[] = [];
  const readOnly: string[] = [];
  const replaceable: SymbolicLink[] = [];
  const isHidden = (path: string) => hidden.some((directory) => isBeneath(path, directory));
  for (const { path: named, kind, hasOtherNames } of own) {
    const { canonical, links, kind: found } = lookup.resolve(named);
    const around = paths.find(({ path }) => isBeneath(canonical, path));
    if (kind === 'private' && (!hasView || around === undefined)) continue;
    const refuse = (because: string): never => {
      const { what, instead } = REACHABLE[kind];
      throw new SandboxError(
        'state.reachable',
        `commands could ${what.replace('{}', () => canonical)} ${because}; ${instead}`,
      );
    };
    const writable = (path: string) =>
      paths.find((grant) => grant.access === 'write' && isBeneath(path, grant.path) && !isHidden(path));
    if (kind === 'program') {
      replaceable.push(...links.filter((link) => writable(link.path) !== undefined));
      const grant = writable(canonical);
      if (grant === undefined) continue;
      if (!hasView)
        refuse(
          `because they can write ${grant.path}, and this host refuses the namespaces that could shut it`,
        );
      readOnly.push(canonical);
      continue;
    }
    // A process that can write where a link is can make it lead to something else.
    for (const link of links) {
      if (writable(link.path) !== undefined)
        refuse(`by way of the link ${link.path}, which they could replace`);
    }
    // Nothing can be mounted on what is not there: they would make it, and the next start would obey it.
    const refuseMissing = (grant: PlannedPath) => {
      if (found === 'missing' && !readOnly.some((shut) => isBeneath(canonical, shut)))
        refuse(`because it is not there yet and they can write ${grant.path}, where they could make it`);
    };
    if (kind === 'policy') {
      const grant = writable(canonical);
      if (grant === undefined) continue;
      if (!isBeneath(canonical, workspace) || !hasView)
        refuse(
          `because they can write ${grant.path}${hasView ? '' : ', and this host refuses the namespaces that could shut it'}`,
        );
      refuseMissing(grant);
      if (hasOtherNames === true) refuse('by another name of the same file (a hard link)');
      readOnly.push(canonical);
      continue;
    }
    const inside = paths.find(({ path }) => isBeneath(path, canonical));
    if (inside !== undefined) refuse(`through ${inside.path}`);
    // A workspace changes hands as a whole: it is copied, mounted elsewhere, given to others.
    if (isBeneath(canonical, workspace) && kind === 'state') refuse('because it lies in the workspace');
    if (around === undefined || impossible.includes(canonical)) continue;
    if (!hasView)
      refuse(
        `because the policy grants ${around.path} and this host refuses the namespaces that could hide it`,
      );
    if (kind === 'private' || !isBeneath(canonical, workspace)) {
      hidden.push(canonical);
      continue;
    }
    // Read-only instead of hidden: in a workspace, a hidden file looks as if it had been deleted.
    const grant = writable(canonical);
    if (grant !== undefined) refuseMissing(grant);
    readOnly.push(canonical);
  }
  return { hidden, readOnly, links: replaceable };
}

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
  workspaceAccess,
  readOnlyInside,
  obeyed = [],
  beside = [],
  lookup,
}: OwnPathsInput): Protection {
  const roots = [...(workspaceAccess === 'write' ? [workspace] : []), ...beside];
  const inside = (path: string) => roots.some((root) => path !== root && isBeneath(path, root));
  const named = roots.includes(workspace) ? readOnlyInside : [];
  const resolved: readonly ResolvedPath[] = [...named, ...obeyed]
    .map((path) => lookup.resolve(path))
    // In a directory that another user has shut, no command can write, so nothing in it needs to be protected.
    .filter(({ unknown }) => unknown?.byAnother !== true);
  for (const { unknown } of resolved) {
    if (unknown === undefined) continue;
    // A command may have shut it, for the next one to open it again.
    throw new SandboxError(
      'confinement.failed',
      `${shownPath(unknown.path)} cannot be looked at (${unknown.errno}), so that protected paths in it cannot be shut; make it accessible (chmod u+rwx) or move it out of the workspace`,
    );
  }
  return {
    paths: [...new Set(resolved.map((path) => path.canonical))].filter(inside),
    links: resolved.flatMap((path) => path.links).filter(({ path }) => inside(path)),
  };
}

const TMP = '/tmp';

/**
 * What is done with the host's /tmp where commands cannot have their own; `undefined`: they have, or it is theirs by
 * policy. Without a view commands get /tmp itself, unless something lies in it that Landlock could not take out of it again:
 * what they may only read, what is ours, and the workspace, in whose place they could put another one. Pure.
 */
export function tmpOfHost(
  input: OwnPathsInput,
  used: Mechanisms,
  paths: readonly PlannedPath[],
): TmpOfHost | undefined {
  const { tmp, workspace, lookup } = input;
  if (used.backend !== 'landlock' || used.view || tmp === 'host') return undefined;
  if (tmp === 'private') return { refused: 'by the policy' };
  const { canonical: path, kind } = lookup.resolve(TMP);
  if (kind === 'missing') return { refused: 'there is none' };
  if (input.parentBesideTmp?.() === undefined)
    return { refused: 'private directories have no other place: /var/tmp cannot be used' };
  const inside = paths.find(
    (planned) => isBeneath(planned.path, path) && (planned.access !== 'write' || planned.path === workspace),
  );
  if (inside !== undefined) return { refused: `${inside.path} lies in it` };
  const granted: PlannedPath = {
    path,
    access: 'write',
    required: false,
    reason: 'the temporary files of everybody, as there is no /tmp of the command’s own',
  };
  try {
    ownPathsWithin(input, [...paths, granted], used.shutsInside);
  } catch (error) {
    // Also where it is not for /tmp: then that is said when the plan itself looks.
    if (error instanceof SandboxError) return { refused: 'sandbox-run keeps things of its own in it' };
    throw error;
  }
  return { granted };
}
