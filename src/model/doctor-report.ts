import { z } from 'zod';
import { count, text, texts, type Value } from '../base/value.ts';
import { ATTACK_RESULTS } from '../base/words.ts';
import {
  BackendId,
  Control,
  ControlId,
  ControlState,
  PassedOver,
} from '../confine/plan/enforcement-report.ts';

const problem = z.strictObject({ code: text, message: text }).nullable();
const available = z.boolean().nullable();
const reason = text.nullable();

/** What to do about something that is missing. */
export const Remedy = z.strictObject({
  topic: text,
  priority: z
    .enum(['needed', 'useful', 'optional'])
    .describe('needed: to run at all; useful: for a stronger sandbox; optional: for the rest'),
  text,
  command: text.nullable().describe('the command that does it, where one command does'),
});
export type Remedy = Value<typeof Remedy>;

/** One kernel setting that decides over namespaces. */
const Sysctl = z.strictObject({
  name: text,
  value: text.nullable().describe('null: this kernel does not have it'),
});
export type Sysctl = Value<typeof Sysctl>;

/** A published fix in Landlock; see Documentation/userspace-api/landlock.rst. */
const LandlockErratum = z.strictObject({ number: count, meaning: text, fixed: z.boolean() });

/** Who runs this process, and where. */
const ProcessFacts = z.strictObject({
  uid: z.number().int(),
  sysAdmin: z.boolean(),
  container: text.nullable().describe('the kind of container, as far as it leaves marks'),
  seccompMode: count.nullable().describe('0: none; 2: this process already runs under a seccomp filter'),
  noNewPrivs: z.boolean(),
});
export type ProcessFacts = Value<typeof ProcessFacts>;

/** What this process sees of control groups. */
const CgroupFacts = z.strictObject({
  version: z.enum(['v1', 'v2', 'v1+v2', 'none']),
  path: text.nullable().describe('directory of the group of this process in the v2 hierarchy'),
  controllers: texts.describe('what the group offers to groups beneath it'),
  writable: z.boolean().describe('this user may make groups beneath it'),
});
export type CgroupFacts = Value<typeof CgroupFacts>;

/** A program that could help out, looked up in PATH. */
const ProgramFacts = z.strictObject({
  name: text,
  path: text.nullable(),
  version: text.nullable(),
  problem: text
    .nullable()
    .describe('what it said instead of its version: Firejail, for one, can be shut for a user'),
  setuidRoot: z
    .boolean()
    .describe('it is set-uid root, so it can make namespaces where ordinary users may not'),
});
export type ProgramFacts = Value<typeof ProgramFacts>;

/** What `sandbox-run doctor` found: every key is always there, null where unknown. */
export const DoctorReport = z.strictObject({
  version: text,
  ok: z.boolean().describe('the default profile can be enforced here'),
  problem: problem.describe('why not'),
  backend: text.nullable().describe('what would run a command; null: it would be refused'),
  profile: text,
  host: ProcessFacts.extend({ kernel: text, architecture: text, node: text }),
  addon: z.strictObject({ available: z.boolean(), reason }),
  backends: z
    .array(z.strictObject({ id: BackendId, available: z.boolean(), reason }))
    .describe('strongest first; empty if they cannot be tried'),
  landlock: z.strictObject({
    available,
    abi: count.nullable().describe('of the kernel; null: unknown without the addon'),
    newestKnownAbi: count,
    errata: z.array(LandlockErratum),
    errno: text.nullable().describe('why it is absent: the name of the errno'),
    reason,
  }),
  seccomp: z.strictObject({
    available,
    actions: z.array(z.strictObject({ name: text, available })),
    reason,
  }),
  namespaces: z.strictObject({
    available: available.describe('found out by making those of a sandbox'),
    user: z.boolean().describe('a user namespace is among them, because this user has no CAP_SYS_ADMIN'),
    reason,
    sysctls: z.array(Sysctl),
  }),
  cgroup: CgroupFacts.extend({
    place: text
      .nullable()
      .describe('where groups for commands can be made, found out by making one; null: nowhere'),
  }),
  programs: z.array(ProgramFacts),
  controls: z.array(Control).describe('of the default profile; empty without the addon'),
  remedies: z.array(Remedy),
});
export type DoctorReport = Value<typeof DoctorReport>;

export const AttackResult = z.enum(ATTACK_RESULTS);
export type AttackResult = Value<typeof AttackResult>;

/** One attack of the report. */
export const AttackOutcome = z.strictObject({
  id: text,
  result: AttackResult,
  detail: text.describe('one sentence: what was done, and what came of it'),
});
export type AttackOutcome = Value<typeof AttackOutcome>;

/** One control of the report. */
export const AttackedControl = z.strictObject({
  id: ControlId,
  claimed: ControlState.describe('what the enforcement report says'),
  result: AttackResult.describe('the worst of its attacks'),
  attacks: z.array(AttackOutcome),
  improve: text
    .nullable()
    .describe('what to do about it: a setting, a package, a kernel; null: nothing is to be done'),
});
export type AttackedControl = Value<typeof AttackedControl>;

/** What `sandbox-run doctor --attack` found: every key is always there, null where unknown. */
export const AttackReport = z.strictObject({
  version: text,
  ok: z
    .boolean()
    .describe('a sandbox could be made, what was tried in it could be carried out, and nothing escaped'),
  problem: problem.describe(
    'why no sandbox could be made: commands are refused here, and nothing was attacked',
  ),
  profile: text.nullable(),
  backend: text.nullable(),
  passedOver: z.array(PassedOver).describe('stronger backends that were not used, and why'),
  landlockAbi: count.nullable(),
  controls: z.array(AttackedControl),
});
export type AttackReport = Value<typeof AttackReport>;
