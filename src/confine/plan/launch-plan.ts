import { z } from 'zod';
import { count, maybe, text, texts, type Value } from '../../base/value.ts';
import { FILE_RIGHTS, NETWORK_RIGHTS, SCOPES } from '../kernel/landlock/rights.ts';
import { SECCOMP_GROUP_NAMES, type SeccompGroupName } from '../kernel/seccomp/groups.ts';
import { EnforcementReport } from './enforcement-report.ts';
import { NetworkRules } from './network-rules.ts';

const namesOf = <Name extends string>(rows: readonly { readonly name: Name }[]) =>
  z.enum(rows.map(({ name }) => name) as [Name, ...Name[]]);

const fileRights = z.array(namesOf(FILE_RIGHTS));

/** A symbolic link and where it leads. */
export const SymbolicLink = z.strictObject({ path: text, content: text });
export type SymbolicLink = Value<typeof SymbolicLink>;

/** A directory of the cgroup v2 hierarchy in which groups for commands can be made. */
export const CgroupPlace = z.strictObject({
  path: text,
  cloneInto: z.boolean().describe('a command can be born in its group'),
});
export type CgroupPlace = Value<typeof CgroupPlace>;

/**
 * What a command may do with a path and everything beneath it. `data`: read; `read`: read and execute; `write`:
 * everything; `device`: read and write a device node.
 */
const PATH_ACCESSES = ['data', 'read', 'write', 'device'] as const;

export const PathAccess = z.enum(PATH_ACCESSES);
export type PathAccess = Value<typeof PathAccess>;

/** A canonical path with what the kernel will be told about it. */
export const PlannedPath = z.strictObject({
  path: text,
  access: PathAccess,
  required: z.boolean(),
  reason: text,
  shownAs: text.optional().describe('where it is in a view; missing: at its own path'),
});
export type PlannedPath = Value<typeof PlannedPath>;

/** One Landlock rule by name. `path` may be `slot:…` or `shm:` (see the addon's contract). */
export const PlannedRule = z.strictObject({
  path: text,
  rights: fileRights.describe('on a directory; on anything else, those of them that are valid there'),
  required: z.boolean(),
  inView: z.boolean().describe('it names an object of the view, not of the host'),
});
export type PlannedRule = Value<typeof PlannedRule>;

/** Where the changes of a command go instead of the workspace. All canonical, and hidden from commands. */
export const PlannedLayer = z.strictObject({
  lower: texts.describe('layers of change sets that this one is made on, the topmost first'),
  upper: text.describe('takes the changes'),
  work: text.describe('an empty directory beside that, for the kernel'),
});
export type PlannedLayer = Value<typeof PlannedLayer>;

/** One object of the view. `bind` shows a host path at the same place. */
export const PlannedViewStep = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('bind'),
    source: text,
    target: text,
    writable: z.boolean(),
    device: z.boolean(),
    required: z.boolean(),
    watched: z
      .boolean()
      .describe('looked at before and after each command: what is protected, whether it exists or not'),
    fromView: z
      .boolean()
      .describe('it shows what the view has there by then, which a layer may have changed, and not the host'),
  }),
  z.strictObject({
    kind: z.literal('layer').describe('a directory of the host with a copy-on-write layer over it'),
    source: text,
    target: text,
    layer: PlannedLayer,
  }),
  z.strictObject({
    kind: z
      .literal(['symlink', 'bind-link'])
      .describe(
        'bind-link: a link is mounted over a file, so that it leads elsewhere and cannot be replaced',
      ),
    content: text,
    target: text,
  }),
  z.strictObject({
    kind: z
      .literal(['devpts', 'masked-file', 'between'])
      .describe(
        'way: a directory that holds nothing but what other steps put into it, and cannot be written',
      ),
    target: text,
  }),
  z.strictObject({
    kind: z
      .literal('emptied')
      .describe(
        'an empty file or directory, as is there, is mounted over it, read-only; source: the directory',
      ),
    source: text,
    target: text,
    fromView: z
      .boolean()
      .describe('what lies there is what the view has by then; where it has nothing, nothing is mounted'),
    refused: z
      .boolean()
      .describe('a file that cannot be opened, so that programs say so, instead of an empty one'),
  }),
]);
export type PlannedViewStep = Value<typeof PlannedViewStep>;

/** Limits of a command with everything that it starts; missing: none. */
export const PlannedTreeLimits = z.strictObject({
  memoryBytes: maybe(count),
  processes: maybe(count),
  cpuSeconds: maybe(z.number()),
  tmpBytes: maybe(count),
  idleTimeoutMs: maybe(z.number()),
  cgroup: maybe(CgroupPlace).describe(
    'where control groups for commands are made; missing: processes are looked at now and then',
  ),
});
export type PlannedTreeLimits = Value<typeof PlannedTreeLimits>;

/** What becomes of the caches in a private home. */
export const PlannedCache = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('workspace'),
    directory: text.describe('canonical; holds places, which commands see, and lock'),
    links: z.array(SymbolicLink).describe('in the private home, where tools look for their caches'),
  }),
  z.strictObject({ kind: z.literal('private'), reason: text }),
]);
export type PlannedCache = Value<typeof PlannedCache>;

/** Resource limits by name; the number is known to `confine/kernel/rlimits.ts`. */
const ResourceLimitName = z.enum(['core', 'nproc', 'nofile', 'fsize', 'as', 'cpu']);
export type ResourceLimitName = Value<typeof ResourceLimitName>;

/** Which calls of commands are looked at, each with those before it. */
const OBSERVED = ['nothing', 'changes', 'everything', 'uses'] as const;

/** Everything that the kernel has to enforce for the commands of one sandbox, by name. */
export const LaunchPlan = z.strictObject({
  workspace: text,
  workspaceAsNamed: text.describe(
    'the name that its user gave it, links included, unless commands could change what the name leads to',
  ),
  paths: z.array(PlannedPath),
  protectedPaths: texts.describe(
    'absolute; shut for writing where they exist: in the workspace, and this program where it is writable',
  ),
  shutsInside: z
    .boolean()
    .describe('true: by mounts; false: what commands do to the protected paths is undone when they end'),
  watchedLinks: z
    .array(SymbolicLink)
    .describe(
      'links on the way to those, which no mount can hold in place: put back after a command that replaced one',
    ),
  hiddenPaths: texts.describe(
    'directories in whose place the command finds nothing: those of this program. They must exist',
  ),
  emptied: texts.describe(
    'what filesystem.hide matches now: files and directories that are empty and shut for the command',
  ),
  layer: maybe(PlannedLayer).describe('missing: commands change the workspace itself'),
  onlyReads: z
    .boolean()
    .describe('commands are known to do nothing but read, and can write nothing that is not private to them'),
  copies: z
    .array(
      z.strictObject({
        source: text,
        path: text,
        shownAs: text,
        hooksPath: text
          .optional()
          .describe(
            'a file that says what commands set core.hooksPath to; it counts where the source says nothing',
          ),
      }),
    )
    .describe(
      'files of the workspace of which each command has a copy of its own, at path; what it makes of it is looked at before it is taken over',
    ),
  landlock: z.strictObject({
    abi: count.describe('0: not used'),
    handledFile: fileRights,
    handledNetwork: z.array(namesOf(NETWORK_RIGHTS)),
    scoped: z.array(namesOf(SCOPES)),
    rules: z.array(PlannedRule),
  }),
  namespaces: maybe(
    z.strictObject({
      user: z.boolean(),
      network: z.boolean(),
      ipc: z.boolean(),
      view: z.array(PlannedViewStep),
    }),
  ),
  network: z
    .enum(['refused', 'isolated', 'listed', 'open'])
    .describe('what the network is to be; listed: what networkRules allows, by way of a supervisor'),
  networkRules: maybe(NetworkRules),
  links: z.array(SymbolicLink).describe('links on the way to paths, by which programs know them'),
  exitTracing: z
    .boolean()
    .describe(
      'one process of a command at a time may halt others as they exit; else seccompGroups says what becomes of that',
    ),
  observed: z
    .enum(OBSERVED)
    .describe('which calls are looked at to tell what was denied; none of them is held up by it'),
  seccompGroups: z
    .array(z.enum(SECCOMP_GROUP_NAMES as [SeccompGroupName, ...SeccompGroupName[]]))
    .describe('empty: no filter'),
  limits: z.array(z.strictObject({ name: ResourceLimitName, value: z.number() })),
  treeLimits: PlannedTreeLimits,
  umask: maybe(count).describe('missing: that of the launcher'),
  temporaryParent: text.describe('where the private directories of commands are made'),
  memoryParent: maybe(text).describe('the same on shared memory; missing: none'),
  slotDirectories: texts.describe(
    'private directories of a command, slot:tmp and slot:home unless those of the host are shared',
  ),
  toldDirectories: texts.describe(
    'in the private home: what a command makes there is told, because it goes with the home',
  ),
  seedFiles: z
    .array(z.strictObject({ path: text, content: text }))
    .describe('put into the private home before each command'),
  cache: PlannedCache,
  home: text.describe('what the command finds in HOME'),
  homes: texts.describe('where a private home lies in a view, canonical'),
  tmp: text.describe('what the command finds in TMPDIR'),
  report: EnforcementReport,
});
export type LaunchPlan = Value<typeof LaunchPlan>;
