import { SandboxError } from '../errors/sandbox-error.ts';
import { budgetOf } from '../gate/principal-budget.ts';
import type { ApprovalRequest } from '../model/approval.ts';
import type { Autonomy } from '../model/decision.ts';
import type { LaunchPlan } from '../model/launch-plan.ts';
import type { SandboxOptions } from '../model/options.ts';
import type { Policy } from '../model/policy.ts';
import { NARROWINGS } from '../model/policy-keys.ts';
import { type AskedCommand, approvalRequestMaker, givenVariables } from './approval-request.ts';
import { commandEnvironment } from './command-environment.ts';
import { directoriesOf } from './command-line.ts';
import { commandRules } from './command-rules.ts';
import { createGate, type Gate } from './gate.ts';
import { createExaminer, type Examiner, type Judge } from './judge.ts';
import { planOnly, planResolved, planTried, writableRoots } from './prepare-sandbox.ts';
import { createProgramFinder } from './program-finder.ts';
import { type ResolvedPolicy, resolvePolicy } from './resolve-policy.ts';

import { defaultPrincipal, lazyState, stateDirectory } from './state.ts';

/** A judge without a sandbox: decides as a run would and starts nothing. */
export interface Checker {
  /** Counts on the budget of this process's user. */
  readonly judge: Judge;
  /** The same for another principal, with what a decision was made from. */
  readonly examineFor: (principal: string) => Examiner;
  readonly policy: Policy;
  /** The environment that the policy gives every command. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Canonical. */
  readonly workspace: string;
  /** What a sandbox would be made from here; `undefined`: none could be made, or nothing is to be enforced. */
  readonly plan: LaunchPlan | undefined;
  /** Why this host could not run anything under the policy; the decisions then count on no enforcement. */
  readonly unenforceable: string | undefined;
  /** Writes to the audit trail; `undefined`: nothing is recorded. As that of a gate. */
  readonly record: Gate['record'];
  /** What a run would ask about a command; with the same fingerprint if the plan was tried. */
  readonly approvalRequestOf: (asked: CheckedCommand) => ApprovalRequest;
  /** Gives up what was opened for the decisions. */
  close(): Promise<void>;
}

/** A command that was examined. `once`: see `AskedCommand`. */
export type CheckedCommand = Pick<AskedCommand, 'command' | 'cwd' | 'decision' | 'effects' | 'once'>;

/** What the decisions are for. */
export interface CheckerOptions {
  /** False: somebody else runs the commands, so that nothing counts on the kernel's part of the policy. */
  readonly enforced?: boolean;
  /**
   * True: the kernel's part is tried, so that the plan is that of a run, and with it `approvalRequestOf`, on a host that
   * refuses something as well. False: a plan is made of what is known without trying.
   */
  readonly tried?: boolean;
  /**
   * True: git guard, reviewer and plug-ins of the policy have their say, as in a run. Nothing is recorded. False: only
   * those of `options.gate`.
   */
  readonly guarded?: boolean;
  /** True: `record` writes where the policy wants a trail. */
  readonly recorded?: boolean;
}

/**
 * Makes the judge that `createSandbox` would make.
 * @throws {SandboxError} as `resolvePolicy`; for a plug-in or a reviewer that cannot be used.
 */
export async function createChecker(
  options: SandboxOptions,
  { enforced = true, tried = false, guarded = false, recorded = false }: CheckerOptions = {},
): Promise<Checker> {
  const resolved = await resolvePolicy(options);
  const { plan, problem } = enforced ? await planIfPossible(resolved, tried) : {};
  const { policy, workspace, layers } = resolved;
  const environment = commandEnvironment(policy);
  const state = lazyState(stateDirectory());
  const budgetStore = async () => (await state()).budget;
  const rules = commandRules(resolved, plan);
  const find = createProgramFinder(plan);
  const unrecorded = { ...policy, audit: { ...policy.audit, enabled: false } };
  const unguarded = {
    ...policy,
    reviewer: { ...policy.reviewer, command: undefined, model: undefined },
    hooks: { gitGuard: false, plugins: [] },
  };
  const gate =
    guarded || recorded
      ? await createGate({
          policy: !recorded ? unrecorded : guarded ? policy : unguarded,
          options: { gate: options.gate ?? {} },
          workspace,
          writable: () => (plan === undefined ? [workspace, ...rules.writable] : writableRoots(plan)),
        })
      : undefined;
  const guards = guarded ? gate && guardsOf(gate) : undefined;
  const ofWorkspace = layers.find(({ name }) => name === 'workspace')?.says.security?.autonomy;
  const narrowed = (autonomy: Autonomy | undefined) =>
    autonomy && ofWorkspace ? NARROWINGS.stricterAutonomy(autonomy, ofWorkspace) : autonomy;
  function examineFor(principal: string): Examiner {
    const examine = createExaminer({
      policy,
      rules,
      searchPath: environment.variables.PATH ?? '',
      find,
      gate: { budget: budgetOf(principal, budgetStore), ...options.gate, ...guards },
    });
    return (request) => examine({ ...request, autonomy: narrowed(request.autonomy) });
  }
  const examine = examineFor(defaultPrincipal());
  return {
    judge: (request) => examine(request).decision,
    examineFor,
    policy,
    variables: environment.variables,
    workspace,
    plan,
    unenforceable: problem,
    record: gate?.record,
    approvalRequestOf: (asked) =>
      approvalRequestMaker({
        ...{ policy, plan, given: givenVariables(resolved), principal: defaultPrincipal() },
        session: typeof options.session === 'object' ? options.session.id : options.session,
      })({
        ...asked,
        variables: { ...directoriesOf(plan), ...environment.variables },
        changed: [],
        details: [],
      }),
    close: async () => {
      await gate?.close();
      await state.close();
    },
  };
}

/** What a gate made of its policy and of what the application gave, for a judge. */
export function guardsOf({ reviewer, gitGuard, hooks }: Gate): SandboxOptions['gate'] {
  return {
    hooks,
    ...(reviewer === undefined ? {} : { reviewer }),
    ...(gitGuard === undefined ? {} : { gitGuard }),
  };
}

async function planIfPossible(
  resolved: ResolvedPolicy,
  tried: boolean,
): Promise<{
  readonly plan?: LaunchPlan;
  readonly problem?: string;
}> {
  try {
    return { plan: await (tried ? planTried(resolved) : planOnly(await planResolved(resolved))) };
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    // Of the host, not of the policy: a policy can be tested where it cannot be enforced.
    const ofHost: readonly string[] = [
      'addon.unavailable',
      'backend.unavailable',
      'enforcement.unavailable',
      'policy.read_only_inside_writable',
    ];
    if (!ofHost.includes(error.code)) throw error;
    return { problem: error.message };
  }
}
