import type { ApprovalRequest } from '../model/approval.ts';
import type { Command } from '../model/command.ts';
import type { Decision } from '../model/decision.ts';
import type { LaunchPlan } from '../model/launch-plan.ts';
import type { Policy } from '../model/policy.ts';
import { approvalRequestMaker } from './approval-request.ts';
import { checked, RUN_OPTIONS } from './check-options.ts';
import type { SettledCommand } from './command-line.ts';
import type { Gate } from './gate.ts';
import type { Examiner } from './judge.ts';
import type { RunOptions, SpawnOptions } from './sandbox-options.ts';

/** What a command would be run with, as far as it makes a difference to the decision. */
export type CheckOptions = Pick<RunOptions, 'cwd' | 'env' | 'taints'>;

/** What the policy says about a command at this moment. */
export interface CommandCheck {
  /** `undefined`: commands are not judged (`unsafe.unjudged_commands`). */
  readonly decision: Decision | undefined;
  /**
   * What a person has to see in order to answer a question. Its fingerprint is another as soon as something that matters is
   * (a file behind the command, the directory, what the policy says). `undefined`: there is no decision, or the command could
   * not be started.
   */
  readonly request: ApprovalRequest | undefined;
}

/** What checks are made of, for one sandbox. */
export interface CommandCheckParts {
  readonly policy: Policy;
  readonly plan: LaunchPlan;
  readonly gate: Gate;
  readonly examine: Examiner | undefined;
  readonly settle: (command: Command, options: SpawnOptions) => SettledCommand;
  readonly given: ReadonlySet<string>;
}

const TESTS = { cwd: RUN_OPTIONS.cwd, env: RUN_OPTIONS.env, taints: RUN_OPTIONS.taints };

/** Makes what judges as a run of the same sandbox would: nothing is run, counted, recorded or asked. */
export function createCommandCheck({ policy, plan, gate, examine, settle, given }: CommandCheckParts) {
  return async (command: Command, asked: CheckOptions): Promise<CommandCheck> => {
    const options = checked<CheckOptions>(asked, TESTS, 'check');
    const taints = await gate.taints(options.taints ?? []);
    const examination = examine?.({ command, ...options, taints });
    if (examination === undefined) return { decision: undefined, request: undefined };
    const decision = await examination.decision;
    const settled = settle(command, options);
    if (!settled.ok) return { decision, request: undefined };
    const makeRequest = approvalRequestMaker({
      ...{ policy, plan, given },
      principal: gate.principal,
      session: gate.session?.id,
    });
    const request = makeRequest({
      ...{ command, cwd: examination.cwd, decision, variables: settled.variables },
      effects: examination.effects(decision),
      changed: Object.keys(options.env ?? {}),
      details: [],
      // So a caller that compares knows which question it was.
      once: '',
    });
    return { decision, request };
  };
}
