import { z } from 'zod';
import { TAINTS } from '../../model/decision.ts';
import { command, count, decision, scope, text, texts, time } from './common.ts';

const request = {
  fingerprint: text.describe('of everything that an approval is bound to'),
  principal: text,
  session: text.optional(),
  command,
  cwd: text,
  decision,
  parts: z.array(
    z
      .strictObject({ source: text, executable: text.optional(), remarks: texts })
      .describe('a simple command'),
  ),
  environment: texts,
  profile: text,
  confinement: texts,
};

const state = z.enum(['pending', 'approved', 'denied', 'expired', 'used', 'withdrawn', 'abandoned']);

/** A line of `sandbox-run approvals list --json`, and `approvals show --json`. */
export const approvalRequest = z.strictObject({
  ...{ id: text, state, createdAt: time, expiresAt: time },
  ...request,
});

/** A line of `sandbox-run approvals grants --json`. */
export const approvalGrant = z.strictObject({
  id: text,
  scope,
  session: text.optional(),
  grantedAt: time,
  grantedBy: text,
  request: z.strictObject(request),
});

/** A line of `sandbox-run approvals watch --json`. */
export const approvalsWatchLine = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('pending'), request: approvalRequest }),
  z.strictObject({ type: z.literal('settled'), id: text, state }),
]);

/** `sandbox-run budget show --json`. */
export const budget = z.strictObject({
  principal: text,
  used: count.describe('commands of the last 3,600 seconds'),
  limit: count.nullable().describe('null: there is none'),
});

/** A line of `sandbox-run cache show --json`. */
export const cacheLine = z.strictObject({
  id: text,
  workspace: text.nullable().describe('null: it is not known any more'),
  workspaceExists: z.boolean(),
  bytes: count,
  complete: z.boolean().describe('false: there is more, or what nobody may look into'),
  usedAt: time,
  inUse: z.boolean().describe('a command runs'),
  directory: text,
});

/** A line of `sandbox-run kept list --json`. */
export const keptItem = z.strictObject({
  id: text,
  at: time,
  workspace: text,
  path: text,
  reason: text,
  movedTo: text.optional().describe('where it is, if it is not in the state directory'),
  settings: texts.optional().describe('of a git configuration, as key=value'),
});

const session = {
  id: text,
  principal: text,
  startedAt: time,
  lastUsedAt: time,
  endedAt: time.optional(),
  taints: z.array(z.strictObject({ taint: z.enum(TAINTS), reason: text, at: time })),
};

/** `sandbox-run session show --json`. */
export const sessionShow = z.strictObject({ ...session, taintsInForce: z.array(z.enum(TAINTS)) });

/** A line of `sandbox-run session list --json`. */
export const sessionListLine = z.union([
  z.strictObject({
    kind: z.literal('shell'),
    id: text,
    pid: count,
    workspace: text,
    cwd: text,
    startedAt: time,
    lastUsedAt: time,
    running: z.boolean(),
    unusedTimeout: z.number(),
  }),
  z.strictObject(session).describe('a session of an agent'),
]);
