import type { AuditRecord, DecisionRecord, ResultRecord } from '../model/audit-record.ts';
import type { Decision } from '../model/decision.ts';
import type { EnforcementReport } from '../model/enforcement-report.ts';
import { assertNever } from '../util/assert-never.ts';
import { createRedactor, type Redactor } from '../util/redact.ts';
import { boundedJson } from './bound-value.ts';

/**
 * The members of a record's JSON object, without its braces: redacted, of bounded size, and safe to be shown by `cat`.
 */
export function encodeRecord(record: AuditRecord): string {
  return boundedJson(plain(record, createRedactor())).slice(1, -1);
}

function plain(record: AuditRecord, redactor: Redactor): object {
  switch (record.type) {
    case 'decision':
      return plainDecision(record, redactor);
    case 'result':
      return plainResult(record, redactor);
    case 'event':
      return {
        type: record.type,
        code: record.code,
        principal: record.principal,
        session: record.session,
        message: redactor.text(record.message),
        details: Object.fromEntries(
          Object.entries(record.details).map(([name, value]) => [
            name,
            typeof value === 'string' ? redactor.text(value) : value,
          ]),
        ),
      };
    default:
      return assertNever(record);
  }
}

function plainDecision(record: DecisionRecord, redactor: Redactor): object {
  // First, because it tells the redactor what the secrets are.
  const command =
    typeof record.command === 'string' ? redactor.text(record.command) : redactor.words(record.command);
  const { approval, files } = record;
  return {
    type: record.type,
    request: record.request,
    principal: record.principal,
    session: record.session,
    outcome: record.outcome,
    command,
    cwd: redactor.text(record.cwd),
    ...plainVerdict(record.decision, redactor),
    approval:
      approval === undefined
        ? undefined
        : 'detail' in approval && approval.detail !== undefined
          ? { ...approval, detail: redactor.text(approval.detail) }
          : approval,
    profile: record.profile,
    backend: record.backend,
    report: plainReport(record.report),
    files:
      files === undefined
        ? undefined
        : { writes: files.writes.map(redactor.text), executes: files.executes.map(redactor.text) },
  };
}

/** Every check with its verdict and code; its words only if it objects. */
function plainVerdict(decision: Decision | undefined, redactor: Redactor): object {
  if (decision === undefined) return { verdict: null };
  const { verdict, risk, reach, reasons } = decision;
  const checks = reasons.map((reason) => ({
    check: reason.check,
    verdict: reason.verdict ?? null,
    code: reason.code,
    ...(reason.verdict === 'ask' || reason.verdict === 'deny'
      ? { message: redactor.text(reason.message), words: redactor.words(reason.words) }
      : {}),
  }));
  return { verdict, risk, reach, checks };
}

/** Every control's state; the reason only of what is not enforced. */
function plainReport({ landlockAbi, controls, passedOver }: EnforcementReport): object {
  const short = controls.filter(({ state }) => state !== 'enforced');
  return {
    landlockAbi,
    ...(passedOver.length === 0 ? {} : { passedOver }),
    controls: Object.fromEntries(controls.map(({ id, state }) => [id, state])),
    reasons: Object.fromEntries(short.map(({ id, reason }) => [id, reason])),
  };
}

function plainResult(record: ResultRecord, redactor: Redactor): object {
  const { type, request, principal, session, status, exitCode, signal, error, limit, durationMs } = record;
  const { outputBytes, leftBehind } = record;
  return {
    type,
    request,
    principal,
    session,
    status,
    exitCode,
    signal,
    error,
    limit,
    leftBehind: leftBehind?.map((one) => ({
      ...one,
      path: redactor.text(one.path),
      ...(one.settings === undefined ? {} : { settings: one.settings.map(redactor.text) }),
    })),
    durationMs,
    outputBytes,
  };
}
