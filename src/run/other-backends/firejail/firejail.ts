import { lstatSync } from 'node:fs';
import { directoriesBetween, isBeneath } from '../../../base/absolute-path.ts';
import { SandboxError } from '../../../base/errors/sandbox-error.ts';
import type { Backend } from '../../../confine/backends/backend.ts';
import { confinementSpec } from '../../../confine/backends/confinement-spec.ts';
import type { FirejailFacility, HostFeatures } from '../../../confine/plan/host-features.ts';
import type { LaunchPlan, PlannedPath, ResourceLimitName } from '../../../confine/plan/launch-plan.ts';
import { WITHOUT_KERNEL } from '../../../confine/plan/mechanisms.ts';
import { FIREJAIL_JUDGES } from './controls.ts';
import type { NativeSetUidLauncher } from './native-launcher.ts';
import { type FirejailFeature, type FirejailVersion, hasFeature, probeFirejail, trySpec } from './probe.ts';
import { canChangeRoot, keptOpen, type TopEntry, topEntries } from './root-directory.ts';

/**
 * Firejail makes mounts and namespaces, and starts `sandbox-run-begin`, which adds our filter and starts the command. So
 * nothing of a command is ever among Firejail's options.
 */
export const firejail: Backend = {
  id: 'firejail',
  summary: 'the set-uid program Firejail (0.9.68 or later), and seccomp',
  // It makes mounts and namespaces by itself; the filter is ours.
  mechanisms: ({ network: { mode } }) => ({
    ...{ ...WITHOUT_KERNEL, shutsInside: true, ownIpc: true, networkNamespace: mode !== 'open' },
    inetSockets: mode === 'open' ? 'open' : 'isolated',
    unixSockets: 'allowed',
    socketsOfOthers: true,
  }),
  judges: FIREJAIL_JUDGES,
  ownMounts: true,
  async probe(features, tryCommand) {
    const found = await probeFirejail(tryCommand);
    return 'reason' in found
      ? { usable: false, reason: found.reason }
      : { usable: true, features: { ...features, firejail: found } };
  },
  async confinement(plan, features, tryCommand) {
    const found = facilityOf(features);
    const missing = notShown(plan);
    if (missing.length > 0) {
      throw new SandboxError(
        'backend.unavailable',
        `Firejail cannot show ${missing.join(', ')}, which the policy requires`,
      );
    }
    const launcher = firejailLauncher(plan, hostOf(found));
    const spec = { ...(await confinementSpec(plan, features)), setUidLauncher: launcher };
    await trySpec(
      tryCommand,
      found,
      spec,
      plan.paths.map(({ path }) => path),
    );
    return spec;
  },
};

function facilityOf({ firejail: found }: HostFeatures): FirejailFacility {
  if (found === undefined) throw new SandboxError('backend.unavailable', 'Firejail was not asked for');
  return found;
}

function hostOf({ path, version }: FirejailFacility): FirejailHost {
  const user = process.getuid?.();
  return {
    path,
    version,
    isRoot: user === 0,
    top: topEntries(),
    canChangeRoot: canChangeRoot(),
    isForeign: (one) => {
      const owner = lstatSync(one, { throwIfNoEntry: false })?.uid;
      return owner !== undefined && owner !== user;
    },
  };
}

/** What Firejail's settings depend on besides the plan. */
export interface FirejailHost {
  readonly path: string;
  readonly version: FirejailVersion;
  readonly isRoot: boolean;
  /** What is in `/`, links left out. */
  readonly top: readonly TopEntry[];
  /** See `canChangeRoot` of root-directory.ts. */
  readonly canChangeRoot: boolean;
  /** Whether a path exists and belongs to another user. */
  readonly isForeign: (path: string) => boolean;
}

/** Firejail makes these by itself. */
const MADE_BY_FIREJAIL = ['/proc', '/dev'];
/** Firejail shows all of /sys or nothing. Programs look there for the number of processors, which /proc has too. */
const NOT_IN_PARTS = '/sys';
/** Devices that its private /dev has. */
const DEVICES = ['full', 'null', 'ptmx', 'pts', 'random', 'shm', 'tty', 'urandom', 'zero'].map(
  (name) => `/dev/${name}`,
);
/** Firejail mounts these read-only by default. */
const READ_ONLY_ANYWAY = ['/usr', '/etc', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32'];
/** /run cannot be covered, because Firejail keeps its state there. Whitelisting a missing path hides everything else in it. */
const NOTHING_OF_RUN = '/run/sandbox-run-nothing';
/**
 * The host's, shared by all that Firejail runs, shown whatever is whitelisted, and root's: who writes there says what the
 * next Firejail, as root, writes to. What it needs itself is on a mount of the sandbox's own.
 */
const STATE_OF_FIREJAIL = [
  'read-only /run/firejail',
  'read-write /run/firejail/mnt',
  ...['name', 'profile', 'sandbox'].map((name) => `blacklist /run/firejail/${name}`),
];
/** Firejail's macros, lists, patterns and comments, and what it refuses: none of it may be in a path. */
const PLAIN_PATH = /^(?:\/(?:[\w.@:=+~-]|[^\p{ASCII}\p{C}\p{Z}])(?:[\w.@:=+~ -]|[^\p{ASCII}\p{C}\p{Z}])*)+$/u;

const RLIMITS: Readonly<Partial<Record<ResourceLimitName, string>>> = {
  nproc: 'rlimit-nproc',
  nofile: 'rlimit-nofile',
  fsize: 'rlimit-fsize',
  as: 'rlimit-as',
  cpu: 'rlimit-cpu',
};

/** The options for Firejail; none of them comes from a command. Pure, except for lookups on the host. */
export function firejailLauncher(plan: LaunchPlan, host: FirejailHost): NativeSetUidLauncher {
  for (const path of [
    ...plan.paths.map((planned) => planned.path),
    ...plan.protectedPaths,
    ...plan.hiddenPaths,
    ...plan.emptied,
    ...cacheOf(plan),
    plan.temporaryParent,
  ])
    refuseStrangePath(path);
  const slot = slotPlace(plan);
  const shut = host.isRoot ? shutTops(plan, host, slot) : [];
  return {
    program: host.path,
    // Here and not among the settings: what is quiet must be so before they are read.
    arguments: ['--quiet', '--profile=/proc/self/fd/6', '--keep-fd=3,4,5'],
    settings: [
      // First, so that what follows opens what is to be written in there.
      ...shut.map((top) => `read-only ${top}`),
      ...isolation(plan, host),
      ...plan.limits.flatMap(({ name, value }) => {
        const setting = RLIMITS[name];
        return setting === undefined ? [] : [`${setting} ${value}`];
      }),
      ...covers(plan, host, slot),
      ...accesses(plan, shut),
    ]
      .map((line) => `${line}\n`)
      .join(''),
    conditional: closedInside(plan, host),
    slotSetting: slot === undefined ? '' : 'whitelist ',
    foregroundSettings: 'deterministic-shutdown\n',
    deadlineOption: '--timeout=',
    env: 'PATH=/usr/sbin:/usr/bin:/sbin:/bin\0',
    keptOpen: host.canChangeRoot
      ? keptOpen(host.top, [...plan.paths.map(({ path }) => path), ...cacheOf(plan)])
      : undefined,
  };
}

function isolation(plan: LaunchPlan, { version, isRoot }: FirejailHost): readonly string[] {
  const where = (feature: FirejailFeature, line: string) => (hasFeature(version, feature) ? [line] : []);
  return [
    'deterministic-exit-code',
    'caps.drop all',
    'nonewprivs',
    // Root has no user namespace of Firejail's.
    ...(isRoot ? [] : ['noroot']),
    'nogroups',
    'seccomp',
    'seccomp.block-secondary',
    'protocol unix,inet,inet6,netlink',
    ...where('restrict-namespaces', 'restrict-namespaces'),
    ...where('shell-none', 'shell none'),
    'ipc-namespace',
    ...(plan.network === 'open' ? [] : ['net none']),
    'dbus-user none',
    'dbus-system none',
    'private-dev',
    'no3d',
    'nodvd',
    'nosound',
    'notv',
    'nou2f',
    'novideo',
    ...where('noinput', 'noinput'),
    ...where('noprinters', 'noprinters'),
    // Else everything in /var is shut for writing and executing, and /var/tmp and /var/log are replaced.
    'writable-var',
    'writable-var-log',
    'keep-var-tmp',
    ...(isRoot ? STATE_OF_FIREJAIL : []),
  ];
}

/** Options that show each directory in `/`: all of it, some paths, or nothing. */
function covers(plan: LaunchPlan, host: FirejailHost, slot: string | undefined): readonly string[] {
  const links = plan.links.filter(({ path }) => PLAIN_PATH.test(path));
  const cache = cacheOf(plan);
  const lines: string[] = [];
  for (const { path: top, isDirectory } of host.top) {
    if (MADE_BY_FIREJAIL.includes(top) || plan.paths.some(({ path }) => path === top)) continue;
    const shown =
      top === NOT_IN_PARTS
        ? []
        : [
            ...plan.paths.map(({ path }) => path).filter((path) => isBeneath(path, top)),
            ...links.map(({ path }) => path).filter((path) => isBeneath(path, top)),
            ...cache.filter((path) => isBeneath(path, top)),
            ...(top === '/run' ? [NOTHING_OF_RUN] : []),
          ];
    const outermost = shown.filter(
      (path) => !shown.some((other) => other !== path && isBeneath(path, other)),
    );
    const hasSlot = slot !== undefined && isBeneath(slot, top);
    if (outermost.length > 0 && isDirectory)
      lines.push(...new Set(outermost.map((path) => `whitelist ${path}`)));
    else if (hasSlot) continue;
    else if (top === '/tmp') lines.push('private-tmp');
    else lines.push(`blacklist ${refuseStrangePath(top)}`);
  }
  return lines;
}

/**
 * Directories in `/` of which parts are shown. Firejail puts a tmpfs in their place, which root could write to: it would seem
 * that the host's directory was written, and what was written would be gone with the command.
 */
function shutTops({ paths }: LaunchPlan, { top }: FirejailHost, slot: string | undefined): readonly string[] {
  return (
    top
      .filter(
        ({ path, isDirectory }) => isDirectory && !MADE_BY_FIREJAIL.includes(path) && path !== NOT_IN_PARTS,
      )
      .map(({ path }) => path)
      .filter((path) => path !== '/tmp' && !paths.some((planned) => planned.path === path))
      // Its name is known only when a command starts.
      .filter((path) => slot === undefined || !isBeneath(slot, path))
  );
}

/** What is shown of the workspace's cache: links in the home lead there. */
function cacheOf({ cache }: LaunchPlan): readonly string[] {
  return cache.kind === 'workspace' ? [`${cache.directory}/places`] : [];
}

/** Where the private directories are, if they have to be shown: a directory that is there as a whole shows them anyway. */
function slotPlace({ paths, temporaryParent }: LaunchPlan): string | undefined {
  const [, name] = temporaryParent.split('/');
  return paths.some(({ path }) => path === `/${name}`) ? undefined : temporaryParent;
}

/** Read-only, not to be executed, or writable in the midst of what is not; outer ones first. */
function accesses({ paths }: LaunchPlan, shut: readonly string[]): readonly string[] {
  return [...paths]
    .filter(({ path }) => !MADE_BY_FIREJAIL.some((made) => isBeneath(path, made)))
    .sort((a, b) => a.path.split('/').length - b.path.split('/').length)
    .flatMap((planned) => linesOf(planned, paths, shut));
}

function linesOf(
  { path, access }: PlannedPath,
  all: readonly PlannedPath[],
  shut: readonly string[],
): readonly string[] {
  const outer = all
    .filter((other) => other.path !== path && isBeneath(path, other.path))
    .sort((a, b) => b.path.length - a.path.length)[0];
  const isShut = [...READ_ONLY_ANYWAY, ...shut].some((top) => isBeneath(path, top));
  const around = outer?.access ?? (isShut ? 'read' : 'write');
  switch (access) {
    case 'write':
    case 'device':
      return around === 'write' || around === 'device' ? [] : [`read-write ${path}`];
    case 'read':
      return around === 'read' ? [] : [`read-only ${path}`];
    case 'data':
      // What is in /etc is not executed anyway.
      if (around === 'data' || isBeneath(path, '/etc')) return [];
      return [...(around === 'read' ? [] : [`read-only ${path}`]), `noexec ${path}`];
  }
}

/**
 * What is shut inside the workspace, if it is there when a command starts. A mount point cannot be renamed: the directories
 * on the way are mounted on themselves, which Firejail does if it is told first the one thing and then the other.
 */
function closedInside(plan: LaunchPlan, host: FirejailHost): NativeSetUidLauncher['conditional'] {
  const writable = plan.paths.filter(({ access }) => access === 'write');
  const hidden = [...plan.hiddenPaths, ...plan.emptied];
  const pins = new Set(
    [...plan.protectedPaths, ...plan.watchedLinks.map(({ path }) => path), ...hidden].flatMap((inner) => {
      const root = writable
        .map(({ path }) => path)
        .filter((path) => isBeneath(inner, path))
        .sort((a, b) => a.length - b.length)[0];
      return root === undefined ? [] : directoriesBetween(inner, root);
    }),
  );
  const isHidden = (path: string) => plan.emptied.some((over) => isBeneath(path, over));
  const closed = [
    ...[...pins].map((path) => {
      if (!host.isRoot && host.isForeign(path)) {
        throw new SandboxError(
          'backend.unavailable',
          `Firejail cannot hold ${path} in place, which belongs to another user, and what is protected in it could be moved away`,
        );
      }
      return { path, settings: `read-only ${path}\nread-write ${path}\n` };
    }),
    ...plan.protectedPaths
      .filter((path) => !isHidden(path))
      .map((path) => ({ path, settings: `read-only ${path}\n` })),
    ...hidden.map((path) => ({ path, settings: `blacklist ${path}\n` })),
  ];
  return closed.sort((a, b) => a.path.split('/').length - b.path.split('/').length);
}

/** @throws {SandboxError} `backend.unavailable` for a path that Firejail would take for something else. */
function refuseStrangePath(path: string): string {
  if (PLAIN_PATH.test(path) && !path.includes('  ') && !path.endsWith(' ')) return path;
  throw new SandboxError(
    'backend.unavailable',
    path === '/'
      ? 'Firejail cannot grant / as a whole; name the directories that are needed'
      : `Firejail cannot be told of ${JSON.stringify(path)}: characters other than letters, digits, single spaces and . _ - + @ : = ~ mean something to it; rename it or choose another place`,
  );
}

/** What the policy requires and Firejail cannot show. */
function notShown(plan: LaunchPlan): readonly string[] {
  return plan.paths
    .filter(({ required }) => required)
    .map(({ path }) => path)
    .filter(
      (path) =>
        (isBeneath(path, '/dev') && !DEVICES.includes(path)) ||
        (isBeneath(path, NOT_IN_PARTS) && path !== NOT_IN_PARTS),
    );
}
