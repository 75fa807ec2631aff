import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { readOr } from '../../base/errors/shortage.ts';
import { orElse } from '../../base/or-else.ts';
import type { ControlId } from '../../confine/plan/enforcement-report.ts';
import type { LaunchPlan, PathAccess } from '../../confine/plan/launch-plan.ts';
import type { NetworkRules } from '../../confine/plan/network-rules.ts';
import type { RulesOfCommands } from '../../judge/index.ts';
import type { Policy } from '../../model/index.ts';
import { CACHE_PLACES, SYSTEM_SECRETS } from '../../policy/index.ts';
import { actsForUser, createPathLookup, mountPointsWithin } from '../../workspace/index.ts';
import { layersRefused, stateDirectory } from '../state.ts';
import type { ResolvedPolicy } from './resolve-policy.ts';

/** Home and temporary directory of a command whose own ones have names only at the launch. */
const PRIVATE_HOME = '/home/sandbox';
const PRIVATE_TMP = '/tmp';
const SECRETS_OF_SYSTEM = [...SYSTEM_SECRETS.keys()].map((name) => `/etc/${name}`);

/**
 * What the checks have to know of policy and plan, in canonical paths. Without a plan, because this host cannot enforce
 * the policy, nothing is taken to be enforced.
 */
export function commandRules(resolved: ResolvedPolicy, plan: LaunchPlan | undefined): RulesOfCommands {
  const { policy, workspace, home, temporaryParent } = resolved;
  const lookup = createPathLookup();
  const granted =
    plan?.paths ??
    policy.filesystem.rules.map(({ path, access }) => ({ path: lookup.resolve(path).canonical, access }));
  const of = (...wanted: readonly PathAccess[]) =>
    granted.filter(({ access }) => wanted.includes(access)).map(({ path }) => path);
  const reachable = whatIsReachable(policy, resolved.networkRules);
  const isListed = leadsOut(policy, resolved.networkRules);
  const isShut = reachable === undefined && isEnforced(plan, 'network');
  const writableWorkspace = policy.filesystem.workspaceAccess === 'write';
  // Without a plan, or a view, they have names only at the launch.
  const own = plan?.namespaces === undefined ? { home: PRIVATE_HOME, tmp: PRIVATE_TMP } : plan;
  const { tmp } = own;
  const homeShown = plan?.home === home ? plan.homes[0] : undefined;
  const privateHome = homeShown === undefined ? own.home : PRIVATE_HOME;
  const ownHome = policy.filesystem.home === 'private' ? privateHome : home;
  const elsewhere = of('write').filter((path) => ![workspace, temporaryParent, tmp].includes(path));
  const previews = plan?.namespaces !== undefined && layersRefused() === undefined;
  return {
    workspace,
    writable: [
      ...of('write', 'device').filter((path) => path !== workspace),
      // Private, so whatever lies at the same place outside is not meant.
      ...(policy.filesystem.tmp === 'host' ? [temporaryParent] : [tmp, '/dev/shm']),
      ownHome,
    ],
    hidden: [
      ...(policy.filesystem.tmp === 'host' || tmp !== PRIVATE_TMP ? [] : surroundings(workspace)),
      ...SECRETS_OF_SYSTEM,
    ],
    shown: SECRETS_OF_SYSTEM.filter(
      (path) =>
        of('read').some((root) => isBeneath(path, root)) &&
        !plan?.emptied.some((one) => isBeneath(path, one)),
    ),
    // Of `/` the plan has what lies in it.
    readable: [
      ...of('read', 'data'),
      ...resolved.named.filesystem.rules.flatMap(({ path }) => (path === '/' ? [path] : [])),
    ],
    protected: writableWorkspace
      ? (plan?.protectedPaths ??
        policy.filesystem.protect.map((path) => lookup.resolve(`${workspace}/${path}`).canonical))
      : [workspace],
    // Who runs commands without us gives them the user's own.
    home: plan === undefined ? home : ownHome,
    homeShown,
    privatePlaces: homeShown === undefined ? [] : CACHE_PLACES.map(({ path }) => path),
    userHome: home,
    allow: policy.commands.allow,
    permitDangerous: policy.commands.permitDangerous,
    own: policy.commands.rules,
    maxActionsPerHour: policy.security.maxActionsPerHour,
    reviewerTimeoutMs: policy.approval.reviewerTimeoutMs,
    held: {
      files: isEnforced(plan, 'filesystem'),
      network: isShut && !isListed,
      listedNetwork: isShut && isListed,
      signals: isEnforced(plan, 'signals'),
    },
    opened: plan && (reachable ?? whatIsWritable(plan, home)),
    asksServers: asksServers(policy),
    granted: elsewhere,
    gitOutside: gitOutside(resolved, elsewhere),
    environment: plan && [
      ...policy.environment.pass,
      ...Object.keys(policy.environment.set),
      'HOME',
      'TMPDIR',
    ],
    previews,
    undoes: previews && canTakeBack(policy.workspace.undo, workspace, elsewhere),
    onlyChecks: plan?.report.backend === 'application',
  };
}

function isEnforced(plan: LaunchPlan | undefined, wanted: ControlId): boolean {
  return plan?.report.controls.find(({ id }) => id === wanted)?.state === 'enforced';
}

/**
 * Whether a layer brings back whatever a command takes away in the workspace. A command that runs on one only because it may
 * lose work does what it does without: no path that it may write is shut, and nothing in the workspace is missing.
 */
function canTakeBack(
  undo: Policy['workspace']['undo'],
  workspace: string,
  elsewhere: readonly string[],
): boolean {
  if (undo === 'never' || !isOnStateDevice(workspace)) return false;
  // A layer is a mount: if a parent directory is granted too, renames between it and the workspace would fail (EXDEV).
  const isWithin = elsewhere.some((path) => isBeneath(workspace, path));
  return undo === 'always' || (!isWithin && !holdsMounts(workspace));
}

/** Where git keeps what it writes, if that lies outside of the workspace and its index can be put back. */
const gitOutside = ({ repository }: ResolvedPolicy, elsewhere: readonly string[]): string | undefined =>
  repository?.index !== undefined &&
  repository.directory !== undefined &&
  elsewhere.includes(repository.directory)
    ? repository.directory
    : undefined;

/** What is mounted there shows empty on a layer. */
const holdsMounts = (workspace: string): boolean =>
  orElse(() => mountPointsWithin(Buffer.from(workspace).toString('latin1')).length > 0, true);

/** Whatever is taken away or replaced can be kept as it is, and need not be copied. What cannot be looked at is not known to. */
function isOnStateDevice(workspace: string): boolean {
  return orElse(() => sharesDevice(workspace, stateDirectory()), false);
}

function sharesDevice(workspace: string, directory: string): boolean {
  const device = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.dev;
  for (let at = directory; ; at = dirname(at)) {
    const found = device(at);
    if (found !== undefined) return found === device(workspace);
  }
}

/** A home holds what its user's programs obey: who writes there has their code run outside. */
function whatIsWritable({ paths }: LaunchPlan, home: string): string | undefined {
  const canWriteHome = paths.some(({ path, access }) => access === 'write' && isBeneath(home, path));
  return canWriteHome ? 'the home of the user can be written' : undefined;
}

/** Whether something outside is listed, or can be once somebody is asked. */
const leadsOut = ({ network }: Policy, listed: NetworkRules | undefined): boolean =>
  network.mode === 'listed' &&
  (network.unlisted === 'ask' ||
    listed === undefined ||
    [listed.addresses, listed.names, listed.sockets ?? []].some(({ length }) => length > 0));

/**
 * What of a policy leads out of the sandbox further than it was granted. A socket among the paths that commands may write is a
 * way to its server.
 */
function whatIsReachable(
  { network, filesystem }: Policy,
  listed: NetworkRules | undefined,
): string | undefined {
  if (network.mode === 'open') return 'the network is open';
  if (network.unixSockets === 'allowed') return 'sockets of the host can be reached';
  const acting = listed?.sockets?.find(({ asks }) => asks !== false);
  if (acting !== undefined) return `the socket ${acting.rule} was granted`;
  const socket = filesystem.rules.find(
    ({ path, access }) => access === 'write' && isSocket(path) && actsForUser(path),
  );
  return socket && `the socket ${socket.path} was granted`;
}

/** Whether a server of the host can be asked to read: by a socket that the policy leaves reachable. */
function asksServers({ network, filesystem }: Policy): boolean {
  return (
    network.unixSockets === 'allowed' ||
    (network.mode === 'listed' && network.unix.length > 0) ||
    filesystem.rules.some(({ path, access }) => access === 'write' && isSocket(path))
  );
}

function isSocket(path: string): boolean {
  // A process that cannot look at it cannot connect to it.
  return readOr(() => statSync(path, { throwIfNoEntry: false })?.isSocket() ?? false, false);
}

/** The entry of /tmp that a workspace lies in. */
function surroundings(workspace: string): readonly string[] {
  const [, top] = isBeneath(workspace, PRIVATE_TMP) ? workspace.slice(PRIVATE_TMP.length).split('/') : [];
  return top === undefined ? [] : [`${PRIVATE_TMP}/${top}`];
}
