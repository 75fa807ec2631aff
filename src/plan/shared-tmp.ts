import { SandboxError } from '../errors/sandbox-error.ts';
import type { PlannedPath } from '../model/launch-plan.ts';
import type { Policy } from '../model/policy.ts';
import { isBeneath } from '../util/absolute-path.ts';
import type { TmpOfHost } from './judge-control.ts';
import type { Mechanisms } from './mechanisms.ts';
import { type OwnPathsInput, ownPathsWithin } from './own-paths.ts';

const TMP = '/tmp';

/** What the decision depends on. */
interface TmpInput extends OwnPathsInput {
  readonly policy: Policy;
  /** Canonical: where private directories can be made instead. `undefined`: nowhere. */
  readonly parentBesideTmp?: string | undefined;
}

/**
 * What is done with the host's /tmp where commands cannot have their own; `undefined`: they have, or it is theirs by
 * policy. Without a view commands get /tmp itself, unless something lies in it that Landlock could not take out of it again:
 * what they may only read, what is ours, and the workspace, in whose place they could put another one. Pure.
 */
export function tmpOfHost(
  input: TmpInput,
  used: Mechanisms,
  paths: readonly PlannedPath[],
): TmpOfHost | undefined {
  const { policy, workspace, lookup } = input;
  if (used.backend !== 'landlock' || used.view || policy.filesystem.tmp === 'host') return undefined;
  if (policy.filesystem.tmp === 'private') return { refused: 'by the policy' };
  const { canonical: path, kind } = lookup.resolve(TMP);
  if (kind === 'missing') return { refused: 'there is none' };
  if (input.parentBesideTmp === undefined)
    return { refused: 'private directories have no other place: /var/tmp cannot be used' };
  const inside = paths.find(
    (planned) => isBeneath(planned.path, path) && (planned.access !== 'write' || planned.path === workspace),
  );
  if (inside !== undefined) return { refused: `${inside.path} lies in it` };
  const granted: PlannedPath = {
    path,
    access: 'write',
    required: false,
    reason: 'the temporary files of everybody, as there is no /tmp of the command’s own',
  };
  try {
    ownPathsWithin(input, [...paths, granted], used.shutsInside);
  } catch (error) {
    // Also where it is not for /tmp: then that is said when the plan itself looks.
    if (error instanceof SandboxError) return { refused: 'sandbox-run keeps things of its own in it' };
    throw error;
  }
  return { granted };
}
