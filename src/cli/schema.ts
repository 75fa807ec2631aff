import { z } from 'zod';
import { SandboxError } from '../base/errors/sandbox-error.ts';
import { count, maybe, text, texts, time } from '../base/value.ts';
import { LAYER_NAMES, LOSS_EFFECTS } from '../base/words.ts';
import { LaunchPlan } from '../confine/plan/launch-plan.ts';
import { FleetAnswer, FleetStatus } from '../model/fleet.ts';
import {
  ApprovalGrant,
  AttackReport,
  AuditLine,
  ChangeSet,
  ChangeSetDetail,
  CheckAnswer,
  DoctorReport,
  FullRunAnswer,
  FullTurnAnswer,
  policyFileSchema,
  QueuedRequest,
  RunAnswer,
  RunDefaults,
  ServiceInfo,
  SessionInfo,
  ShellInfo,
  StreamVerification,
  Taint,
  TurnAnswer,
  Verification,
  WatchedRequest,
} from '../model/index.ts';
import { BatchRequest } from './check/batch.ts';
import { createProgram, parseArguments } from './shared/parse.ts';
import { jsonText, printOut } from './shared/print.ts';

const HELP_AFTER = `
Each is strict where the output is: a key that it does not have is not there. The package has them as
files too: sandbox-run/schemas/NAME.json.

Examples:
  sandbox-run schema
  sandbox-run schema run > run.schema.json
  sandbox-run schema --all | jq '.check.properties.verdict'

Exit status: 0; 125 if there is no schema of that name.`;

/** What a schema describes. */
interface PublishedSchema {
  /** Where it comes out, for people. */
  readonly of: string;
  readonly schema: z.ZodType;
  /** Describes input that is read, not output. */
  readonly input?: true;
}

/* What commands print with `--json` that is no value of the program itself. */

const id = z.unknown().describe('that of the line; its number if it has none');

/** A line of `sandbox-run check --batch`. */
const BatchLine = z.union([
  CheckAnswer.extend({ id }),
  z.strictObject({
    id,
    verdict: z.literal('deny').describe('what cannot be judged must not run'),
    error: text.describe('why the line cannot be judged'),
  }),
]);

/** `sandbox-run gate check --json`. */
const GateCheckAnswer = z.strictObject({
  request_id: text,
  decision: z.enum(['allow', 'deny']),
  reason: text.optional(),
  by: z
    .enum(['here', 'host', 'nobody'])
    .describe('here: provably local; host: its answer; nobody: there was no answer that can be used'),
});

/** `sandbox-run budget show --json`. */
const BudgetAnswer = z.strictObject({
  principal: text,
  used: count.describe('commands of the last 3,600 seconds'),
  limit: count.nullable().describe('null: there is none'),
});

/** A line of `sandbox-run cache show --json`. */
const CacheLine = z.strictObject({
  id: text,
  workspace: text.nullable().describe('null: it is not known any more'),
  workspaceExists: z.boolean(),
  bytes: count,
  complete: z.boolean().describe('false: there is more, or what cannot be looked into'),
  usedAt: time,
  inUse: z.boolean().describe('a command runs'),
  directory: text,
});

/** `sandbox-run policy show --json`. */
const PolicyShown = z.strictObject({
  workspace: text,
  values: z.array(
    z.strictObject({
      key: text,
      value: z.unknown().optional().describe('missing: it is not set'),
      item: z.boolean().optional().describe('with --explain: it is an item of a list that adds up'),
      source: z
        .strictObject({
          layer: z.enum(LAYER_NAMES),
          path: text.optional(),
          line: count.optional(),
        })
        .optional()
        .describe('with --explain'),
    }),
  ),
  weakerThanDefault: z.array(z.strictObject({ key: text, meaning: text })),
  checks: z.array(z.strictObject({ name: text, summary: text })),
});

/** `sandbox-run policy import --json`. */
const PolicyImported = z.strictObject({
  file: text,
  from: text,
  policy: policyFileSchema,
  toml: text,
  output: text.nullable().describe('the file that was written; null: none'),
  translated: z.array(
    z.strictObject({ path: text, value: z.unknown(), to: text.describe('what stands for it here') }),
  ),
  losses: z
    .array(
      z.strictObject({
        path: text,
        value: z.unknown(),
        effect: z
          .enum(LOSS_EFFECTS)
          .describe(
            'narrower: less is allowed here; wider: something is allowed that was not; none: it is about something else',
          ),
        why: text,
        what: text.describe('what to do about it'),
      }),
    )
    .describe('what has no equivalent'),
  remarks: texts,
});

const counts = z.record(text, count);

/** What `sandbox-run audit stats --json` prints. */
const AuditStatistics = z.strictObject({
  records: count,
  first: maybe(text),
  last: maybe(text),
  ...{ types: counts, verdicts: counts, outcomes: counts, approvals: counts },
  ...{ objections: counts, results: counts, events: counts },
  outputBytes: count,
  durationMs: z.number(),
  sessions: count,
});

/** What `sandbox-run audit verify --json` prints. */
const VerifyAnswer = Verification.extend({ ok: z.boolean() });

/** What `sandbox-run audit verify --fleet --json` prints. */
const FleetVerifyAnswer = StreamVerification.extend({ ok: z.boolean() });

/** A line of `sandbox-run kept list --json`. */
const KeptLine = z.strictObject({
  id: text,
  at: time,
  workspace: text,
  path: text,
  reason: text,
  movedTo: text.optional().describe('where it is, if it is not in the state directory'),
  settings: texts.optional().describe('of a git configuration, as key=value'),
});

/** What `sandbox-run --dry-run --json` prints. */
const PlanAnswer = LaunchPlan.extend(RunDefaults.shape);

/** What `sandbox-run session show --json` prints. */
const SessionShown = SessionInfo.extend({ taintsInForce: z.array(Taint) });

/** A line of `sandbox-run session list --json`. */
const SessionLine = z.union([ShellInfo.extend({ kind: z.literal('shell') }), SessionInfo]);

/** THE registry of what `--json` prints, and of what is read as JSON or TOML, by name. */
const PUBLISHED_SCHEMAS: Readonly<Record<string, PublishedSchema>> = {
  run: { of: 'sandbox-run --json', schema: RunAnswer },
  'run-full': { of: 'sandbox-run --json=full', schema: FullRunAnswer },
  plan: { of: 'sandbox-run --dry-run --json', schema: PlanAnswer },
  check: { of: 'sandbox-run check --json', schema: CheckAnswer },
  'check-batch': { of: 'a line of sandbox-run check --batch', schema: BatchLine },
  'check-batch-request': {
    of: 'a line that sandbox-run check --batch reads',
    schema: BatchRequest,
    input: true,
  },
  policy: { of: 'a policy file (TOML)', schema: policyFileSchema, input: true },
  'policy-show': { of: 'sandbox-run policy show --json', schema: PolicyShown },
  'policy-import': { of: 'sandbox-run policy import --json', schema: PolicyImported },
  'approval-request': {
    of: 'a line of sandbox-run approvals list --json, and approvals show --json: of a command (of changes: changes, changes-show)',
    schema: QueuedRequest,
  },
  'approval-grant': { of: 'a line of sandbox-run approvals grants --json', schema: ApprovalGrant },
  'approvals-watch': { of: 'a line of sandbox-run approvals watch --json', schema: WatchedRequest },
  'audit-record': { of: 'a line of sandbox-run audit tail, show and search --json', schema: AuditLine },
  'audit-verify': { of: 'sandbox-run audit verify --json', schema: VerifyAnswer },
  'audit-verify-fleet': { of: 'sandbox-run audit verify --fleet --json', schema: FleetVerifyAnswer },
  'audit-stats': { of: 'sandbox-run audit stats --json', schema: AuditStatistics },
  budget: { of: 'sandbox-run budget show --json', schema: BudgetAnswer },
  cache: { of: 'a line of sandbox-run cache show --json', schema: CacheLine },
  changes: { of: 'a line of sandbox-run changes list --json', schema: ChangeSet },
  'changes-show': { of: 'sandbox-run changes show --json', schema: ChangeSetDetail },
  kept: { of: 'a line of sandbox-run kept list --json', schema: KeptLine },
  'session-run': { of: 'sandbox-run session run --json', schema: TurnAnswer },
  'session-run-full': { of: 'sandbox-run session run --json=full', schema: FullTurnAnswer },
  'session-list': { of: 'a line of sandbox-run session list --json', schema: SessionLine },
  'session-show': { of: 'sandbox-run session show --json', schema: SessionShown },
  ps: { of: 'a line of sandbox-run ps --json', schema: ServiceInfo },
  'gate-check': { of: 'sandbox-run gate check --json', schema: GateCheckAnswer },
  submit: { of: 'sandbox-run submit --wait --json, and fleet job --json', schema: FleetAnswer },
  'fleet-status': { of: 'sandbox-run fleet status --json', schema: FleetStatus },
  doctor: { of: 'sandbox-run doctor --json', schema: DoctorReport },
  'doctor-attack': { of: 'sandbox-run doctor --attack --json', schema: AttackReport },
};

/** A published schema as JSON Schema (draft 2020-12). */
function jsonSchemaOf({ of, schema, input }: PublishedSchema): object {
  return { title: of, ...z.toJSONSchema(schema, { io: input ? 'input' : 'output' }) };
}

/** `sandbox-run schema`: JSON Schemas of what is printed with `--json`. */
export async function schema(args: readonly string[]): Promise<number> {
  const program = createProgram(
    'sandbox-run schema',
    'Prints the JSON Schema of the output of a command with --json. Without a name, lists the schemas.',
    HELP_AFTER,
  )
    .argument('[name]', 'name of a schema')
    .option('--all', 'print all schemas, as one JSON object by name');
  const parsed = parseArguments(program, args);
  if (parsed === undefined) return 0;
  const [name] = parsed.args;
  const { all } = parsed.opts<{ readonly all?: boolean }>();
  if (all === true && name !== undefined)
    throw new SandboxError('usage.invalid', '--all prints every schema; leave the name out');
  const print = (value: object) => printOut(jsonText(value));
  if (all === true) {
    const schemas = Object.entries(PUBLISHED_SCHEMAS).map(([each, published]) => [
      each,
      jsonSchemaOf(published),
    ]);
    print(Object.fromEntries(schemas));
  } else if (name === undefined) {
    for (const [each, { of }] of Object.entries(PUBLISHED_SCHEMAS)) printOut(`${each.padEnd(20)} ${of}\n`);
  } else {
    const found = Object.hasOwn(PUBLISHED_SCHEMAS, name) ? PUBLISHED_SCHEMAS[name] : undefined;
    if (found === undefined)
      throw new SandboxError(
        'usage.invalid',
        `there is no schema ${JSON.stringify(name)}; sandbox-run schema lists them`,
      );
    print(jsonSchemaOf(found));
  }
  return 0;
}
