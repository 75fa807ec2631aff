import type { ApprovalRequest } from '../model/approval.ts';
import type { Command } from '../model/command.ts';
import type { Decision } from '../model/decision.ts';
import type { LaunchPlan } from '../model/launch-plan.ts';
import type { CheckOptions, SpawnOptions } from '../model/options.ts';
import type { Policy } from '../model/policy.ts';
import { approvalRequestMaker } from './approval-request.ts';
import type { SettledCommand } from './command-line.ts';
import type { Gate } from './gate.ts';
import type { Examiner } from './judge.ts';

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

/** Makes what judges as a run of the same sandbox would: nothing is run, counted or recorded, and nobody is asked. */
export function createCommandCheck({ policy, plan, gate, examine, settle, given }: CommandCheckParts) {
  return async (command: Command, options: CheckOptions): Promise<CommandCheck> => {
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
      // Whoever compares knows which question it was.
      once: '',
    });
    return { decision, request };
  };
}
