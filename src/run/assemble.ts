import { SandboxError } from '../base/errors/sandbox-error.ts';
import type { LaunchPlan } from '../confine/plan/launch-plan.ts';
import {
  approvalRequestMaker,
  createDecider,
  createProgramFinder,
  type Decide,
  type DecisionPorts,
  givenVariables,
  type Judge,
  type ProgramFinder,
  WITHOUT,
} from '../gate/index.ts';
import type { RulesOfCommands } from '../judge/index.ts';
import {
  type ActionBudget,
  type Autonomy,
  NARROWINGS,
  type Policy,
  reviewerSettings,
  type SandboxOptions,
} from '../model/index.ts';
import { type BuiltEnvironment, buildEnvironment } from '../policy/index.ts';
import { type Environment, requireExactVariables, type Surroundings } from '../workspace/index.ts';
import { madeFilesOf } from './made-files.ts';
import { commandRules } from './resolve/command-rules.ts';
import { planOnly, planResolved } from './resolve/plan-sandbox.ts';
import { planTried, writableRoots } from './resolve/prepare-sandbox.ts';
import { usualVariables } from './resolve/resolve-command.ts';
import { type ResolvedPolicy, resolvePolicy } from './resolve/resolve-policy.ts';
import { createStatefulPorts, memoryOf, type StatefulPorts } from './stateful-ports.ts';
import { openTelemetry } from './telemetry.ts';

/** Everything that decisions under one policy are made with. */
export interface Assembly {
  readonly resolved: ResolvedPolicy;
  readonly options: SandboxOptions;
  readonly policy: Policy;
  /** Canonical. */
  readonly workspace: string;
  /** What a sandbox would be made from here; `undefined`: none could be made, or nothing is to be enforced. */
  readonly plan: LaunchPlan | undefined;
  /** The environment that the policy gives every command. */
  readonly environment: BuiltEnvironment;
  readonly rules: RulesOfCommands;
  readonly find: ProgramFinder;
  readonly stateful: StatefulPorts;
  /** Has the checks look at commands, whether the policy wants that or not. `budget`: that of another principal. */
  judge(budget?: ActionBudget): Promise<Judge>;
  /** Ports for what runs commands under this policy. `judge`: one that is loaded already. */
  ports(judge?: Judge): Promise<DecisionPorts>;
  /** Gives up what was opened for the decisions. */
  close(): Promise<void>;
}

/** Which parts of the policy are consulted. */
export interface WhatCounts {
  /** Git guard, reviewer and plug-ins of the policy. False: only those of `options.gate`. */
  readonly guards: boolean;
  /** The audit trail; `always`: also where the policy does not say. */
  readonly records: boolean | 'always';
}

/** THE assembly: what sandbox, checker, hook and gate service are built from. */
export async function assemble(
  resolved: ResolvedPolicy,
  plan: LaunchPlan | undefined,
  options: SandboxOptions,
  { guards, records }: WhatCounts,
): Promise<Assembly> {
  const { policy, workspace, around } = resolved;
  const rules = { ...commandRules(resolved, plan), isCopy: options.isCopy };
  const environment = commandEnvironment(policy, around.env);
  const find = createProgramFinder(plan);
  const stateful = await createStatefulPorts({
    policy: {
      ...policy,
      ...(guards ? {} : WITHOUT_GUARDS(policy)),
      audit: records === false ? { ...policy.audit, enabled: false } : policy.audit,
    },
    options,
    env: around.env,
    workspace,
    writable: () => (plan === undefined ? [workspace, ...rules.writable] : writableRoots(plan)),
    auditByDefault: options.audit ?? records === 'always',
  });
  const searchPath = environment.variables.PATH ?? '';
  const assembly: Assembly = {
    ...{ resolved, options, policy, workspace, plan, environment, rules, find, stateful },
    judge: async (budget = stateful.budget) => {
      const { createJudge } = await import('../gate/decide/judge.ts');
      const made =
        options.isCopy === true ? undefined : madeFilesOf(workspace, stateful.principal, rules.granted);
      return createJudge({
        ...{ policy, rules, searchPath, find, made, env: around.env },
        gate: { ...stateful, budget },
      });
    },
    ports: async (judge) => ({
      ...{ ...WITHOUT, policy, plan, principal: stateful.principal, once: stateful.once },
      outcome: () => 'launch',
      judge: policy.unsafe.unjudgedCommands ? undefined : (judge ?? (await assembly.judge())),
      makeRequest: requestMakerOf(assembly, stateful.principal, stateful.session?.id),
      session:
        stateful.session === undefined
          ? WITHOUT.session
          : memoryOf(stateful.session, stateful.state, policy.state),
      approvals: stateful.approvals,
      budget: stateful.budget,
      record: stateful.record,
      tellHooks: stateful.tellHooks,
      telemetry: (await openTelemetry()) ?? WITHOUT.telemetry,
    }),
    close: stateful.close,
  };
  return assembly;
}

const WITHOUT_GUARDS = ({ reviewer }: Policy): Pick<Policy, 'reviewer' | 'hooks'> => ({
  reviewer: { ...reviewer, command: undefined, model: undefined },
  hooks: { gitGuard: false, plugins: [] },
});

/** What makes approval requests for a principal and the id of a session. */
export function requestMakerOf(
  { resolved, policy, plan, environment }: Pick<Assembly, 'resolved' | 'policy' | 'plan' | 'environment'>,
  principal: string,
  session: string | undefined,
): DecisionPorts['makeRequest'] {
  const usual = usualVariables(plan, environment);
  return approvalRequestMaker({
    ...{ policy, plan, principal, session, usual, env: resolved.around.env },
    given: () => givenVariables(resolved.named, resolved.around.env),
  });
}

/** How far it is looked at what the kernel will enforce. */
export type KernelPart =
  /** Another program runs the commands: nothing counts on the kernel. */
  | 'none'
  /** A plan is made of what is known without trying. */
  | 'planned'
  /** Tried, so that the plan is that of a run on a host that refuses something as well. */
  | 'tried';

/** What decides and runs nothing. */
export interface Checker extends Omit<Assembly, 'judge'> {
  readonly judge: Judge;
  /** Judges, and has the ports of the policy say nothing: nobody is asked, nothing is counted or recorded. */
  readonly decide: Decide;
  /** Why this host could not run anything under the policy; the decisions then count on no enforcement. */
  readonly unenforceable: string | undefined;
}

/** What a checker is made with. */
export interface CheckerParts extends Partial<WhatCounts> {
  readonly kernel?: KernelPart;
}

/**
 * Makes what decides as `createSandbox` would, and starts nothing.
 * @throws {SandboxError} as `resolvePolicy`; for a plug-in or a reviewer that cannot be used.
 */
export async function createChecker(
  options: SandboxOptions,
  around: Surroundings,
  parts: CheckerParts = {},
): Promise<Checker> {
  return checkerOf(await resolvePolicy(options, around), options, parts);
}

/** The same of options that are resolved. */
export async function checkerOf(
  resolved: ResolvedPolicy,
  options: SandboxOptions,
  { kernel = 'planned', ...counts }: CheckerParts,
): Promise<Checker> {
  // A preview needs namespaces, and in a container only an attempt shows whether they are allowed.
  const previews = resolved.policy.commands.rules.some(({ verdict }) => verdict === 'preview');
  const looked = kernel === 'planned' && previews ? 'tried' : kernel;
  const { plan, problem } = looked === 'none' ? {} : await planIfPossible(resolved, looked);
  // A check names the session in requests and does not begin it.
  const { session, ...unbegun } = options;
  const assembly = await assemble(resolved, plan, unbegun, { guards: false, records: false, ...counts });
  const judge = narrowed(await assembly.judge(), resolved);
  const { principal } = assembly.stateful;
  const id = typeof session === 'object' ? session.id : session;
  const makeRequest = requestMakerOf(assembly, principal, id);
  const ports = async () => ({ ...(await assembly.ports(judge)), judge, makeRequest });
  return {
    ...{ ...assembly, judge, ports, unenforceable: problem },
    decide: createDecider(checkOnly(await ports())),
  };
}

/** Ports for a look: what is asked, is asked elsewhere, and nothing is counted, remembered or recorded. */
export function checkOnly(ports: DecisionPorts): DecisionPorts {
  const { budget, record, tellHooks, telemetry } = WITHOUT;
  const { session } = ports;
  return {
    ...{ ...ports, budget, record, tellHooks, telemetry, approvals: 'elsewhere' },
    session: session === WITHOUT.session ? session : { ...session, taint: () => {} },
  };
}

/** A level that is named with a command is no way past the one of the workspace. */
function narrowed(judge: Judge, { layers }: ResolvedPolicy): Judge {
  const ofWorkspace = layers.flatMap(({ name, says }) =>
    name === 'workspace' && says.security?.autonomy !== undefined ? [says.security.autonomy] : [],
  );
  if (ofWorkspace.length === 0) return judge;
  const within = (autonomy: Autonomy | undefined) =>
    autonomy &&
    ofWorkspace.reduce((strictest, said) => NARROWINGS.stricterAutonomy(strictest, said), autonomy);
  return (request) => judge({ ...request, autonomy: within(request.autonomy) });
}

async function planIfPossible(
  resolved: ResolvedPolicy,
  kernel: Exclude<KernelPart, 'none'>,
): Promise<{ readonly plan?: LaunchPlan; readonly problem?: string }> {
  try {
    return {
      plan: await (kernel === 'tried' ? planTried(resolved) : planOnly(await planResolved(resolved))),
    };
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

/** What a policy passes on of the caller's environment; the key of its reviewer is none of a command's business. */
export function commandEnvironment(policy: Policy, env: Environment): BuiltEnvironment {
  const { environment } = policy;
  const reviewer = reviewerSettings(policy);
  const key = reviewer?.kind === 'model' ? reviewer.keyVariable : undefined;
  const built = buildEnvironment(env, environment.pass, environment.set, key);
  const passed = Object.keys(built.variables).filter((name) => !(name in environment.set));
  requireExactVariables(env, passed);
  return built;
}
