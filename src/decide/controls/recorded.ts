import { SandboxError } from '../../errors/sandbox-error.ts';
import type { DecisionRecord, ResultRecord } from '../../model/audit-record.ts';
import type { ExecutionResult } from '../../model/execution-result.ts';
import { errorMessage } from '../../util/error-message.ts';
import type { Control, Deciding } from '../control.ts';

/** What was decided is on record before anything starts, and how it ended afterwards. */
export const recorded: Control = {
  name: 'recorded',
  isNeeded: ({ record }) => record !== undefined,
  async decide(deciding) {
    const outcome = deciding.ports.outcome(deciding.seen);
    if (outcome !== undefined) await write(deciding, decisionRecord(deciding, outcome));
    return undefined;
  },
  async refused(deciding, objection) {
    const outcome = objection.status === 'canceled' ? 'canceled' : objection.error.code;
    // If that is what failed, there is nothing more to be done: the command does not run.
    if (outcome !== 'audit.failed') await write(deciding, decisionRecord(deciding, outcome));
  },
  async ended(deciding, { result }) {
    if (result !== undefined) await write(deciding, resultRecord(deciding, result));
  },
};

async function write({ ports, warnings }: Deciding, record: DecisionRecord | ResultRecord): Promise<void> {
  try {
    const warning = await ports.record?.(record);
    if (warning !== undefined) warnings.push(warning);
  } catch (error) {
    if (error instanceof SandboxError) throw error;
    // Of a sink that the application brought.
    const why = errorMessage(error);
    throw new SandboxError('audit.failed', `the audit trail cannot be written: ${why}`, { cause: error });
  }
}

/** Another program runs the command, or does not. */
const NO_ENFORCEMENT: DecisionRecord['report'] = {
  backend: 'none',
  passedOver: [],
  landlockAbi: 0,
  processTree: 'none',
  controls: [],
};

const about = ({ id, ports }: Deciding) => ({
  request: id,
  principal: ports.principal,
  session: ports.session?.id,
});

function decisionRecord(deciding: Deciding, outcome: string): DecisionRecord {
  const { request, ports, seen, resolved, approval } = deciding;
  const report = ports.plan?.report ?? NO_ENFORCEMENT;
  const { writes = [], executes = [] } = seen?.effects() ?? {};
  return {
    type: 'decision',
    ...about(deciding),
    command: request.command,
    cwd: resolved?.cwd ?? seen?.judgement.cwd ?? request.cwd ?? '',
    decision: seen?.decision,
    approval,
    outcome,
    profile: ports.policy.profile,
    backend: report.backend,
    report,
    files: { writes, executes },
  };
}

function resultRecord(deciding: Deciding, result: ExecutionResult): ResultRecord {
  const { status, exitCode, signal, error, durationMs, outputBytes, limit, leftBehind } = result;
  return {
    type: 'result',
    ...about(deciding),
    ...{ status, exitCode, signal, error: error?.code },
    ...(limit === undefined ? {} : { limit }),
    ...(leftBehind.length === 0 ? {} : { leftBehind }),
    ...{ durationMs, outputBytes },
  };
}
