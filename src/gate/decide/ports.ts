import type { ErrorCode } from '../../base/errors/codes.ts';
import type { MaybePromise } from '../../base/promise.ts';
import type { TaintSharing } from '../../base/words.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import type { CommandEffects } from '../../judge/index.ts';
import type {
  ActionBudget,
  ApprovalAnswer,
  Approvals,
  ApprovedRequest,
  AuditRecord,
  Command,
  Decision,
  ExecutionError,
  ExecutionResult,
  JobOrigin,
  Policy,
  Steps,
  Taint,
  Telemetry,
} from '../../model/index.ts';
import type { ApprovalRequestMaker } from './approval-request.ts';
import type { Judge, Judgement, JudgeRequest } from './judge.ts';

/** A command with its program, directory and environment, or why it cannot be started. */
export type ResolvedCommand =
  | {
      readonly ok: true;
      readonly program: string;
      readonly argv: readonly [string, ...string[]];
      /** What was asked for, where something else starts it. */
      readonly asked?: readonly [string, ...string[]];
      /** The parsed steps of a text that runs without a shell. */
      readonly steps?: Steps;
      readonly cwd: string;
      /** The environment in the form that the addon takes. */
      readonly env: Uint8Array;
      /** The variables of `env` by name; HOME and TMPDIR are missing where the addon sets them. */
      readonly variables: Readonly<Record<string, string | undefined>>;
    }
  | {
      readonly ok: false;
      readonly argv: readonly [string, ...string[]];
      readonly cwd: string;
      readonly code: ErrorCode;
      readonly message: string;
      readonly path: string;
    };

/** What a command is at one moment: before a question, and again after the answer. */
export interface Seen {
  readonly judgement: Judgement;
  readonly decision: Decision;
  readonly effects: () => CommandEffects;
}

/** What is remembered of the session that a command belongs to. */
export interface SessionMemory {
  /** `undefined`: the client named none. */
  readonly id: string | undefined;
  /** Before anything is decided; rejects with `session.invalid` if the session is not to be used. */
  begin(): MaybePromise<unknown>;
  /** Taints in force: those given and those remembered, of the session alone or of all of its user. */
  taints(given: readonly Taint[], sharing: TaintSharing): MaybePromise<readonly Taint[]>;
  taint(taint: Taint, reason: string): MaybePromise<void>;
}

/** What a decision is made with. Where there is none of a port, one of {@link WITHOUT} stands in its place. */
export interface DecisionPorts {
  readonly policy: Policy;
  /** `undefined`: another program runs the command, and nothing is enforced by us. */
  readonly plan: LaunchPlan | undefined;
  readonly principal: string;
  /** `undefined`: commands are not judged (`unsafe.unjudged_commands`). */
  readonly judge: Judge | undefined;
  /** How a command would be started. `undefined`: another program starts it. */
  readonly resolve: (
    command: Command,
    request: Pick<JudgeRequest, 'cwd' | 'env'>,
  ) => ResolvedCommand | undefined;
  readonly makeRequest: ApprovalRequestMaker;
  /** The `once` value of requests for a command that was approved beforehand. `undefined`: the request's id. */
  readonly once: string | undefined;
  readonly session: SessionMemory;
  /** `elsewhere`: the caller asks by itself. An `undefined` desk: there is nobody to ask, and nothing was ever remembered. */
  readonly approvals: (() => MaybePromise<Approvals | undefined>) | 'elsewhere';
  readonly budget: ActionBudget;
  /** Writes to the audit trail. Rejects if that fails, or settles with a warning where the policy has it so. */
  readonly record: (record: AuditRecord) => Promise<string | undefined>;
  readonly telemetry: Telemetry;
  /** The outcome in the record of an allowed request. `undefined`: it is recorded elsewhere. */
  readonly outcome: (seen: Seen | undefined) => string | undefined;
  /** Tells the hooks what became of a command; gives sentences about those that failed. */
  readonly tellHooks: (command: Command, cwd: string, result: ExecutionResult) => Promise<readonly string[]>;
}

const NOT_KEPT = { commit: () => {}, release: () => {} };
const NOT_MEASURED = { traceparent: undefined, within: <T>(work: () => T) => work(), end: () => {} };

/**
 * A port of each kind that does nothing: nothing is remembered, counted, recorded, told or measured, nobody is asked, and
 * another program starts the command. None of them makes anything allowed. Controls that they leave nothing to do know them.
 */
export const WITHOUT: Omit<
  DecisionPorts,
  'policy' | 'plan' | 'principal' | 'judge' | 'makeRequest' | 'outcome'
> = {
  resolve: () => undefined,
  once: undefined,
  session: { id: undefined, begin: () => {}, taints: (given) => given, taint: () => {} },
  approvals: () => undefined,
  budget: { used: () => 0, reserve: () => NOT_KEPT },
  record: async () => undefined,
  telemetry: { begin: () => NOT_MEASURED },
  tellHooks: async () => [],
};

/** A command that is to be run. */
export interface DecisionRequest extends Omit<JudgeRequest, 'approved'> {
  /** A person has approved it beforehand: whatever it does by now, or exactly the request with a fingerprint. */
  readonly approved?: boolean | ApprovedRequest | undefined;
  /** What else makes a difference to an approval: its input, a terminal, the state of its shell. */
  readonly details?: (() => readonly string[]) | undefined;
  /** Names it in the records. Default: a random one. */
  readonly id?: string | undefined;
  /** The job of a fleet that it is for. */
  readonly job?: JobOrigin | undefined;
  /** Aborted when the command is given up. */
  readonly signal?: (() => AbortSignal) | undefined;
}

/** Why a command does not run. */
export type Objection =
  | { readonly status: 'denied' | 'setup-failed'; readonly error: ExecutionError }
  | { readonly status: 'canceled' };

/** A request on its way through the controls, and what is known about it so far. */
export interface Deciding {
  readonly request: DecisionRequest;
  readonly ports: DecisionPorts;
  /** For the records. */
  readonly id: string;
  taints: readonly Taint[];
  /** `undefined`: commands are not judged. */
  seen: Seen | undefined;
  /** `undefined`: another program starts it. */
  resolved: ResolvedCommand | undefined;
  approval: ApprovalAnswer | undefined;
  /** What reviewer and hooks have said. */
  readonly said: Map<string, unknown>;
  readonly warnings: string[];
  /** Work that runs beside the next controls and must finish before anything starts; a rejection refuses the command. */
  readonly beforeStart: Promise<void>[];
}

/** One thing that stands between a request and its launch. */
export interface Control {
  readonly name: string;
  /** False: with these ports it has nothing to do. */
  isNeeded?(ports: DecisionPorts): boolean;
  /** Objects, or lets the request go on. What is thrown is an objection, too. */
  decide?(deciding: Deciding): Objection | undefined | Promise<Objection | undefined>;
  /** Another control, or this one, has objected: takes back what this one did. */
  refused?(deciding: Deciding, objection: Objection): void | Promise<void>;
  /** False: with this request there is nothing to do when it has ended. */
  follows?(deciding: Deciding): boolean;
  /** The command was started and has ended, or was given up before (`started` false). Failures become warnings. */
  ended?(deciding: Deciding, ending: Ending): void | Promise<void>;
}

/** How a command that was allowed ended. */
export interface Ending {
  /** `undefined`: another program runs it, and how it ends is not known here. */
  readonly result: ExecutionResult | undefined;
  readonly started: boolean;
}
