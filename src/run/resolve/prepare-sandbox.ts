import { isDeepStrictEqual } from 'node:util';
import { isBeneath } from '../../base/absolute-path.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { Backend } from '../../confine/backends/backend.ts';
import type { Confinement, Preparation } from '../../confine/confine.ts';
import type { NativeAddon, NativeEffects } from '../../confine/native/contract.ts';
import { loadAddon } from '../../confine/native/load.ts';
import type { Grant, HiddenFiles } from '../../confine/plan/grant.ts';
import type { HostFeatures } from '../../confine/plan/host-features.ts';
import type { LaunchPlan, PlannedLayer } from '../../confine/plan/launch-plan.ts';
import type { NameLookup, Policy, SandboxOptions } from '../../model/index.ts';
import { identityOf, makeDirectories, type Settler, type Surroundings } from '../../workspace/index.ts';
import type { Looked } from '../hidden-files.ts';
import type { NetworkBroker } from '../network/broker.ts';
import { withPublished } from '../network/published-in-plan.ts';
import type { PublishedPorts } from '../network/published-ports.ts';
import { BACKENDS } from '../other-backends/all-backends.ts';
import type { WouldDeny } from '../output/shadow.ts';
import { placesIn } from '../proposals.ts';
import { confinerOf, enforceable, hiddenIn, type PlannedSandbox, planResolved } from './plan-sandbox.ts';
import { type ResolvedPolicy, resolvePolicy } from './resolve-policy.ts';
import { hasNpmCache, seedNpmCache } from './seed-npm-cache.ts';
import { type OpenCache, openCache } from './workspace-cache.ts';
import { closeHooksGap, prepareSettler, type WorkspaceFindings } from './workspace-findings.ts';

/** Everything that the commands of one sandbox share. */
export interface PreparedSandbox {
  readonly addon: NativeAddon;
  /** The confinement of the next command: `hidden.keepHidden` replaces it. */
  readonly confinement: Confinement;
  readonly policy: Policy;
  /** The plan of `confinement`, replaced with it. */
  readonly plan: LaunchPlan;
  readonly resolved: ResolvedPolicy;
  /** The cache that the commands of the workspace share; `undefined`: each command has its own. */
  readonly cache: OpenCache | undefined;
  readonly findings: WorkspaceFindings | undefined;
  /** Looks at what a command left behind; to be called with what the addon says of its end. */
  readonly settle: Settler;
  /** Where the network is listed. */
  readonly network: NetworkBroker | undefined;
  /** Where ports are published. */
  readonly published: PublishedPorts | undefined;
  /** Where the policy hides files. */
  readonly hidden: HiddenNow | undefined;
  /** Tells what another policy would deny. */
  readonly shadow: WouldDeny | undefined;
  /**
   * A variant for one command whose changes of the workspace go to a layer. The caller closes its confinement. Nothing is
   * settled in the workspace: what the command leaves gets there when it is applied. `leavesOpen`: other paths that the policy
   * lets commands write stay writable, and what is left there is settled when the command ends.
   * @throws {SandboxError} `changes.unavailable`.
   */
  readonly withLayer: (layer: PlannedLayer, leavesOpen?: boolean) => Promise<PreparedSandbox>;
  /**
   * A variant for commands that only read: they cannot write the workspace. The caller closes its confinement after the last
   * command.
   */
  readonly forReading: () => Promise<PreparedSandbox>;
  /** A variant that reports denied reads too. The caller closes its confinement after the last command. */
  readonly forLooking: () => Promise<PreparedSandbox>;
}

/** What `filesystem.hide` matches, from command to command. */
interface HiddenNow {
  /** What matches now, and which file or directory each is. @throws {SandboxError} where it cannot be known. */
  matches(): ReadonlyMap<string, string | undefined>;
  /**
   * To be called before a command is launched: `undefined` where the confinement hides what matches now; else it will once
   * this is settled. Rejects where it cannot be hidden, and then nothing may be launched.
   */
  keepHidden(): Promise<void> | undefined;
}

/**
 * Goes down the ladder of backends: plans, makes the kernel objects, and plans again with less where the host turns out to
 * refuse something.
 * `asIf` and `backends` are internal, for tests: a host that offers less, and other ways to keep commands in.
 * @throws {SandboxError} for everything that is wrong with options, policy or workspace; `backend.unavailable`; `enforcement.unavailable`; `confinement.failed`.
 */
export async function prepareSandbox(
  options: SandboxOptions,
  around: Surroundings,
  asIf: (host: HostFeatures) => HostFeatures = (host) => host,
  backends: readonly Backend[] = BACKENDS,
): Promise<PreparedSandbox> {
  return prepareOf(await resolvePolicy(options, around), options, { asIf, backends });
}

/**
 * Prepares a sandbox from options that are already resolved. `beside`: a sandbox whose namespaces its commands share.
 * `isOfSession`: all commands belong to one session of an agent, so they share a temporary directory too.
 */
export async function prepareOf(
  resolved: ResolvedPolicy,
  options: SandboxOptions,
  {
    asIf = (host) => host,
    backends = BACKENDS,
    beside,
    isOfSession = options.session !== undefined,
  }: {
    readonly asIf?: (host: HostFeatures) => HostFeatures;
    readonly backends?: readonly Backend[];
    readonly beside?: Beside | undefined;
    readonly isOfSession?: boolean;
  } = {},
): Promise<PreparedSandbox> {
  const cache = openCacheFor(resolved);
  try {
    return await prepareResolved(
      resolved,
      cache,
      { asIf, backends, beside, isOfSession },
      options.gate?.lookup,
    );
  } catch (error) {
    cache?.close();
    throw error;
  }
}

async function prepareResolved(
  resolved: ResolvedPolicy,
  cache: OpenCache | undefined,
  {
    asIf,
    backends,
    beside,
    isOfSession,
  }: {
    asIf: (host: HostFeatures) => HostFeatures;
    backends: readonly Backend[];
    beside: Beside | undefined;
    isOfSession: boolean;
  },
  lookup: NameLookup | undefined,
): Promise<PreparedSandbox> {
  const found = await planResolved(resolved, cache?.place);
  const planned: Planned = { ...found, how: preparationOf(found, isOfSession) };
  const { addon, findings } = planned;
  const { policy } = resolved;
  for (const root of findings?.roots ?? []) closeHooksGap(root);
  const features = asIf(planned.features);
  const { grant, demands, how } = planned;
  const confiner = confinerOf({ features }, backends);
  const confinement = enforceable(
    await confiner.prepare(grant, demands, { ...how, beside: beside?.confinement }),
  );
  try {
    const plan = withPublished(confinement.plan, policy);
    const settle = prepareSettler(addon, plan, findings);
    const network = await brokerFor(addon, confinement, lookup);
    if (planned.shadow !== undefined) requireLooking(plan);
    const shadow =
      planned.shadow && (await import('../output/shadow.ts')).shadowOf(planned.shadow, placesIn(resolved));
    const published = await publishedOf(addon, resolved, plan);
    const own = {
      ...{ confinement, plan, addon, policy, resolved, cache, findings },
      ...{ settle, network, published, shadow },
    };
    // `hiddenNow` replaces the confinement of this object later, so it must be the one that is returned.
    const prepared = { ...own, hidden: undefined };
    const hidden = hiddenNow(planned, prepared, lookup);
    return Object.assign(prepared, { hidden, ...variantsOf(planned, prepared, lookup) });
  } catch (error) {
    confinement.close();
    throw error;
  }
}

/** @throws {SandboxError} `enforcement.unavailable`: the host cannot observe system calls of commands. */
export function requireLooking({ observed, report }: LaunchPlan): void {
  if (observed !== 'nothing') return;
  const why = report.controls.find(({ id }) => id === 'denials')?.reason ?? '';
  throw new SandboxError('enforcement.unavailable', why);
}

/**
 * Files to hide may appear between two commands, made by a command or from outside. The next command gets a confinement that
 * hides them; running commands keep theirs.
 */
function hiddenNow(
  planned: Planned,
  prepared: { confinement: Confinement; plan: LaunchPlan; network: NetworkBroker | undefined },
  lookup: NameLookup | undefined,
): HiddenNow | undefined {
  const { finder, addon } = planned;
  const { policy } = planned.resolved;
  if (finder === undefined) return undefined;
  let current = planned.hidden;
  let renewing: Promise<void> | undefined;
  const renew = async (looked: Looked): Promise<void> => {
    // `another` shares the namespaces, so the next command still reaches background processes of an earlier one.
    const grant = { ...planned.grant, hidden: hiddenIn(planned.resolved, looked.files) };
    const made = await prepared.confinement.another(grant, planned.how);
    const confinement = enforceable(made);
    const network = await brokerFor(addon, confinement, lookup);
    prepared.confinement.close();
    Object.assign(prepared, { confinement, plan: withPublished(confinement.plan, policy), network });
    current = looked;
  };
  const keepHidden = (): Promise<void> | undefined => {
    // More files may have appeared while a confinement is being made: look again when it is ready.
    if (renewing !== undefined) return renewing.then(keepHidden, keepHidden);
    const now = finder.look();
    if (isDeepStrictEqual(now, current)) return undefined;
    renewing = renew(now).finally(() => {
      renewing = undefined;
    });
    return renewing;
  };
  return {
    matches: () => new Map(finder.look().files.paths.map((path) => [path, identityOf(path)])),
    keepHidden,
  };
}

type Variants = Pick<PreparedSandbox, 'withLayer' | 'forReading' | 'forLooking'>;

/** Variants of the sandbox: on a layer, read-only, or with denied reads observed. */
function variantsOf(
  planned: Planned,
  prepared: Omit<PreparedSandbox, keyof Variants>,
  lookup: NameLookup | undefined,
): Variants {
  const { addon, finder, resolved } = planned;
  // These commands do not write the workspace, so no guest watches it.
  const beside: Planned = { ...planned, how: { ...planned.how, guests: {} } };
  const prepareBeside = async ({ grant, how }: Planned): Promise<Confinement> =>
    enforceable(await prepared.confinement.another(grant, how));
  /** The last confinement on a layer: while the hidden files stay the same, only the layer's directories change. */
  let last:
    | { readonly leavesOpen: boolean; readonly hidden: HiddenFiles | undefined; readonly made: Confinement }
    | undefined;
  const withLayer: PreparedSandbox['withLayer'] = async (layer, leavesOpen = false) => {
    const hidden = finder?.lookOnLayers(layer.lower);
    const all = leavesOpen ? planned : beside;
    const made =
      last?.leavesOpen === leavesOpen && isDeepStrictEqual(last.hidden, hidden)
        ? await last.made.onLayer(layer, { ...all.how, beside: prepared.confinement })
        : await prepareBeside({
            ...all,
            grant: { ...all.grant, hidden: hidden && hiddenIn(resolved, hidden), layer, leavesOpen },
          });
    last = { leavesOpen, hidden, made };
    const plan = withPublished(made.plan, resolved.policy);
    const network = await brokerFor(addon, made, lookup);
    const settle: Settler = leavesOpen
      ? (effects) => prepared.settle(effectsOutside(effects, plan.workspace))
      : () => [];
    return { ...prepared, confinement: made, plan, network, hidden: undefined, settle, ...variants };
  };
  /** The plan of such a sandbox says what becomes of changes. */
  const alike = async (
    all: Planned,
    how: Pick<Grant, 'onlyReads' | 'looksAtReads'>,
    settle: Settler,
  ): Promise<PreparedSandbox> => {
    const one: Planned = { ...all, grant: { ...all.grant, ...how } };
    const confinement = await prepareBeside(one);
    const network = await brokerFor(addon, confinement, lookup);
    const plan = withPublished(confinement.plan, resolved.policy);
    const own = { ...prepared, confinement, plan, network, settle, ...variants };
    return Object.assign(own, { hidden: hiddenNow(one, own, lookup) });
  };
  const variants: Variants = {
    withLayer,
    forReading: () => alike(beside, { onlyReads: true }, () => []),
    forLooking: () => alike(planned, { looksAtReads: true }, prepared.settle),
  };
  return variants;
}

/**
 * The effects of a layered command outside of the workspace. Effects inside are dropped: other processes caused them, and the
 * command's own are settled when its layer is applied.
 */
function effectsOutside(
  { leftBehind, copies, makings, changedDirectories: _, ...others }: NativeEffects,
  workspace: string,
): NativeEffects {
  const outside = <T extends { readonly path: string }>(all: readonly T[]) =>
    all.filter(({ path }) => !isBeneath(path, workspace));
  return {
    ...others,
    ...(leftBehind && {
      leftBehind: {
        ...leftBehind,
        entries: outside(leftBehind.entries),
        unreadable: leftBehind.unreadable.filter((path) => !isBeneath(path, workspace)),
      },
    }),
    ...(copies && { copies: copies.filter(({ source }) => !isBeneath(source, workspace)) }),
    ...(makings && { makings: outside(makings) }),
  };
}

/** @throws {SandboxError} `publish.unavailable`, `publish.refused`. */
async function publishedOf(
  addon: NativeAddon,
  { policy, entries }: ResolvedPolicy,
  plan: LaunchPlan,
): Promise<PublishedPorts | undefined> {
  const { publish } = policy.network;
  if (publish.length === 0) return undefined;
  const { PublishedPorts, wishedPorts } = await import('../listed-network.ts');
  return new PublishedPorts(addon, wishedPorts(publish, entries), plan);
}

/** What answers for the commands is loaded where the network is listed only. */
async function brokerFor(
  addon: NativeAddon,
  { native, plan }: Confinement,
  lookup: NameLookup | undefined,
): Promise<NetworkBroker | undefined> {
  if (plan.networkRules === undefined) return undefined;
  const { createBroker } = await import('../listed-network.ts');
  return createBroker(addon, native, plan.networkRules, lookup);
}

/**
 * The plan of a run: as `planOnly`, and the kernel objects are made and given up again, so that what the host turns out to
 * refuse is known. It takes as long as making a sandbox.
 */
export async function planTried(resolved: ResolvedPolicy): Promise<LaunchPlan> {
  const cache = openCacheFor(resolved);
  try {
    const planned = await planResolved(resolved, cache?.place);
    const { grant, demands } = planned;
    const how = preparationOf(planned, false);
    const confinement = enforceable(await confinerOf(planned).prepare(grant, demands, how));
    confinement.close();
    return withPublished(confinement.plan, resolved.policy);
  } finally {
    cache?.close();
  }
}

/** Gives up what `prepareSandbox` made for commands. */
export function closePrepared({ addon, confinement, cache, findings }: PreparedSandbox): void {
  confinement.close();
  if (findings !== undefined) addon.closeIndex(findings.index);
  cache?.close();
}

/** A sandbox whose commands share a machine with those of another one. It may be closed by now. */
export type Beside = Pick<PreparedSandbox, 'confinement'>;

/** What was planned, and what its confinements are prepared with. */
type Planned = PlannedSandbox & { readonly how: Preparation };

/** `isOfSession`: the commands belong to one session of an agent, so they share a temporary directory too. */
function preparationOf({ findings, resolved }: PlannedSandbox, isOfSession: boolean): Preparation {
  return {
    isOfSession,
    guests: { index: findings?.index },
    makeHidden,
    // A thread of the addon prepares; meanwhile this one loads what judges, which takes about as long.
    meanwhile: () => {
      if (!resolved.policy.unsafe.unjudgedCommands) void import('../../gate/decide/judge.ts');
    },
  };
}

/** Nothing is made for commands that have none, as the plan says. */
function openCacheFor({ policy, workspace, home: hostHome }: ResolvedPolicy): OpenCache | undefined {
  const { cache, home, workspaceAccess } = policy.filesystem;
  if (cache !== 'workspace' || home !== 'private' || workspaceAccess !== 'write') return undefined;
  const opened = openCache(loadAddon(), workspace);
  // With the network off the user's own is shown, as long as npm has nothing of this workspace.
  if ('directory' in opened.place && (policy.network.mode !== 'off' || hasNpmCache(opened.place.directory)))
    seedNpmCache(opened.place.directory, workspace, hostHome);
  return opened;
}

/**
 * Makes the directories that are to be hidden: otherwise a command that may write around them could make them, with
 * approvals of its own. What cannot be made where commands only read need not be hidden.
 */
function makeHidden(plan: LaunchPlan): readonly string[] {
  return plan.hiddenPaths.filter((path) => {
    try {
      makeDirectories(path);
      return false;
    } catch (error) {
      const around = writableRoots(plan).find((root) => isBeneath(path, root));
      if (around === undefined) return true;
      throw new SandboxError(
        'state.unusable',
        `${path} cannot be made, and commands that can write ${around} could make it instead; make it or set XDG_STATE_HOME and XDG_CONFIG_HOME`,
        { cause: error },
      );
    }
  });
}

/** Where commands can write that are not private to one of them. */
export function writableRoots(plan: LaunchPlan): readonly string[] {
  return plan.paths.filter(({ access }) => access === 'write').map(({ path }) => path);
}
