import { accessSync, constants } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { confinementSpec } from '../backends/landlock/confinement-spec.ts';
import { SandboxError } from '../errors/sandbox-error.ts';
import { gitIdentity } from '../host/git-identity.ts';
import { probeHost, withoutNamespaces } from '../host/probe.ts';
import { createPathLookup } from '../host/resolve-path.ts';
import { makeDirectories } from '../host/state-directory.ts';
import type { HostFeatures } from '../model/host-features.ts';
import type { LaunchPlan } from '../model/launch-plan.ts';
import type { Policy } from '../model/policy.ts';
import type { NativeAddon, NativeConfinement, NativeFailure } from '../native/contract.ts';
import { loadAddon } from '../native/load.ts';
import { makePlan, type OwnPath } from '../plan/plan.ts';
import { isBeneath } from '../util/absolute-path.ts';
import { describeFailure, namespaceRefusal } from './failure.ts';
import { createGate, type Gate } from './gate.ts';
import type { Examiner, JudgeParts } from './judge.ts';
import { userPolicyPath } from './policy-layers.ts';
import { closeHooksGap } from './protected-paths.ts';
import { type ResolvedPolicy, resolvePolicy } from './resolve-policy.ts';
import type { SandboxOptions } from './sandbox-options.ts';
import { stateDirectory } from './state.ts';

/** Everything that the commands of one sandbox share. */
export interface PreparedSandbox {
  readonly addon: NativeAddon;
  readonly confinement: NativeConfinement;
  readonly policy: Policy;
  readonly plan: LaunchPlan;
  readonly features: HostFeatures;
  readonly resolved: ResolvedPolicy;
  readonly gate: Gate;
  /** `undefined`: commands are not judged. */
  readonly createExaminer: ((parts: JudgeParts) => Examiner) | undefined;
}

/** Policy, host and plan, without touching the kernel. */
export interface PlannedSandbox {
  readonly addon: NativeAddon;
  readonly policy: Policy;
  /** Canonical. */
  readonly workspace: string;
  readonly resolved: ResolvedPolicy;
  readonly features: HostFeatures;
  /** The plan for a host with these features. */
  readonly planFor: (features: HostFeatures, impossible?: readonly string[]) => LaunchPlan;
}

/**
 * Resolves options into a policy and a way to plan it.
 * @throws {SandboxError} for everything that is wrong with options, policy or workspace.
 */
export async function planSandbox(options: SandboxOptions): Promise<PlannedSandbox> {
  return planResolved(await resolvePolicy(options));
}

/** The rest of `planSandbox`, for a policy that is resolved. */
export function planResolved(resolved: ResolvedPolicy): PlannedSandbox {
  const { policy, workspace, workspaceAsNamed, home, temporaryParent } = resolved;
  const addon = loadAddon();
  const features = probeHost(addon);
  const identity = gitIdentity(home, process.env.XDG_CONFIG_HOME);
  const own = ownPaths(resolved);
  const planFor = (wanted: HostFeatures, impossible: readonly string[] = []) =>
    makePlan({
      policy,
      features: wanted,
      workspace,
      workspaceAsNamed,
      temporaryParent,
      memoryParent: writableDirectory('/dev/shm'),
      hostHome: home,
      seedFiles: identity === undefined ? [] : [{ path: 'slot:home/.gitconfig', content: identity }],
      own,
      impossible,
      lookup: createPathLookup(),
    });
  return { addon, policy, workspace, resolved, features, planFor };
}

/**
 * Plans, makes the kernel objects, and plans again without namespaces where the host turns out to refuse them.
 * `asIf` is internal, for tests: it makes of the host one that offers less.
 * @throws {SandboxError} as `planSandbox`; `enforcement.unavailable`; `confinement.failed`.
 */
export async function prepareSandbox(
  options: SandboxOptions,
  asIf: (host: HostFeatures) => HostFeatures = (host) => host,
): Promise<PreparedSandbox> {
  const { addon, policy, workspace, resolved, features: found, planFor } = await planSandbox(options);
  const features = asIf(found);
  if (policy.filesystem.workspaceAccess === 'write') closeHooksGap(workspace);
  const gate = await createGate({
    policy,
    options,
    workspace,
    writable: () => writableRoots(planFor(features)),
  });
  const attempt = async (host: HostFeatures) => {
    const plan = withHiddenMade(planFor(host), (impossible) => planFor(host, impossible));
    const confinement = addon.createConfinement(await confinementSpec(plan, host.architecture));
    const preparing = new Promise<NativeFailure | undefined>((done) => {
      addon.prepare(confinement, done);
    });
    // A thread of the addon prepares; meanwhile this one loads what judges, which takes about as long.
    const judging = policy.unsafe.unjudgedCommands ? undefined : import('./judge.ts');
    const [failure, judge] = await Promise.all([preparing, judging]);
    return {
      prepared: {
        addon,
        confinement,
        policy,
        plan,
        features: host,
        resolved,
        gate,
        createExaminer: judge?.createExaminer,
      },
      failure,
    };
  };
  let { prepared, failure } = await attempt(features);
  const refusal = failure === undefined ? undefined : namespaceRefusal(failure);
  if (refusal !== undefined) {
    addon.closeConfinement(prepared.confinement);
    ({ prepared, failure } = await attempt(withoutNamespaces(features, refusal)));
  }
  if (failure === undefined) return prepared;
  addon.closeConfinement(prepared.confinement);
  await gate.close();
  const { code, message } = describeFailure(failure);
  throw new SandboxError(code === 'launch.failed' ? 'confinement.failed' : code, message);
}

/** What this program keeps and obeys. The policy of the machine belongs to root. */
function ownPaths({ home, layers }: ResolvedPolicy): readonly OwnPath[] {
  const userPolicy = userPolicyPath(home, process.env.XDG_CONFIG_HOME);
  const files = new Set([userPolicy, ...layers.flatMap(({ path }) => path ?? [])]);
  return [
    { path: stateDirectory(), kind: 'state' },
    { path: dirname(userPolicy), kind: 'settings' },
    ...[...files].map((path) => ({ path: resolve(path), kind: 'policy' as const })),
  ];
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

function writableDirectory(path: string): string | undefined {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return path;
  } catch {
    return undefined;
  }
}
