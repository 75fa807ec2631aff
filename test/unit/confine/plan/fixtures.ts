import { NEWEST_KNOWN_ABI } from '../../../../src/confine/kernel/landlock/rights.ts';
import { enforcementReport } from '../../../../src/confine/plan/enforcement.ts';
import type { BackendId } from '../../../../src/confine/plan/enforcement-report.ts';
import { type FullGrant, fullGrant, type PathRule } from '../../../../src/confine/plan/grant.ts';
import type { HostFeatures } from '../../../../src/confine/plan/host-features.ts';
import type { SymbolicLink } from '../../../../src/confine/plan/launch-plan.ts';
import {
  chooseMechanisms,
  type Mechanisms,
  type Way,
  type WorkspaceFindings,
} from '../../../../src/confine/plan/mechanisms.ts';
import type { ResolvedPath } from '../../../../src/confine/plan/path-lookup.ts';
import { makePlan, type PlanInput } from '../../../../src/confine/plan/plan.ts';
import type { Policy } from '../../../../src/model/index.ts';
import { BACKENDS, demandsOf, grantOf } from '../../../../src/run/index.ts';
import { policyOf } from '../../../support/policy-of.ts';

/** None, every one that there is, and one that is newer than this version knows. */
export const ABIS: readonly number[] = [...Array(NEWEST_KNOWN_ABI + 1).keys(), 99];

export interface HostKind {
  readonly abi: number;
  readonly namespaces: boolean;
  readonly seccomp: boolean;
  /** Missing: none can be made. */
  readonly cgroup?: boolean;
  /** Missing: what runs can be looked at. */
  readonly processList?: boolean;
}

/** Every combination of an ABI, namespaces and seccomp. */
export const HOST_KINDS: readonly HostKind[] = ABIS.flatMap((abi) =>
  [true, false].flatMap((namespaces) => [true, false].map((seccomp) => ({ abi, namespaces, seccomp }))),
);

export const GROUPS = { path: '/sys/fs/cgroup/user', cloneInto: true };

export function hostWith(kind: HostKind): HostFeatures {
  const facility = (available: boolean, name: string) =>
    available ? ({ available } as const) : ({ available, reason: `this host refuses ${name}` } as const);
  return {
    kernelRelease: '6.0.0-test',
    architecture: 'x64',
    landlock: facility(kind.abi > 0, 'Landlock'),
    landlockAbi: kind.abi,
    landlockErrata: 0,
    seccomp: facility(kind.seccomp, 'seccomp'),
    namespaces: facility(kind.namespaces, 'namespaces'),
    needsUserNamespace: true,
    processList:
      kind.processList === false ? { available: false, reason: 'there is no /proc' } : { available: true },
    signalScope: kind.abi >= 6,
    seccompListener: true,
    cgroup: kind.cgroup === true ? GROUPS : { path: undefined, reason: 'this host refuses groups' },
    memoryBytes: 10_000_000_000,
  };
}

/** A host of today that has everything. */
export const BEST_HOST = hostWith({ abi: 11, namespaces: true, seccomp: true });
/** A container: Landlock and seccomp, no namespaces. */
export const CONTAINER = hostWith({ abi: 11, namespaces: false, seccomp: true });

export function profile(name: string): Policy {
  return policyOf({ profile: name });
}

const DEFAULT = profile('workspace-write');

/** The default policy with other network settings. */
export function policyWith(network: Partial<Policy['network']>): Policy {
  return { ...DEFAULT, network: { ...DEFAULT.network, ...network } };
}

/** The default policy without demands: a plan comes out on every host. */
export const undemanding = (policy: Policy): Policy => ({ ...policy, demand: {} });

export const NETWORKS: readonly Policy['network'][] = (['off', 'open'] as const).flatMap((mode) =>
  (['contained', 'allowed'] as const).map((unixSockets) => ({
    mode,
    unixSockets,
    allow: [],
    deny: [],
    unlisted: 'deny' as const,
    verify: 'none' as const,
    unix: [],
    publish: [],
  })),
);

export const rule = (path: string, access: PathRule['access'], required = false): PathRule => ({
  path,
  access,
  required,
  reason: 'a test',
});

/** The default policy with these paths instead of those of the system, and nothing protected or masked. */
export function policyOfRules(
  rules: readonly PathRule[],
  filesystem: Partial<Policy['filesystem']> = {},
): Policy {
  return {
    ...DEFAULT,
    filesystem: { ...DEFAULT.filesystem, rules, protect: [], masked: [], ...filesystem },
  };
}

/** What a fake host has: `directory`, `file`, or the content of a link. Names only what differs from a directory. */
export type FakeTree = Readonly<Record<string, 'directory' | 'file' | 'missing' | { readonly link: string }>>;

/** Resolves one link per path, given whole; that is all that plans need. */
export function fakeLookup(tree: FakeTree = {}) {
  return {
    resolve(path: string): ResolvedPath {
      const links: SymbolicLink[] = [];
      let canonical = path;
      for (const [name, entry] of Object.entries(tree)) {
        if (typeof entry === 'string') continue;
        if (canonical !== name && !canonical.startsWith(`${name}/`)) continue;
        links.push({ path: name, content: entry.link });
        canonical = entry.link + canonical.slice(name.length);
      }
      const entry = tree[canonical];
      const kind = entry === 'missing' ? 'missing' : entry === 'file' ? 'other' : 'directory';
      return { kind, canonical, links };
    },
  };
}

export function wayOf(id: BackendId): Way {
  const way = BACKENDS.find((backend) => backend.id === id);
  if (way === undefined) throw new Error(`there is no backend ${id}`);
  return way;
}

/** `makePlan` for the default policy on the best host, with changes. */
export function planOf({
  backend = 'landlock',
  policy = DEFAULT,
  ...changes
}: Partial<PlanInput> & { readonly backend?: BackendId; readonly policy?: Policy } = {}) {
  const { workspace = '/w' } = changes;
  return makePlan({
    ...grantOf(policy, workspace),
    demands: demandsOf(policy),
    features: BEST_HOST,
    way: wayOf(backend),
    passedOver: [],
    workspace,
    workspaceAsNamed: '/w',
    temporaryParent: '/tmp',
    memoryParent: '/dev/shm',
    hostHome: '/home/user',
    seedFiles: [{ path: 'slot:home/.gitconfig', content: '[user]\n' }],
    cache: { directory: '/state/caches/k', places: [{ name: 'npm', path: '.npm' }] },
    own: [],
    lookup: fakeLookup({ '/w/.git': 'missing' }),
    ...changes,
  });
}

/** The grant of a policy for the workspace `/w`. */
const fullGrantOf = (policy: Policy): FullGrant =>
  fullGrant(
    { workspace: '/w', ...grantOf(policy, '/w') },
    { hostHome: '/home/user', temporaryParent: '/tmp', memoryParent: undefined },
  );

/** What a way uses for a policy on a host. */
export const mechanismsOf = (
  policy: Policy,
  features: HostFeatures,
  backend: BackendId = 'landlock',
): Mechanisms => chooseMechanisms(fullGrantOf(policy), features, wayOf(backend));

/** What is reported of it. */
export const reportOf = (
  policy: Policy,
  features: HostFeatures,
  backend: BackendId,
  found: WorkspaceFindings,
) =>
  enforcementReport(
    { ...fullGrantOf(policy), hidden: found.hidden },
    demandsOf(policy),
    features,
    wayOf(backend),
    mechanismsOf(policy, features, backend),
    found,
    [],
  );
