import { createHash, randomUUID } from 'node:crypto';
import type { ApprovalAnswer } from '../model/approval.ts';
import type { AuditRecord } from '../model/audit-record.ts';
import type { Command } from '../model/command.ts';
import type { Decision, Reason } from '../model/decision.ts';
import type { ExecutionError, ExecutionResult } from '../model/execution-result.ts';
import type { Reservation } from '../model/gate-ports.ts';
import type { LaunchPlan } from '../model/launch-plan.ts';
import type { SpawnOptions } from '../model/options.ts';
import type { Policy } from '../model/policy.ts';
import type { ShellFacts } from '../model/shell-facts.ts';
import type { CommandEffects } from '../policy/effects.ts';
import { isPromise } from '../util/promise.ts';
import { type ApprovalRequestMaker, approvalRequestMaker } from './approval-request.ts';
import { askApproval, type CommandSeen } from './ask-approval.ts';
import { decisionRecord, type RecordedDecision, resultRecord } from './audit-records.ts';
import { canceledBefore, denied, notStarted, type RunContext } from './classify.ts';
import type { SettledCommand } from './command-line.ts';
import { exposuresOf } from './exposures.ts';
import type { Gate } from './gate.ts';
import type { Examination, Examiner } from './judge.ts';
import { approvalRefusal, budgetRefusal, refusalOf, unusableGate, VOID } from './refusal.ts';

/** A request on its way to the launch. */
export interface AdmissionRequest {
  readonly command: Command;
  readonly options: SpawnOptions;
  /** What is written to its standard input. */
  readonly input?: Uint8Array | undefined;
  /** Aborted when nobody wants the command any more. */
  readonly signal: () => AbortSignal;
  /** The shell that is to run it, if that has run others before. */
  readonly shell?: ShellFacts;
}

/** Whether a command may be launched now. */
export type Admission =
  | {
      readonly admitted: true;
      readonly settled: SettledCommand & { readonly ok: true };
      readonly context: RunContext;
      /** What it was judged by; `undefined`: it was not. */
      readonly examination: Examination | undefined;
      /**
       * To be called with the result, which it may add warnings to: counts, records and tells. `launched` false: the
       * command was given up. Undefined: there is nothing to do.
       */
      readonly ended: ((result: ExecutionResult, launched: boolean) => Promise<ExecutionResult>) | undefined;
    }
  | { readonly admitted: false; readonly result: ExecutionResult };

/** What admission is made of, for one sandbox. */
export interface AdmissionParts {
  readonly policy: Policy;
  readonly plan: LaunchPlan;
  readonly gate: Gate;
  /** `undefined`: commands are not judged. */
  readonly examine: Examiner | undefined;
  readonly settle: (command: Command, options: SpawnOptions) => SettledCommand;
  /** Names of variables that the policy or the caller asked for. */
  readonly given: ReadonlySet<string>;
  /** Remarks on the environment. */
  readonly warnings: readonly string[];
  /** What is said once, with the first command. */
  readonly remarks: readonly string[];
}

/** Decides about requests for one sandbox: at once where nothing has to be asked, counted or written. */
export type Admit = (request: AdmissionRequest) => Admission | Promise<Admission>;

/** Everything between a request and its launch: judge, ask, count, record. */
export function createAdmission(parts: AdmissionParts): Admit {
  const { policy, plan, gate, examine, settle } = parts;
  const limit = policy.security.maxActionsPerHour;
  const hasMemory =
    gate.record !== undefined ||
    gate.session !== undefined ||
    limit !== undefined ||
    gate.hooks.some((hook) => hook.afterToolUse !== undefined);
  let unsaid = parts.remarks;
  const remarks = (): readonly string[] => {
    const said = unsaid;
    unsaid = [];
    return said;
  };
  let maker: ApprovalRequestMaker | undefined;
  const makeRequest: ApprovalRequestMaker = (asked) => {
    maker ??= approvalRequestMaker({
      policy,
      plan,
      given: parts.given,
      principal: gate.principal,
      session: gate.session?.id,
    });
    return maker(asked);
  };
  const contextOf = (
    settled: SettledCommand,
    decision: Decision | undefined,
    approval?: ApprovalAnswer,
    warnings: readonly string[] = [],
  ): RunContext => ({
    argv: (settled.ok ? settled.asked : undefined) ?? settled.argv,
    cwd: settled.cwd,
    warnings: warnings.length === 0 ? parts.warnings : [...parts.warnings, ...warnings],
    report: plan.report,
    decision,
    approval,
  });

  /** The way without memory: what most commands take. */
  function admitPlainly(request: AdmissionRequest): Admission | Promise<Admission> {
    const { command, options, shell } = request;
    const settled = settle(command, options);
    const examination = examine?.({ command, ...options, approved: options.approved === true, shell });
    const decision = examination?.decision;
    // It is asked once: whoever says no to this is not asked again.
    if (isPromise(decision)) return admitWithMemory(request, examination);
    const refusal = decision && refusalOf(decision, options.approved === true);
    if (refusal?.code === 'command.needs_approval' && settled.ok)
      return admitWithMemory(request, examination);
    const context = contextOf(settled, decision, undefined, remarks());
    // A question about a program that is not there need not be asked.
    if (refusal?.code === 'command.denied') return { admitted: false, result: denied(context, refusal) };
    if (!settled.ok) return { admitted: false, result: notStarted(context, notSettled(settled)) };
    return { admitted: true, settled, context, examination, ended: undefined };
  }

  /** The other way: waits for people, reviewers, the store and the disk. */
  async function admitWithMemory(
    { command, options, input, signal, shell }: AdmissionRequest,
    examined?: Examination,
  ): Promise<Admission> {
    const about = { request: randomUUID(), principal: gate.principal, session: gate.session?.id };
    const settled = settle(command, options);
    let examination: Examination | undefined;
    let decision: Decision | undefined;
    let approval: ApprovalAnswer | undefined;
    let effects: CommandEffects | undefined;
    let reservation: Reservation | undefined;
    const warnings: string[] = [...remarks()];
    const record = async (entry: AuditRecord) => {
      const warning = await gate.record?.(entry);
      if (warning !== undefined) warnings.push(warning);
    };
    const recordDecision = (outcome: RecordedDecision['outcome']) => {
      const decided = { command, cwd: settled.cwd, decision, approval, effects, outcome };
      return record(decisionRecord(about, decided, plan, policy.profile));
    };
    const context = () => contextOf(settled, decision, approval, warnings);
    const refused = async (make: () => ExecutionResult): Promise<Admission> => {
      await reservation?.release();
      await recordDecision(make().error?.code ?? 'canceled');
      return { admitted: false, result: make() };
    };
    const examineNow = async (): Promise<Examination | undefined> => {
      for (const taint of options.taints ?? []) await gate.session?.taint(taint, 'said with a command');
      const taints = await gate.taints(options.taints ?? []);
      return examine?.({ command, ...options, approved: options.approved === true, taints, shell });
    };
    const lookAgain = async (): Promise<CommandSeen | undefined> => {
      const [examination, now] = [await examineNow(), settle(command, options)];
      if (examination === undefined || !now.ok) return undefined;
      const decided = await examination.decision;
      return { examination, decision: decided, effects: examination.effects(decided), settled: now };
    };
    const requestWith = (details: readonly string[], once: string) => (seen: CommandSeen) =>
      makeRequest({
        ...{ command, cwd: seen.examination.cwd, decision: seen.decision, effects: seen.effects, once },
        ...{ variables: seen.settled.variables, changed: Object.keys(options.env ?? {}), details },
      });
    const requestOf = requestWith(detailsOf(options, input, shell), gate.once ?? about.request);
    // As `check()` makes it: of the time it knows nothing.
    const requestOfCheck = requestWith(detailsOf({ ...options, timeout: undefined }, input, shell), '');

    try {
      examination = examined ?? (await examineNow());
      decision = await examination?.decision;
      if (decision !== undefined) effects = examination?.effects(decision);
      if (options.approved === true && decision?.reasons.some(wasSettledByApproval) === true)
        approval = BY_CALLER;
      const refusal = decision && refusalOf(decision, options.approved === true);
      if (refusal?.code === 'command.denied') return await refused(() => denied(context(), refusal));
      if (!settled.ok) return await refused(() => notStarted(context(), notSettled(settled)));
      const { approved } = options;
      if (refusal !== undefined && decision && examination && effects && typeof approved === 'object') {
        approval = BY_CALLER;
        const now = requestOfCheck({ examination, decision, effects, settled });
        if (now.fingerprint !== approved.fingerprint) return await refused(() => denied(context(), VOID));
      } else if (refusal !== undefined && decision && examination && effects) {
        const desk = await gate.desk();
        if (desk === undefined) return await refused(() => denied(context(), refusal));
        const asking = { desk, requestOf, lookAgain, signal: signal() };
        const { answer, isVoid } = await askApproval({ examination, decision, effects, settled }, asking);
        approval = answer;
        if (!signal().aborted && !answer.approved) {
          const error = approvalRefusal(refusal, answer, policy.approval.timeoutMs);
          return await refused(() => denied(context(), error));
        }
        if (isVoid) return await refused(() => denied(context(), VOID));
      }
      if (signal().aborted) return await refused(() => canceledBefore(context()));
      if (limit !== undefined) {
        reservation = await gate.budget.reserve(limit);
        if (reservation === undefined) return await refused(() => denied(context(), budgetRefusal(limit)));
      }
      if (gate.session !== undefined && decision && effects) {
        for (const { taint, reason } of exposuresOf(policy, plan, decision, effects))
          await gate.session.taint(taint, reason);
      }
      await recordDecision('launch');
    } catch (error) {
      // Whatever fails on the way to a yes is a no. What was reserved stays counted if it cannot be given back.
      await Promise.resolve(reservation?.release()).catch(() => {});
      const refusal = unusableGate(error);
      // If that is what failed there is nothing more to be done: the command does not run.
      if (refusal.code !== 'audit.failed') await recordDecision(refusal.code).catch(() => {});
      return { admitted: false, result: denied(context(), refusal) };
    }

    const launchContext = context();
    const ended = async (result: ExecutionResult, launched: boolean): Promise<ExecutionResult> => {
      const before = warnings.length;
      const attempt = async (work: () => unknown) => {
        try {
          await work();
        } catch (error) {
          // It has run: what is left is to say so.
          warnings.push(error instanceof Error ? error.message : String(error));
        }
      };
      const started = launched && result.status !== 'setup-failed';
      await attempt(() => (started ? reservation?.commit() : reservation?.release()));
      await attempt(() => record(resultRecord(about, result)));
      if (started) warnings.push(...(await gate.afterToolUse(command, settled.cwd, result)));
      const after = warnings.slice(before);
      return after.length === 0 ? result : { ...result, warnings: [...result.warnings, ...after] };
    };
    return { admitted: true, settled, context: launchContext, examination, ended };
  }

  return hasMemory ? admitWithMemory : admitPlainly;
}

const BY_CALLER: ApprovalAnswer = { approved: true, scope: 'once', by: 'the caller' };

/** A question, or what would have been one without `approved`. */
function wasSettledByApproval({ verdict, code }: Reason): boolean {
  return verdict === 'ask' || code === 'approved';
}

/** What else of a request makes a difference. */
function detailsOf(
  { timeout, pty }: { readonly timeout?: number | undefined; readonly pty?: SpawnOptions['pty'] },
  input: Uint8Array | undefined,
  shell: ShellFacts | undefined,
): readonly string[] {
  return [
    ...(timeout === undefined ? [] : [`timeout ${timeout}`]),
    ...(pty === undefined ? [] : ['terminal']),
    ...(input === undefined ? [] : [`input ${createHash('sha256').update(input).digest('hex')}`]),
    ...(shell === undefined ? [] : [`shell ${JSON.stringify(shell)}`]),
  ];
}

function notSettled({ code, message, path }: SettledCommand & { readonly ok: false }): ExecutionError {
  return { code, message, stage: undefined, errno: undefined, path };
}
