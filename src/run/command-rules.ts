import { createPathLookup } from '../host/resolve-path.ts';
import type { LaunchPlan } from '../model/launch-plan.ts';
import type { PathAccess } from '../model/policy.ts';
import type { RulesOfCommands } from '../policy/checks/rules.ts';
import { isBeneath } from '../util/absolute-path.ts';
import type { ResolvedPolicy } from './resolve-policy.ts';

/** Home and temporary directory of a command whose own ones have names only at the launch. */
const PRIVATE_HOME = '/home/sandbox';
const PRIVATE_TMP = '/tmp';

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
  const network = plan?.report.controls.find((control) => control.id === 'network');
  const writableWorkspace = policy.filesystem.workspaceAccess === 'write';
  return {
    workspace,
    writable: [
      ...of('write', 'device').filter((path) => path !== workspace),
      // Private, so whatever lies at the same place outside is not meant.
      ...(policy.filesystem.tmp === 'host' ? [temporaryParent] : [PRIVATE_TMP, '/dev/shm']),
      policy.filesystem.home === 'private' ? PRIVATE_HOME : home,
    ],
    hidden: policy.filesystem.tmp === 'host' ? [] : surroundings(workspace),
    readable: of('read', 'data'),
    protected: writableWorkspace
      ? (plan?.protectedPaths ??
        policy.filesystem.protected.map((path) => lookup.resolve(`${workspace}/${path}`).canonical))
      : [workspace],
    // Who writes `~` means the user's home, which is not there; that of the command is empty and goes with it.
    home,
    allow: policy.commands.allow,
    permitDangerous: policy.commands.permitDangerous,
    own: policy.commands.rules,
    maxActionsPerHour: policy.security.maxActionsPerHour,
    reviewerTimeoutMs: policy.approval.reviewerTimeoutMs,
    networkOff: policy.network.mode === 'off' && network?.state === 'enforced',
    onlyChecks: plan?.report.backend === 'application',
  };
}

/** The entry of /tmp that a workspace lies in. */
function surroundings(workspace: string): readonly string[] {
  const [, top] = isBeneath(workspace, PRIVATE_TMP) ? workspace.slice(PRIVATE_TMP.length).split('/') : [];
  return top === undefined ? [] : [`${PRIVATE_TMP}/${top}`];
}
