import type { Demands, FullGrant } from '../../confine/plan/grant.ts';
import type { Policy } from '../../model/index.ts';

/** The part of a grant that follows from the policy alone, without findings in the workspace. */
export function grantOf(
  { filesystem, network, limits, sandbox }: Policy,
  workspace: string,
): Pick<
  FullGrant,
  | 'workspaceAccess'
  | 'paths'
  | 'readOnlyInside'
  | 'masked'
  | 'home'
  | 'tmp'
  | 'noCache'
  | 'network'
  | 'limits'
  | 'explain'
> {
  return {
    workspaceAccess: filesystem.workspaceAccess,
    paths: filesystem.rules,
    readOnlyInside: filesystem.protect.map((relative) => `${workspace}/${relative}`),
    masked: filesystem.masked,
    home: filesystem.home,
    tmp: filesystem.tmp,
    noCache: filesystem.cache === 'private' ? 'filesystem.cache = "private"' : undefined,
    network,
    limits,
    explain: sandbox.explain,
  };
}

/** The demands of a policy: required controls, and the backend. */
export const demandsOf = ({ demand, sandbox }: Policy): Demands => ({
  controls: demand,
  backend: sandbox.backend,
  minimum: sandbox.minimum,
  accepted: sandbox.accepted,
  always: sandbox.demandedByFiles,
});
