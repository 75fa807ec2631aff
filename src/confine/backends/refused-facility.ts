import { errnoName } from '../kernel/errno.ts';
import type { NativeFailure } from '../native/contract.ts';
import type { Facility, HostFeatures } from '../plan/host-features.ts';

/** EUSERS, too many namespaces, which Node has no name for, is 87. */
const TOO_MANY_NAMESPACES = 'errno 87';
/** What kernels, security modules and the filters of outer sandboxes say to what they do not know or allow. */
const REFUSALS = ['EPERM', 'EACCES', 'ENOSYS', 'EINVAL', 'EOPNOTSUPP'] as const;

/** One thing that a host may turn out not to have, when it is tried. */
interface Refusable {
  /** Stages of the addon that fail then, and not for another reason. */
  readonly stages: RegExp;
  readonly errnos: ReadonlySet<string>;
  /** Whether the host has it as far as is known; what is given up once is not given up again. */
  readonly assumed: (features: HostFeatures) => boolean;
  readonly without: (features: HostFeatures, failure: string, errno: string) => HostFeatures;
}

const unavailable = (reason: string): Facility => ({ available: false, reason });

/** In the order in which they are looked at: a stage belongs to the first that is still assumed. */
const REFUSABLE: readonly Refusable[] = [
  {
    stages:
      /^(namespace\.(create|user|uid_map|setgroups|gid_map|mount|loopback|open|enter)|view\.(propagation|root|build|pivot|create))$/,
    errnos: new Set([...REFUSALS, 'ENOSPC', 'ENODEV', TOO_MANY_NAMESPACES]),
    assumed: ({ namespaces }) => namespaces.available,
    without: (features, failure) => withoutNamespaces(features, `this host refuses namespaces (${failure})`),
  },
  {
    // Files of /proc/self: not there, of another process namespace, or on a read-only mount.
    stages: /^namespace\.(uid_map|setgroups|gid_map|open)$/,
    errnos: new Set(['ENOENT', 'ESRCH', 'EROFS']),
    assumed: ({ namespaces }) => namespaces.available,
    without: (features, failure) =>
      withoutNamespaces(features, `namespaces need a /proc of this process that can be written (${failure})`),
  },
  {
    // The paths of a view are opened by openat2, which says neither of an existing path.
    stages: /^view\.open$/,
    errnos: new Set(['EPERM', 'ENOSYS']),
    assumed: ({ namespaces }) => namespaces.available,
    without: (features, failure) =>
      withoutNamespaces(features, `this host refuses to build a view (${failure})`),
  },
  {
    // In a chroot whose root is a mount setns() leads to the root of the host and not to that of the view.
    stages: /^view\.check$/,
    errnos: new Set(['ESTALE']),
    assumed: ({ namespaces }) => namespaces.available,
    without: (features, failure) =>
      withoutNamespaces(features, `a view of its own is not what a process gets here (${failure})`),
  },
  {
    stages: /^view\.link$/,
    errnos: new Set(REFUSALS),
    assumed: ({ linkMounts }) => linkMounts !== false,
    without: (features) => ({ ...features, linkMounts: false }),
  },
  {
    stages: /^landlock\.(create_ruleset|add_rule|restrict_self)$/,
    // EINVAL would be a fault of ours.
    errnos: new Set(['EPERM', 'EACCES', 'ENOSYS', 'EOPNOTSUPP', 'E2BIG']),
    assumed: ({ landlock }) => landlock.available,
    without: (features, failure, errno) => ({
      ...features,
      landlock: unavailable(
        errno === 'E2BIG'
          ? 'this process is in too many Landlock domains already (the kernel lets 16 be nested)'
          : `this host has Landlock, but refuses it (${failure}; an outer sandbox may do so)`,
      ),
      landlockAbi: 0,
      signalScope: false,
    }),
  },
  {
    stages: /^seccomp$/,
    // ENOMEM: filters together may have so many instructions and not more.
    errnos: new Set([...REFUSALS, 'ENOMEM']),
    assumed: ({ seccomp }) => seccomp.available,
    without: (features, failure) => ({
      ...features,
      seccomp: unavailable(`this host refuses seccomp filters (${failure})`),
    }),
  },
  {
    // EBUSY: there is one around us, and there can be only one.
    stages: /^exit_tracing$/,
    errnos: new Set([...REFUSALS, 'EBUSY']),
    assumed: ({ seccompListener }) => seccompListener,
    without: (features) => ({ ...features, seccompListener: false }),
  },
  {
    stages: /^cgroup\./,
    errnos: new Set([...REFUSALS, 'ENOENT', 'EBUSY', 'EROFS', 'ENODEV']),
    assumed: ({ cgroup }) => cgroup.path !== undefined,
    without: (features, failure) => ({
      ...features,
      cgroup: { path: undefined, reason: `no command can be started in a control group (${failure})` },
    }),
  },
  {
    // A scope that is not entered has no errno, its warden's failures have many.
    stages: /^(signal_scope|warden)$/,
    errnos: new Set([...REFUSALS, 'errno 0']),
    assumed: ({ signalScope }) => signalScope,
    without: (features) => ({ ...features, signalScope: false }),
  },
];

/** The same host after namespaces turned out not to be usable. */
export function withoutNamespaces(features: HostFeatures, reason: string): HostFeatures {
  return { ...features, namespaces: unavailable(reason) };
}

/** The host without the facility that the failed step needed; `undefined`: it says nothing of the kind. */
export function withoutRefusedFacility(
  features: HostFeatures,
  failure: NativeFailure,
): HostFeatures | undefined {
  const errno = errnoName(failure.errno);
  const refused = REFUSABLE.find(
    ({ stages, errnos, assumed }) => stages.test(failure.stage) && errnos.has(errno) && assumed(features),
  );
  if (refused === undefined) return undefined;
  const where = failure.path === '' ? '' : ` at ${failure.path}`;
  return refused.without(features, `${failure.stage}: ${errno}${where}`, errno);
}
