import { SandboxError } from '../errors/sandbox-error.ts';
import { budgetOf } from '../gate/principal-budget.ts';
import type { Autonomy } from '../model/decision.ts';
import type { LaunchPlan } from '../model/launch-plan.ts';
import { buildEnvironment } from '../policy/environment.ts';
import { strictestAutonomy } from '../policy/narrow.ts';
import { commandRules } from './command-rules.ts';
import { createJudge, type Judge } from './judge.ts';
import { planResolved } from './prepare-sandbox.ts';
import { createProgramFinder } from './program-finder.ts';
import { type ResolvedPolicy, resolvePolicy } from './resolve-policy.ts';
import type { SandboxOptions } from './sandbox-options.ts';
import { defaultPrincipal, lazyState, stateDirectory } from './state.ts';

/** A judge without a sandbox: decides as a run would and starts nothing. */
export interface Checker {
  readonly judge: Judge;
  /** Canonical. */
  readonly workspace: string;
  /** Why this host could not run anything under the policy; the decisions then count on no enforcement. */
  readonly unenforceable: string | undefined;
}

/**
 * Makes the judge that `createSandbox` would make.
 * @throws {SandboxError} as `resolvePolicy`.
 */
export async function createChecker(options: SandboxOptions): Promise<Checker> {
  const resolved = await resolvePolicy(options);
  const { plan, problem } = planIfPossible(resolved);
  const { policy, workspace, workspaceLayer } = resolved;
  const environment = buildEnvironment(process.env, policy.environment.pass, policy.environment.set);
  const state = lazyState(stateDirectory());
  const budgetStore = async () => (await state()).budget;
  const judge = createJudge({
    policy,
    rules: commandRules(resolved, plan),
    searchPath: environment.variables.PATH ?? '',
    find: createProgramFinder(plan),
    gate: { budget: budgetOf(defaultPrincipal(), budgetStore), ...options.gate },
  });
  const narrowed = (autonomy: Autonomy | undefined) =>
    autonomy && strictestAutonomy(autonomy, workspaceLayer?.file.security?.autonomy);
  return {
    judge: (request) => judge({ ...request, autonomy: narrowed(request.autonomy) }),
    workspace,
    unenforceable: problem,
  };
}

function planIfPossible(resolved: ResolvedPolicy): {
  readonly plan?: LaunchPlan;
  readonly problem?: string;
} {
  try {
    const planned = planResolved(resolved);
    return { plan: planned.planFor(planned.features) };
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    // Of the host, not of the policy: a policy can be tested where it cannot be enforced.
    const ofHost: readonly string[] = [
      'addon.unavailable',
      'enforcement.unavailable',
      'policy.read_only_inside_writable',
    ];
    if (!ofHost.includes(error.code)) throw error;
    return { problem: error.message };
  }
}
