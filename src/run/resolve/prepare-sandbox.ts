import { isDeepStrictEqual } from 'node:util';
import type { Backend } from '../../backends/backend.ts';
import { withoutRefusedFacility } from '../../backends/refused-facility.ts';
import { SandboxError } from '../../errors/sandbox-error.ts';
import { identityOf } from '../../host/identity.ts';
import { makeDirectories } from '../../host/user-directories.ts';
import type { Settler } from '../../left-behind/settle.ts';
import type { NameLookup } from '../../model/gate-ports.ts';
import type { HostFeatures } from '../../model/host-features.ts';
import type { LaunchPlan, PlannedLayer } from '../../model/launch-plan.ts';
import type { SandboxOptions } from '../../model/options.ts';
import type { Policy } from '../../model/policy.ts';
import type {
  NativeAddon,
  NativeConfinement,
  NativeConfinementSpec,
  NativeFailure,
} from '../../native/contract.ts';
import { loadAddon } from '../../native/load.ts';
import type { HiddenFiles } from '../../plan/mechanisms.ts';
import { isBeneath } from '../../util/absolute-path.ts';
import type { Looked } from '../hidden-files.ts';
import { describeFailure } from '../launch/failure.ts';
import type { NetworkBroker } from '../network/broker.ts';
import type { WouldDeny } from '../output/shadow.ts';
import { goDownLadder, isOfTheRung, type Rung, type RungOutcome } from './ladder.ts';
import { type PlannedSandbox, planResolved } from './plan-sandbox.ts';
import { type ResolvedPolicy, resolvePolicy } from './resolve-policy.ts';
import { hasNpmCache, seedNpmCache } from './seed-npm-cache.ts';
import { tryCommand } from './try-command.ts';
import { type OpenCache, openCache } from './workspace-cache.ts';
import { closeHooksGap, prepareSettler, type WorkspaceFindings } from './workspace-findings.ts';

/** Everything that the commands of one sandbox share. */
export interface PreparedSandbox {
  readonly addon: NativeAddon;
  readonly backend: Backend;
  /** Of the next command: see `keepHidden`. */
  readonly confinement: NativeConfinement;
  readonly policy: Policy;
  /** As `confinement`. */
  readonly plan: LaunchPlan;
  readonly features: HostFeatures;
  readonly resolved: ResolvedPolicy;
  /** Of the workspace; `undefined`: commands have none but their own. */
  readonly cache: OpenCache | undefined;
  readonly findings: WorkspaceFindings | undefined;
  /** Looks at what a command left behind; to be called with what the addon says of its end. */
  readonly settle: Settler;
  /** Where the network is listed. */
  readonly network: NetworkBroker | undefined;
  /** Where the policy hides files. */
  readonly hidden: HiddenNow | undefined;
  /** Tells what another policy would deny. */
  readonly shadow: WouldDeny | undefined;
  /**
   * The same for one command whose changes of the workspace go to a layer. Its confinement is to be closed. Nothing is
   * settled: what the command leaves comes into the workspace when it is applied.
   * @throws {SandboxError} `changes.unavailable`.
   */
  readonly withLayer: (layer: PlannedLayer) => Promise<PreparedSandbox>;
  /**
   * The same for commands that only read: they cannot write the workspace. Its confinement is to be closed when no other
   * command is to come.
   */
  readonly forReading: () => Promise<PreparedSandbox>;
  /** The same for a command of which it is told, too, what it was denied to read. Its confinement is to be closed as well. */
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
 * `asIf` is internal, for tests: it makes of the host one that offers less.
 * @throws {SandboxError} for everything that is wrong with options, policy or workspace; `backend.unavailable`; `enforcement.unavailable`; `confinement.failed`.
 */
export async function prepareSandbox(
  options: SandboxOptions,
  asIf: (host: HostFeatures) => HostFeatures = (host) => host,
): Promise<PreparedSandbox> {
  return prepareOf(await resolvePolicy(options), options, { asIf });
}

/**
 * The same of options that are resolved. `beside`: its commands share their machine with those of that one. `isOfSession`:
 * all of them belong to one session of an agent, so that they share a temporary directory, too.
 */
export async function prepareOf(
  resolved: ResolvedPolicy,
  options: SandboxOptions,
  {
    asIf = (host) => host,
    beside,
    isOfSession = options.session !== undefined,
  }: {
    readonly asIf?: (host: HostFeatures) => HostFeatures;
    readonly beside?: Beside | undefined;
    readonly isOfSession?: boolean;
  } = {},
): Promise<PreparedSandbox> {
  const cache = openCacheFor(resolved);
  try {
    return await prepareResolved(resolved, cache, { asIf, beside, isOfSession }, options.gate?.lookup);
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
    beside,
    isOfSession,
  }: {
    asIf: (host: HostFeatures) => HostFeatures;
    beside: Beside | undefined;
    isOfSession: boolean;
  },
  lookup: NameLookup | undefined,
): Promise<PreparedSandbox> {
  const planned: PlannedRungs = { ...(await planResolved(resolved, cache?.place)), isOfSession };
  const { addon, findings } = planned;
  const { policy } = resolved;
  for (const root of findings?.roots ?? []) closeHooksGap(root);
  const { tried, ...rung } = await goDownLadder(policy, asIf(planned.features), async (next) => {
    const outcome = await prepareRung(planned, next, beside);
    return 'result' in outcome ? { result: { ...outcome.result, tried: next } } : outcome;
  });
  try {
    const settle = prepareSettler(addon, rung.plan, findings);
    const network = await brokerFor(addon, rung, lookup);
    if (planned.shadow !== undefined) requireLooking(rung.plan);
    const shadow =
      planned.shadow &&
      (await import('../output/shadow.ts')).shadowOf(planned.shadow, policy.filesystem.secret);
    const own = { ...rung, addon, policy, resolved, cache, findings, settle, network, shadow };
    // What is made later changes it.
    const prepared = { ...own, hidden: undefined };
    const hidden = hiddenNow(planned, tried, prepared, lookup);
    return Object.assign(prepared, { hidden, ...variantsOf(planned, tried, prepared, lookup) });
  } catch (error) {
    addon.closeConfinement(rung.confinement);
    throw error;
  }
}

/** @throws {SandboxError} `enforcement.unavailable`: what commands do cannot be seen here. */
export function requireLooking({ observed, report }: LaunchPlan): void {
  if (observed !== 'nothing') return;
  const why = report.controls.find(({ id }) => id === 'denials')?.reason ?? '';
  throw new SandboxError('enforcement.unavailable', why);
}

/**
 * Between two commands files may come that are to be hidden, from outside or by a command: the next one gets a confinement that
 * hides them. Those that run keep theirs.
 */
function hiddenNow(
  planned: PlannedRungs,
  rung: Rung,
  prepared: Pick<PreparedSandbox, 'features'> & {
    confinement: NativeConfinement;
    plan: LaunchPlan;
    network: NetworkBroker | undefined;
  },
  lookup: NameLookup | undefined,
): HiddenNow | undefined {
  const { finder, addon } = planned;
  if (finder === undefined) return undefined;
  let current = planned.hidden;
  let renewing: Promise<void> | undefined;
  const renew = async (looked: Looked): Promise<void> => {
    const planFor: PlannedSandbox['planFor'] = (one, impossible) =>
      planned.planFor(one, impossible, looked.files);
    // What an earlier command left running is still reached by the next one.
    const made = await prepareRung(
      { ...planned, planFor },
      { ...rung, features: prepared.features },
      prepared,
    );
    if ('refused' in made) throw made.refused;
    const network = await brokerFor(addon, made.result, lookup);
    addon.closeConfinement(prepared.confinement);
    Object.assign(prepared, { confinement: made.result.confinement, plan: made.result.plan, network });
    current = looked;
  };
  const keepHidden = (): Promise<void> | undefined => {
    // What came while another one was made is looked for once it is there.
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

/** The same sandbox, of which commands do not change the workspace at once, or are looked at more closely. */
function variantsOf(
  planned: PlannedRungs,
  rung: Rung,
  prepared: Omit<PreparedSandbox, keyof Variants>,
  lookup: NameLookup | undefined,
): Variants {
  const { addon, finder } = planned;
  // Nothing comes into the workspace, so nothing is looked for there.
  const beside = { ...planned, findings: undefined };
  const prepareBeside = async (variant: PlannedRungs): Promise<PreparedRung> => {
    const outcome = await prepareRung(variant, { ...rung, features: prepared.features }, prepared);
    if ('refused' in outcome) throw outcome.refused;
    return outcome.result;
  };
  const prepareWith = (layer: PlannedLayer, hidden: HiddenFiles | undefined) => {
    const planFor: PlannedSandbox['planFor'] = (one, impossible) =>
      planned.planFor(one, impossible, hidden, layer);
    return prepareBeside({ ...beside, planFor });
  };
  /** They differ in the directories of the layer only, as long as the same is hidden. */
  let last: { readonly hidden: HiddenFiles | undefined; readonly made: PreparedRung } | undefined;
  const prepareLike = async ({ plan, spec, ...same }: PreparedRung, layer: PlannedLayer) => {
    const machineOf = prepared.confinement;
    const confinement = addon.createConfinement({ ...onLayer(spec, layer), machineOf });
    const failure = await prepareConfinement(addon, confinement);
    if (failure === undefined)
      return { ...same, confinement, spec, plan: { ...onLayer(plan, layer), layer } };
    addon.closeConfinement(confinement);
    throw confinementFailed(failure);
  };
  const withLayer: PreparedSandbox['withLayer'] = async (layer) => {
    const hidden = finder?.lookOnLayers(layer.lower);
    const made =
      last !== undefined && isDeepStrictEqual(last.hidden, hidden)
        ? await prepareLike(last.made, layer)
        : await prepareWith(layer, hidden);
    last = { hidden, made };
    const network = await brokerFor(addon, made, lookup);
    return { ...prepared, ...made, network, hidden: undefined, settle: () => [], ...variants };
  };
  /** The plan of such a sandbox says what becomes of changes. */
  const alike = async (
    all: PlannedRungs,
    changes: 'none' | 'looked-at',
    settle: Settler,
  ): Promise<PreparedSandbox> => {
    const planFor: PlannedSandbox['planFor'] = (one, impossible, hidden) =>
      planned.planFor(one, impossible, hidden, changes);
    const one = { ...all, planFor };
    const made = await prepareBeside(one);
    const network = await brokerFor(addon, made, lookup);
    const own = { ...prepared, ...made, network, settle, ...variants };
    return Object.assign(own, { hidden: hiddenNow(one, rung, own, lookup) });
  };
  const variants: Variants = {
    withLayer,
    forReading: () => alike(beside, 'none', () => []),
    forLooking: () => alike(planned, 'looked-at', prepared.settle),
  };
  return variants;
}

/** The same with another layer. */
function onLayer<
  Step extends { readonly kind: string },
  Of extends { namespaces?: { view: readonly Step[] } | undefined },
>(made: Of, layer: PlannedLayer): Of {
  const { namespaces } = made;
  if (namespaces === undefined) return made;
  const view = namespaces.view.map((step) => (step.kind === 'layer' ? { ...step, layer } : step));
  return { ...made, namespaces: { ...namespaces, view } };
}

/** What answers for the commands is loaded where the network is listed only. */
async function brokerFor(
  addon: NativeAddon,
  { confinement, plan }: PreparedRung,
  lookup: NameLookup | undefined,
): Promise<NetworkBroker | undefined> {
  if (plan.networkRules === undefined) return undefined;
  const { createBroker } = await import('../listed-network.ts');
  return createBroker(addon, confinement, plan.networkRules, lookup);
}

/**
 * The plan of a run: as `planOnly`, and the kernel objects are made and given up again, so that what the host turns out to
 * refuse is known. It takes as long as making a sandbox.
 */
export async function planTried(resolved: ResolvedPolicy): Promise<LaunchPlan> {
  const cache = openCacheFor(resolved);
  try {
    const planned = await planResolved(resolved, cache?.place);
    const { addon, features } = planned;
    const { confinement, plan } = await goDownLadder(resolved.policy, features, (rung) =>
      prepareRung({ ...planned, isOfSession: false }, rung),
    );
    addon.closeConfinement(confinement);
    return plan;
  } finally {
    cache?.close();
  }
}

/** Gives up what `prepareSandbox` made for commands. */
export function closePrepared({ addon, confinement, cache, findings }: PreparedSandbox): void {
  addon.closeConfinement(confinement);
  if (findings !== undefined) addon.closeIndex(findings.index);
  cache?.close();
}

type PreparedRung = Pick<PreparedSandbox, 'backend' | 'confinement' | 'plan' | 'features'> & {
  /** What the confinement was made of. */
  readonly spec: NativeConfinementSpec;
};

/** What is made of each backend that is tried. */
type PlannedRungs = PlannedSandbox & {
  /** Its commands belong to one session of an agent: they share a temporary directory, too. */
  readonly isOfSession: boolean;
};

/** A sandbox whose commands share a machine with those of another one. It may be closed by now. */
export type Beside = Pick<PreparedSandbox, 'confinement' | 'plan'>;

/** Whether both want the same namespaces: where the host came to refuse one of them, each has its own. */
function sharesWith({ namespaces: one }: LaunchPlan, { namespaces: other }: LaunchPlan): boolean {
  return one?.user === other?.user && one?.network === other?.network && one?.ipc === other?.ipc;
}

async function prepareRung(
  { addon, planFor, findings, resolved, isOfSession }: PlannedRungs,
  { backend, passedOver, ...known }: Rung,
  beside?: Beside,
): Promise<RungOutcome<PreparedRung>> {
  const loadsJudge = !resolved.policy.unsafe.unjudgedCommands;
  let { features } = known;
  for (;;) {
    const probed = await backend.probe(features, tryCommand);
    if (!probed.usable) return { refused: new SandboxError('backend.unavailable', probed.reason), features };
    const rung: Rung = { backend, features: probed.features, passedOver };
    let plan: LaunchPlan;
    let spec: NativeConfinementSpec;
    try {
      plan = withHiddenMade(planFor(rung), (impossible) => planFor(rung, impossible));
      const made = await backend.confinement(plan, probed.features, tryCommand);
      // A set-uid program mounts the directories of each command itself.
      spec = { ...made, sharesDirectories: isOfSession && made.setUidLauncher === undefined };
    } catch (error) {
      if (isOfTheRung(error)) return { refused: error, features };
      throw error;
    }
    const machineOf = beside !== undefined && sharesWith(plan, beside.plan) ? beside.confinement : undefined;
    const confinement = addon.createConfinement({ ...spec, index: findings?.index, machineOf });
    const preparing = prepareConfinement(addon, confinement);
    // A thread of the addon prepares; meanwhile this one loads what judges, which takes about as long.
    if (loadsJudge) void import('../../decide/judge.ts');
    const failure = await preparing;
    if (failure === undefined)
      return { result: { backend, confinement, plan, features: probed.features, spec } };
    addon.closeConfinement(confinement);
    const less = withoutRefusedFacility(probed.features, failure);
    if (less === undefined) throw confinementFailed(failure);
    features = less;
  }
}

const prepareConfinement = (
  addon: NativeAddon,
  confinement: NativeConfinement,
): Promise<NativeFailure | undefined> => new Promise((done) => addon.prepare(confinement, done));

function confinementFailed(failure: NativeFailure): SandboxError {
  const { code, message } = describeFailure(failure);
  return new SandboxError(code === 'launch.failed' ? 'confinement.failed' : code, message);
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
function withHiddenMade(
  plan: LaunchPlan,
  planWithout: (impossible: readonly string[]) => LaunchPlan,
): LaunchPlan {
  const impossible = plan.hiddenPaths.filter((path) => {
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
  return impossible.length === 0 ? plan : planWithout(impossible);
}

/** Where commands can write that are not private to one of them. */
export function writableRoots(plan: LaunchPlan): readonly string[] {
  return plan.paths.filter(({ access }) => access === 'write').map(({ path }) => path);
}
