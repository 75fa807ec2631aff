import { z } from 'zod';
import { policyFileSchema } from '../../policy/schema.ts';
import { auditRecord, auditStats, auditVerify } from './audit.ts';
import { batchLine, batchRequest, checkResult, gateCheck } from './decision.ts';
import { attackReport, doctorReport } from './doctor.ts';
import { plan } from './plan.ts';
import { policyImport, policyShow } from './policy.ts';
import { runResult, sessionRunResult } from './result.ts';
import {
  approvalGrant,
  approvalRequest,
  approvalsWatchLine,
  budget,
  cacheLine,
  keptItem,
  sessionListLine,
  sessionShow,
} from './state.ts';

/** What a schema describes. */
export interface PublishedSchema {
  readonly name: string;
  /** Where it comes out, for people. */
  readonly of: string;
  readonly schema: z.ZodType;
  /** It is about what is read, not about what is written. */
  readonly input?: true;
}

/** THE registry of what `--json` prints, and of what is read as JSON or TOML. */
export const PUBLISHED_SCHEMAS: readonly PublishedSchema[] = [
  { name: 'run', of: 'sandbox-run --json', schema: runResult },
  { name: 'plan', of: 'sandbox-run --dry-run --json', schema: plan },
  { name: 'check', of: 'sandbox-run check --json', schema: checkResult },
  { name: 'check-batch', of: 'a line of sandbox-run check --batch', schema: batchLine },
  {
    ...{ name: 'check-batch-request', of: 'a line that sandbox-run check --batch reads' },
    ...{ schema: batchRequest, input: true },
  },
  { name: 'policy', of: 'a policy file (TOML)', schema: policyFileSchema, input: true },
  { name: 'policy-show', of: 'sandbox-run policy show --json', schema: policyShow },
  { name: 'policy-import', of: 'sandbox-run policy import --json', schema: policyImport },
  {
    ...{ name: 'approval-request', schema: approvalRequest },
    of: 'a line of sandbox-run approvals list --json, and approvals show --json',
  },
  {
    ...{ name: 'approval-grant', schema: approvalGrant },
    of: 'a line of sandbox-run approvals grants --json',
  },
  {
    ...{ name: 'approvals-watch', schema: approvalsWatchLine },
    of: 'a line of sandbox-run approvals watch --json',
  },
  {
    ...{ name: 'audit-record', schema: auditRecord },
    of: 'a line of sandbox-run audit tail, show and search --json',
  },
  { name: 'audit-verify', of: 'sandbox-run audit verify --json', schema: auditVerify },
  { name: 'audit-stats', of: 'sandbox-run audit stats --json', schema: auditStats },
  { name: 'budget', of: 'sandbox-run budget show --json', schema: budget },
  { name: 'cache', of: 'a line of sandbox-run cache show --json', schema: cacheLine },
  { name: 'kept', of: 'a line of sandbox-run kept list --json', schema: keptItem },
  { name: 'session-run', of: 'sandbox-run session run --json', schema: sessionRunResult },
  { name: 'session-list', of: 'a line of sandbox-run session list --json', schema: sessionListLine },
  { name: 'session-show', of: 'sandbox-run session show --json', schema: sessionShow },
  { name: 'gate-check', of: 'sandbox-run gate check --json', schema: gateCheck },
  { name: 'doctor', of: 'sandbox-run doctor --json', schema: doctorReport },
  { name: 'doctor-attack', of: 'sandbox-run doctor --attack --json', schema: attackReport },
];

/** A published schema as JSON Schema (draft 2020-12). */
export function jsonSchemaOf({ of, schema, input }: PublishedSchema): object {
  return { title: of, ...z.toJSONSchema(schema, { io: input ? 'input' : 'output' }) };
}
