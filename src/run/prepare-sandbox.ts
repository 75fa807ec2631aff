import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { resolve } from 'node:path';
import { confinementSpec } from '../backends/landlock/confinement-spec.ts';
import { SandboxError } from '../errors/sandbox-error.ts';
import { gitIdentity } from '../host/git-identity.ts';
import { nestedGitSettings } from '../host/nested-git-settings.ts';
import { probeHost, withoutNamespaces } from '../host/probe.ts';
import { createPathLookup } from '../host/resolve-path.ts';
import type { HostFeatures } from '../model/host-features.ts';
import type { LaunchPlan } from '../model/launch-plan.ts';
import type { PathRule, Policy } from '../model/policy.ts';
import type { NativeAddon, NativeConfinement, NativeFailure } from '../native/contract.ts';
import { loadAddon } from '../native/load.ts';
import { makePlan } from '../plan/plan.ts';
import { effectivePolicy } from '../policy/effective.ts';
import { OFFLINE_ENVIRONMENT, PACKAGE_CACHES } from '../policy/profiles/package-caches.ts';
import { TOOL_CHAINS } from '../policy/profiles/tool-chains.ts';
import type { PolicyFile } from '../policy/schema.ts';
import { isBeneath } from '../util/absolute-path.ts';
import { describeFailure, namespaceRefusal } from './failure.ts';
import { closeHooksGap } from './protected-paths.ts';
import type { SandboxOptions } from './sandbox-options.ts';

/** Everything that the commands of one sandbox share. */
export interface PreparedSandbox {
  readonly addon: NativeAddon;
  readonly confinement: NativeConfinement;
  readonly policy: Policy;
  readonly plan: LaunchPlan;
  readonly features: HostFeatures;
}

/** Policy, host and plan, without touching the kernel. */
export interface PlannedSandbox {
  readonly addon: NativeAddon;
  readonly policy: Policy;
  /** Canonical. */
  readonly workspace: string;
  readonly features: HostFeatures;
  /** The plan for a host with these features. */
  readonly planFor: (features: HostFeatures) => LaunchPlan;
}

/**
 * Resolves options into a policy and a way to plan it.
 * @throws {SandboxError} for everything that is wrong with options, policy or workspace.
 */
export async function planSandbox(options: SandboxOptions): Promise<PlannedSandbox> {
  const home = homedir();
  const temporaryParent = realDirectory(tmpdir(), 'the temporary directory');
  const workspaceAsNamed = resolve(options.workspace ?? process.cwd());
  const workspace = realDirectory(workspaceAsNamed, 'the workspace');
  refuseUnsafeWorkspace(workspace, home, temporaryParent);

  const toolChains = installedToolChains(home);
  const named = effectivePolicy(
    {
      profile: options.profile,
      file: typeof options.policy === 'string' ? await loadFile(options.policy) : options.policy,
      readable: options.readable ?? [],
      writable: options.writable ?? [],
      passEnvironment: options.passEnv ?? [],
      setEnvironment: options.env ?? {},
      timeoutMs: options.timeout,
      outputBytes: options.maxOutput,
    },
    workspace,
    home,
  );
  const caches = named.network.mode === 'off' ? packageCaches(home) : NOTHING;
  const policy: Policy = {
    ...named,
    filesystem: {
      ...named.filesystem,
      protected: [...named.filesystem.protected, ...nestedGitSettings(workspace)],
      rules: [...toolChains.rules, ...caches.rules, ...named.filesystem.rules],
    },
    environment: {
      ...named.environment,
      set: { ...toolChains.env, ...caches.env, ...named.environment.set },
    },
  };
  const addon = loadAddon();
  const features = probeHost(addon);
  const identity = gitIdentity(home, process.env.XDG_CONFIG_HOME);
  const planFor = (wanted: HostFeatures) =>
    makePlan({
      policy,
      features: wanted,
      workspace,
      workspaceAsNamed,
      temporaryParent,
      memoryParent: writableDirectory('/dev/shm'),
      hostHome: home,
      seedFiles: identity === undefined ? [] : [{ path: 'slot:home/.gitconfig', content: identity }],
      lookup: createPathLookup(),
    });
  return { addon, policy, workspace, features, planFor };
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
  const { addon, policy, workspace, features: found, planFor } = await planSandbox(options);
  const features = asIf(found);
  if (policy.filesystem.workspaceAccess === 'write') closeHooksGap(workspace);
  const attempt = async (host: HostFeatures) => {
    const plan = planFor(host);
    const confinement = addon.createConfinement(await confinementSpec(plan, host.architecture));
    const failure = await new Promise<NativeFailure | undefined>((done) => {
      addon.prepare(confinement, done);
    });
    return { prepared: { addon, confinement, policy, plan, features: host }, failure };
  };
  let { prepared, failure } = await attempt(features);
  const refusal = failure === undefined ? undefined : namespaceRefusal(failure);
  if (refusal !== undefined) {
    addon.closeConfinement(prepared.confinement);
    ({ prepared, failure } = await attempt(withoutNamespaces(features, refusal)));
  }
  if (failure === undefined) return prepared;
  addon.closeConfinement(prepared.confinement);
  const { code, message } = describeFailure(failure);
  throw new SandboxError(code === 'launch.failed' ? 'confinement.failed' : code, message);
}

async function loadFile(path: string): Promise<PolicyFile> {
  const { loadPolicyFile } = await import('../policy/load.ts');
  return loadPolicyFile(path);
}

function realDirectory(path: string, what: string): string {
  if (isDirectory(path)) return realpathSync(path);
  throw new SandboxError('workspace.missing', `${what} ${path} is not an existing directory`);
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    return false;
  }
}

function writableDirectory(path: string): string | undefined {
  try {
    accessSync(path, constants.W_OK | constants.X_OK);
    return path;
  } catch {
    return undefined;
  }
}

/** Directories whose content the whole system trusts. */
const SYSTEM_DIRECTORIES = [
  '/usr',
  '/etc',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/proc',
  '/sys',
  '/dev',
  '/boot',
  '/run',
];
/** Directories with everybody's things in them; one level deeper is fine. */
const SHARED_DIRECTORIES = ['/', '/home', '/var', '/var/tmp', '/opt', '/srv', '/mnt', '/media', '/tmp'];

function refuseUnsafeWorkspace(workspace: string, home: string, temporaryParent: string): void {
  const system = SYSTEM_DIRECTORIES.find((directory) => isBeneath(workspace, directory));
  const shared = [...SHARED_DIRECTORIES, temporaryParent].includes(workspace);
  const holdsHome = isBeneath(home, workspace);
  if (system === undefined && !shared && !holdsHome) return;
  const what =
    holdsHome && workspace !== '/' ? 'holds the whole home directory' : 'belongs to the whole system';
  throw new SandboxError(
    'workspace.unsafe',
    `${workspace} ${what} and cannot be the workspace; choose a project directory with --workspace DIR`,
  );
}

/** Rules and variables for what is found on this host. */
interface Found {
  readonly rules: readonly PathRule[];
  readonly env: Readonly<Record<string, string>>;
}

const NOTHING: Found = { rules: [], env: {} };

function installedToolChains(home: string): Found {
  const rules: PathRule[] = [];
  const env: Record<string, string> = {};
  for (const chain of TOOL_CHAINS) {
    const path = resolve(home, chain.path);
    if (!isDirectory(path)) continue;
    rules.push({ path, access: 'read', required: false, reason: chain.reason });
    for (const [name, value] of Object.entries(chain.env ?? {})) env[name] = value.replace('{}', path);
  }
  return { rules, env };
}

function packageCaches(home: string): Found {
  const rules: PathRule[] = [];
  const env: Record<string, string> = { ...OFFLINE_ENVIRONMENT };
  for (const cache of PACKAGE_CACHES) {
    const path = resolve(home, cache.path);
    if (!isDirectory(path)) continue;
    rules.push({ path, access: 'data', required: false, reason: cache.reason });
    for (const [name, value] of Object.entries(cache.env)) env[name] = value.replace('{home}', home);
  }
  return { rules, env };
}
