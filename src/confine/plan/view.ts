import { directoriesBetween, isBeneath } from '../../base/absolute-path.ts';
import type { FullGrant } from './grant.ts';
import type {
  LaunchPlan,
  PlannedCache,
  PlannedLayer,
  PlannedPath,
  PlannedViewStep,
  SymbolicLink,
} from './launch-plan.ts';
import type { PathLookup } from './path-lookup.ts';

/** Where commands find a private home if it cannot lie where the user's is. */
const VIEW_HOME = '/home/sandbox';
/** Where the private home is instead of VIEW_HOME, if the policy shows a path in or around that. */
const VIEW_HOME_BESIDE = '/.sandbox-home';
/** Directories that are not a user's home, whatever HOME says. Homes may lie beneath them. */
const NO_HOMES: ReadonlySet<string> = new Set(
  '/ /bin /boot /dev /dev/pts /dev/shm /etc /home /lib /lib32 /lib64 /libx32 /media /mnt /opt /proc /run /sbin /srv /sys /tmp /usr /var /var/tmp'.split(
    ' ',
  ),
);
const VIEW_TMP = '/tmp';
/** Where the policy shows the host's /tmp. */
const VIEW_TMP_BESIDE = '/.sandbox-tmp';
/** An empty directory of the command's own, shown in place of what it must not see. */
export const NOTHING = 'slot:nothing';
/** The private copies of files that commands may replace, and where the command finds them. */
export const COPIES = 'slot:git';
export const VIEW_COPIES = '/.sandbox-run';
/** Where changes of directories go that commands see as copies which they may write. */
const LAYERS = 'slot:layers';
/** What the commands of a workspace keep for each other, and where it is in a view. */
export const CACHE = 'cache:';
export const VIEW_CACHE = '/.sandbox-cache';
const VIEW_SHARED_MEMORY = '/dev/shm';

/** The private home of a view. */
export interface ViewHome {
  /** The value of HOME. */
  readonly named: string;
  /** Where it is shown, canonical: the same directory at each place. */
  readonly places: readonly string[];
  /** On the way from the names to the places. */
  readonly links: readonly SymbolicLink[];
}

/**
 * Directories of a private place (a home, /tmp) that are only there to lead to the workspace. What a command writes into one
 * of them would be gone with the place, and `../notes` in a project is meant to last: they are shut, so that it fails and is
 * told. Without those in which tools keep what they cache, and those beneath dot-directories.
 */
export function directoriesTo(
  workspaces: readonly string[],
  place: string,
  paths: readonly PlannedPath[],
  contents: readonly string[],
): readonly string[] {
  const shown = paths.map(({ path, shownAs = path }) => shownAs);
  const ways = workspaces.flatMap((workspace) => directoriesBetween(workspace, place));
  return [...new Set(ways)].filter(
    (way) =>
      !way.slice(place.length).includes('/.') &&
      !shown.some((path) => isBeneath(way, path)) &&
      !contents.some((inner) => isBeneath(`${place}/${inner}`, way)),
  );
}

/** The input for the place of a private home. */
interface HomeInput {
  /** HOME, and the home that the user database names if that is another one. */
  readonly homes: readonly string[];
  readonly paths: readonly PlannedPath[];
  /** Links on the way to granted paths. */
  readonly links: readonly SymbolicLink[];
  /** What is put into the home, relative to it. */
  readonly contents: readonly string[];
  readonly lookup: PathLookup;
}

/**
 * A private $HOME lies where the user's home is, so that its path means the same inside and outside. HOME counts, because the
 * user's tools follow it; programs that ask the user database instead find the same directory. It lies elsewhere if the policy
 * shows the user's home, or if a link in the home leads to a granted path and stands where something is put.
 */
export function viewHome({ homes, paths, links, contents, lookup }: HomeInput): ViewHome {
  const isFree = (place: string) =>
    !NO_HOMES.has(place) &&
    !paths.some(({ path }) => isBeneath(place, path)) &&
    !links.some(({ path }) => contents.some((inner) => isBeneath(`${place}/${inner}`, path)));
  const usable = homes.flatMap((named, at) => {
    const { canonical, kind, unknown, links: way } = lookup.resolve(named);
    // A home that the user database alone names is of use only if it is there. What is granted in it would leave mount points
    // in the directory, which HOME shows, too.
    const mayBe =
      at === 0
        ? kind === 'directory' || (kind === 'missing' && unknown === undefined)
        : kind === 'directory' && !paths.some(({ path }) => isBeneath(path, canonical));
    return mayBe && isFree(canonical) ? [{ named, place: canonical, way, at }] : [];
  });
  const [first] = usable;
  if (first?.at !== 0) {
    const named = paths.some(({ path }) => isBeneath(VIEW_HOME, path)) ? VIEW_HOME_BESIDE : VIEW_HOME;
    return { named, places: [named], links: [] };
  }
  return {
    named: first.named,
    places: [...new Set(usable.map(({ place }) => place))],
    links: usable.flatMap(({ way }) => way),
  };
}

/** Where a private $TMPDIR is in a view. */
export const viewTmp = (paths: readonly PlannedPath[]): string =>
  paths.some(({ path }) => path === VIEW_TMP) ? VIEW_TMP_BESIDE : VIEW_TMP;

/** What the view is made of. */
export interface ViewParts {
  readonly paths: readonly PlannedPath[];
  /** Links on the way to granted paths, recreated so that the names keep working. */
  readonly links: readonly SymbolicLink[];
  /** Existing or not; shut for writing where they exist. */
  readonly protectedPaths: readonly string[];
  /** Directories in whose place nothing is shown. */
  readonly hiddenPaths: readonly string[];
  /** Existing files and directories that are shown empty: those of `filesystem.hide`, and exceptions of granted trees. */
  readonly emptied: readonly string[];
  /** Files among these that cannot even be opened. */
  readonly refused: readonly string[];
  /** Links that are put back: the directories that they are in stay what they are. */
  readonly watchedLinks: readonly SymbolicLink[];
  /** In whose place a link to a copy is shown. */
  readonly copies: LaunchPlan['copies'];
  /** Protected directories that commands may write as a copy of their own, for installers of hooks. */
  readonly copiedDirectories: readonly { readonly path: string; readonly kept: string | undefined }[];
  readonly grant: Pick<FullGrant, 'tmp' | 'masked'>;
  /** `undefined`: commands have the user's. */
  readonly home: ViewHome | undefined;
  /** Directories of private places that lead to the workspace and cannot be written. */
  readonly between: readonly string[];
  readonly sharedMemory: boolean;
  readonly cache: PlannedCache;
  /** Over the workspace. */
  readonly layer?: { readonly workspace: string; readonly over: PlannedLayer } | undefined;
}

const bind = (
  source: string,
  target: string,
  options: {
    readonly writable?: boolean;
    readonly device?: boolean;
    readonly required?: boolean;
    readonly watched?: boolean;
    readonly fromView?: boolean;
  } = {},
): PlannedViewStep => ({
  kind: 'bind',
  source,
  target,
  writable: options.writable ?? false,
  device: options.device ?? false,
  required: options.required ?? false,
  watched: options.watched ?? false,
  fromView: options.fromView ?? false,
});

/** The steps that build the view, outer mounts before what lies inside them. Pure. */
export function viewSteps(parts: ViewParts): readonly PlannedViewStep[] {
  const { grant, layer } = parts;
  const isLayered = (path: string) => layer !== undefined && isBeneath(path, layer.workspace);
  const steps: PlannedViewStep[] = [];
  if (grant.tmp !== 'host')
    steps.push(bind('slot:tmp', viewTmp(parts.paths), { writable: true, required: true }));
  for (const place of parts.home?.places ?? [])
    steps.push(bind('slot:home', place, { writable: true, required: true }));
  for (const target of parts.between) steps.push({ kind: 'between', target });
  // One mount for the whole cache, with links in the home: a mount for each tool would take longer than the command.
  if (parts.cache.kind === 'workspace')
    steps.push(bind(CACHE, VIEW_CACHE, { writable: true, required: true }));
  if (parts.sharedMemory) steps.push(bind('shm:', VIEW_SHARED_MEMORY, { writable: true, required: true }));
  steps.push(
    { kind: 'devpts', target: '/dev/pts' },
    { kind: 'symlink', content: 'pts/ptmx', target: '/dev/ptmx' },
    { kind: 'symlink', content: '/proc/self/fd', target: '/dev/fd' },
    { kind: 'symlink', content: '/proc/self/fd/0', target: '/dev/stdin' },
    { kind: 'symlink', content: '/proc/self/fd/1', target: '/dev/stdout' },
    { kind: 'symlink', content: '/proc/self/fd/2', target: '/dev/stderr' },
  );
  for (const link of [...parts.links, ...(parts.home?.links ?? [])])
    steps.push({ kind: 'symlink', content: link.content, target: link.path });
  for (const planned of parts.paths) {
    if (planned.path === layer?.workspace) {
      steps.push({ kind: 'layer', source: planned.path, target: planned.path, layer: layer.over });
      continue;
    }
    if (isCovered(planned, parts.paths)) continue;
    steps.push(
      bind(planned.path, planned.shownAs ?? planned.path, {
        writable: planned.access === 'write' || planned.access === 'device',
        device: planned.access === 'device' || planned.path.startsWith('/dev/'),
        required: planned.required,
        fromView: isLayered(planned.path),
      }),
    );
  }
  for (const path of grant.masked) {
    if (!parts.paths.some((planned) => isBeneath(path, planned.path)))
      steps.push({ kind: 'masked-file', target: path });
  }
  // A mount point cannot be renamed: each directory on the way is mounted on itself, or `mv .git x` would
  // leave the read-only mount behind and make room for another `.git`.
  // From the outermost writable grant on: the workspace itself may lie inside one and be renamed there.
  const pinned = new Set(
    [
      ...parts.protectedPaths,
      ...parts.watchedLinks.map(({ path }) => path),
      ...parts.hiddenPaths,
      ...parts.emptied,
    ].flatMap((path) => directoriesBetween(path, outermostWritable(path, parts.paths))),
  );
  for (const path of pinned) {
    const writable = isWritable(path, parts.paths);
    steps.push(bind(path, path, { writable, watched: true, fromView: isLayered(path) }));
  }
  if (parts.copies.length > 0) steps.push(bind(COPIES, VIEW_COPIES, { writable: true, required: true }));
  for (const path of parts.protectedPaths) {
    const copy = parts.copies.find(({ source }) => source === path);
    // A mount point cannot be replaced, and git replaces what it changes: behind a link it can.
    if (copy === undefined) steps.push(bind(path, path, { watched: true, fromView: isLayered(path) }));
    else steps.push({ kind: 'bind-link', content: copy.shownAs, target: path });
  }
  // Over the read-only mount, which stays where the kernel has no layer for it.
  for (const [at, { path, kept }] of parts.copiedDirectories.entries()) {
    const own = `${LAYERS}/${at}`;
    const over = { lower: kept === undefined ? [] : [kept], upper: `${own}/upper`, work: `${own}/work` };
    steps.push({ kind: 'layer', source: path, target: path, layer: over });
  }
  for (const path of parts.hiddenPaths) steps.push(bind(NOTHING, path, { required: true }));
  // Nothing can be mounted in what is empty and shut.
  const left = steps.filter(({ target }) => !parts.emptied.some((over) => isBeneath(target, over)));
  for (const target of parts.emptied)
    left.push({
      kind: 'emptied',
      source: NOTHING,
      target,
      fromView: isLayered(target),
      refused: grant.masked.includes(target) || parts.refused.includes(target),
    });
  return sortOuterFirst(left);
}

/** The outermost writable grant around a path, or the path itself. */
function outermostWritable(inner: string, all: readonly PlannedPath[]): string {
  return all
    .filter((grant) => grant.access === 'write' && isBeneath(inner, grant.path))
    .reduce((outer, grant) => (grant.path.length < outer.length ? grant.path : outer), inner);
}

/** A grant inside another one with the same mount flags needs no mount of its own. */
function isCovered(planned: PlannedPath, all: readonly PlannedPath[]): boolean {
  const outer = grantAround(
    planned.path,
    all.filter((other) => other.path !== planned.path && other.shownAs === undefined),
  );
  return (
    outer !== undefined &&
    (outer.access === 'write') === (planned.access === 'write') &&
    planned.access !== 'device'
  );
}

/** What the innermost grant around a path says. */
function isWritable(path: string, all: readonly PlannedPath[]): boolean {
  return grantAround(path, all)?.access === 'write';
}

function grantAround(path: string, all: readonly PlannedPath[]): PlannedPath | undefined {
  return all.filter((grant) => isBeneath(path, grant.path)).sort((a, b) => b.path.length - a.path.length)[0];
}

/** By depth, so that a mount never hides one made before it; the order is stable otherwise. */
function sortOuterFirst(steps: readonly PlannedViewStep[]): readonly PlannedViewStep[] {
  const depth = (step: PlannedViewStep) => step.target.split('/').length;
  return [...steps].sort((a, b) => depth(a) - depth(b));
}
