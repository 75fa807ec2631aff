import { z } from 'zod';
import { ATTACK_RESULTS } from '../../attack/attack-report.ts';
import type { CgroupFacts } from '../../host/doctor-facts.ts';
import type { RemedyPriority } from '../../host/doctor-report.ts';
import {
  backend,
  control,
  controlId,
  controlState,
  count,
  names,
  passedOver,
  text,
  texts,
} from './common.ts';

const problem = z.strictObject({ code: text, message: text }).nullable();
const available = z.boolean().nullable();
const reason = text.nullable();

/** `sandbox-run doctor --json`: every key is always there, null where unknown. */
export const doctorReport = z.strictObject({
  version: text,
  ok: z.boolean().describe('the default profile can be enforced here'),
  problem,
  backend: text.nullable(),
  profile: text,
  host: z.strictObject({
    ...{ kernel: text, architecture: text, node: text },
    uid: z.number().int(),
    sysAdmin: z.boolean(),
    container: text.nullable(),
    seccompMode: count.nullable(),
    noNewPrivs: z.boolean(),
  }),
  addon: z.strictObject({ available: z.boolean(), reason }),
  backends: z.array(z.strictObject({ id: backend, available: z.boolean(), reason })),
  landlock: z.strictObject({
    available,
    abi: count.nullable(),
    newestKnownAbi: count,
    errata: z.array(z.strictObject({ number: count, meaning: text, fixed: z.boolean() })),
    errno: text.nullable(),
    reason,
  }),
  seccomp: z.strictObject({
    available,
    actions: z.array(z.strictObject({ name: text, available })),
    reason,
  }),
  namespaces: z.strictObject({
    available,
    user: z.boolean(),
    reason,
    sysctls: z.array(z.strictObject({ name: text, value: text.nullable() })),
  }),
  cgroup: z.strictObject({
    version: names<CgroupFacts['version']>('v1', 'v2', 'v1+v2', 'none'),
    path: text.nullable(),
    controllers: texts,
    writable: z.boolean(),
    place: text.nullable(),
  }),
  programs: z.array(
    z.strictObject({
      name: text,
      path: text.nullable(),
      version: text.nullable(),
      problem: text.nullable(),
      setuidRoot: z.boolean(),
    }),
  ),
  controls: z.array(control),
  remedies: z.array(
    z.strictObject({
      topic: text,
      priority: names<RemedyPriority>('needed', 'useful', 'optional'),
      text,
      command: text.nullable(),
    }),
  ),
});

const result = z.enum(ATTACK_RESULTS);

/** `sandbox-run doctor --attack --json`. */
export const attackReport = z.strictObject({
  version: text,
  ok: z.boolean(),
  problem,
  profile: text.nullable(),
  backend: text.nullable(),
  passedOver,
  landlockAbi: count.nullable(),
  controls: z.array(
    z.strictObject({
      id: controlId,
      claimed: controlState,
      result,
      attacks: z.array(z.strictObject({ id: text, result, detail: text })),
      improve: text.nullable(),
    }),
  ),
});
