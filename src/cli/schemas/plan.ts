import { z } from 'zod';
import { FILE_RIGHTS, NETWORK_RIGHTS, SCOPES } from '../../kernel/landlock/rights.ts';
import { SECCOMP_GROUP_NAMES, type SeccompGroupName } from '../../kernel/seccomp/groups.ts';
import { AUTONOMIES } from '../../model/decision.ts';
import type { LaunchPlan, ResourceLimitName } from '../../model/launch-plan.ts';
import type { PathAccess } from '../../model/policy.ts';
import { count, names, report, text, texts } from './common.ts';

const namesOf = <Name extends string>(rows: readonly { readonly name: Name }[]) =>
  z.enum(rows.map(({ name }) => name) as [Name, ...Name[]]);

const viewStep = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('bind'),
    source: text,
    target: text,
    writable: z.boolean(),
    device: z.boolean(),
    required: z.boolean(),
    watched: z.boolean(),
  }),
  z.strictObject({ kind: z.literal(['symlink', 'bind-link']), content: text, target: text }),
  z.strictObject({ kind: z.literal(['devpts', 'masked-file', 'directory']), target: text }),
]);

/** `sandbox-run --dry-run --json`. */
export const plan = z.strictObject({
  timeout: z.number().describe('Milliseconds; 0: none.'),
  maxOutput: count.describe('Bytes kept of each output stream.'),
  autonomy: z.enum(AUTONOMIES).describe('The level in force.'),
  workspace: text,
  paths: z.array(
    z.strictObject({
      path: text,
      access: names<PathAccess>('data', 'read', 'write', 'device'),
      required: z.boolean(),
      reason: text,
    }),
  ),
  protectedPaths: texts,
  shutsInside: z.boolean(),
  watchedLinks: z.array(z.strictObject({ path: text, content: text })),
  hiddenPaths: texts,
  copies: z.array(z.strictObject({ source: text, path: text, shownAs: text })),
  landlock: z.strictObject({
    abi: count,
    handledFile: z.array(namesOf(FILE_RIGHTS)),
    handledNetwork: z.array(namesOf(NETWORK_RIGHTS)),
    scoped: z.array(namesOf(SCOPES)),
    rules: z.array(
      z.strictObject({
        path: text,
        rights: z.array(namesOf(FILE_RIGHTS)),
        required: z.boolean(),
        inView: z.boolean(),
      }),
    ),
  }),
  namespaces: z
    .strictObject({
      user: z.boolean(),
      network: z.boolean(),
      ipc: z.boolean(),
      view: z.array(viewStep),
    })
    .optional(),
  network: names<LaunchPlan['network']>('refused', 'isolated', 'open'),
  links: z.array(z.strictObject({ path: text, content: text })),
  exitTracing: z.boolean(),
  seccompGroups: z.array(z.enum(SECCOMP_GROUP_NAMES as [SeccompGroupName, ...SeccompGroupName[]])),
  limits: z.array(
    z.strictObject({
      name: names<ResourceLimitName>('core', 'nproc', 'nofile', 'fsize', 'as', 'cpu'),
      value: z.number(),
    }),
  ),
  treeLimits: z.strictObject({
    memoryBytes: count.optional(),
    processes: count.optional(),
    cpuSeconds: z.number().optional(),
    tmpBytes: count.optional(),
    idleTimeoutMs: z.number().optional(),
    cgroup: z.strictObject({ path: text, cloneInto: z.boolean() }).optional(),
  }),
  umask: count.optional(),
  temporaryParent: text,
  memoryParent: text.optional(),
  slotDirectories: texts,
  seedFiles: z.array(z.strictObject({ path: text, content: text })),
  cache: z.discriminatedUnion('kind', [
    z.strictObject({
      kind: z.literal('workspace'),
      directory: text,
      links: z.array(z.strictObject({ path: text, content: text })),
    }),
    z.strictObject({ kind: z.literal('private'), reason: text }),
  ]),
  home: text,
  tmp: text,
  report,
});
