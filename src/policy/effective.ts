import { resolve } from 'node:path';
import { SandboxError } from '../errors/sandbox-error.ts';
import type { BackendId } from '../model/backend.ts';
import type { Autonomy } from '../model/decision.ts';
import { CONTROL_IDS, type ControlId } from '../model/enforcement-report.ts';
import type {
  ApproverName,
  CommandRule,
  PathRule,
  Policy,
  ReviewerSettings,
  TreeLimits,
} from '../model/policy.ts';
import { DEFAULT_PROFILE, PROFILES } from './profiles/built-in.ts';
import type { PolicyFile, RuleInFile } from './schema.ts';

/** What the caller adds to profile and file; the options of the command line and of `createSandbox`. */
export interface PolicyOptions {
  readonly profile?: string | undefined;
  readonly autonomy?: Autonomy | undefined;
  readonly ask?: ApproverName | undefined;
  readonly file?: PolicyFile | undefined;
  readonly readable?: readonly string[];
  readonly writable?: readonly string[];
  readonly passEnvironment?: readonly string[];
  readonly setEnvironment?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number | undefined;
  readonly outputBytes?: number | undefined;
  readonly outputHeadBytes?: number | undefined;
  readonly idleTimeoutMs?: number | undefined;
  readonly limits?: TreeLimits | undefined;
  readonly backend?: BackendId | 'auto' | undefined;
}

/**
 * Profile, then policy file, then options; `~` stands for `home`. Pure.
 * @throws {SandboxError} `policy.unknown_profile`.
 */
export function effectivePolicy(options: PolicyOptions, workspace: string, home: string): Policy {
  const file = options.file ?? {};
  const name = options.profile ?? file.profile ?? DEFAULT_PROFILE;
  const base = PROFILES.find((profile) => profile.name === name)?.policy;
  if (base === undefined) {
    const known = PROFILES.map((profile) => profile.name).join(', ');
    throw new SandboxError('policy.unknown_profile', `there is no profile "${name}"; known: ${known}`);
  }
  const absolute = (path: string) =>
    /^~(?=\/|$)/.test(path) ? `${home}${path.slice(1)}` : resolve(workspace, path);
  const rules = (
    paths: readonly string[] | undefined,
    access: PathRule['access'],
    reason: string,
  ): PathRule[] => (paths ?? []).map((path) => ({ path: absolute(path), access, required: true, reason }));
  const { security, commands, filesystem, network, environment, limits, approval, audit, unsafe } = file;

  return {
    profile: base.profile,
    security: {
      autonomy: options.autonomy ?? security?.autonomy ?? base.security.autonomy,
      maxActionsPerHour: security?.max_actions_per_hour ?? base.security.maxActionsPerHour,
    },
    commands: {
      allow: commands?.allow ?? base.commands.allow,
      permitDangerous: [...base.commands.permitDangerous, ...(commands?.permit_dangerous ?? [])],
      rules: [...base.commands.rules, ...(commands?.rules ?? []).map(commandRule)],
    },
    approval: {
      ask: options.ask ?? approval?.ask ?? base.approval.ask,
      timeoutMs: seconds(approval?.timeout_seconds) ?? base.approval.timeoutMs,
      reviewerTimeoutMs: seconds(approval?.reviewer_timeout_seconds) ?? base.approval.reviewerTimeoutMs,
    },
    reviewer: reviewerSettings(file.reviewer) ?? base.reviewer,
    hooks: {
      gitGuard: file.hooks?.git_guard ?? base.hooks.gitGuard,
      plugins: [
        ...base.hooks.plugins,
        ...(file.hooks?.plugins ?? []).map(({ path, sha256 }) => ({ path, sha256 })),
      ],
    },
    audit: {
      enabled: audit?.enabled ?? base.audit.enabled,
      onFailure: audit?.on_failure ?? base.audit.onFailure,
      hmacKeyFile: audit?.hmac_key_file ?? base.audit.hmacKeyFile,
    },
    unsafe: { unjudgedCommands: unsafe?.unjudged_commands ?? base.unsafe.unjudgedCommands },
    filesystem: {
      ...base.filesystem,
      rules: [
        ...base.filesystem.rules,
        ...rules(filesystem?.read, 'read', 'filesystem.read in the policy'),
        ...rules(filesystem?.write, 'write', 'filesystem.write in the policy'),
        ...rules(options.readable, 'read', 'asked for by the caller'),
        ...rules(options.writable, 'write', 'asked for by the caller'),
      ],
      protected: [...base.filesystem.protected, ...(filesystem?.protect ?? [])],
      secret: [...base.filesystem.secret, ...(filesystem?.secret ?? []).map(absolute)],
      tmp: filesystem?.tmp ?? base.filesystem.tmp,
      home: filesystem?.home ?? base.filesystem.home,
      cache: filesystem?.cache ?? base.filesystem.cache,
    },
    network: {
      mode: network?.mode ?? base.network.mode,
      unixSockets: network?.unix_sockets ?? base.network.unixSockets,
    },
    environment: {
      pass: [...base.environment.pass, ...(environment?.pass ?? []), ...(options.passEnvironment ?? [])],
      set: { ...base.environment.set, ...environment?.set, ...options.setEnvironment },
    },
    limits: {
      ...base.limits,
      ...definedOnly({
        memory: options.limits?.memory ?? limits?.memory,
        processes: options.limits?.processes ?? limits?.processes,
        cpuSeconds: options.limits?.cpuSeconds ?? limits?.cpu_seconds,
        tmpBytes: options.limits?.tmpBytes ?? limits?.tmp_bytes,
        userProcesses: limits?.user_processes,
        openFiles: limits?.open_files,
        fileSize: limits?.file_size,
        addressSpace: limits?.address_space,
        timeoutMs: options.timeoutMs ?? seconds(limits?.timeout_seconds),
        idleTimeoutMs: options.idleTimeoutMs ?? seconds(limits?.idle_timeout_seconds),
        killGraceMs: seconds(limits?.kill_grace_seconds),
        outputBytes: options.outputBytes ?? limits?.output_bytes,
        outputHeadBytes: options.outputHeadBytes ?? limits?.output_head_bytes,
        umask: limits?.umask === undefined ? undefined : Number.parseInt(limits.umask, 8),
      }),
    },
    demand: { ...base.demand, ...file.demand },
    sandbox: {
      backend: options.backend ?? base.sandbox.backend,
      minimum: file.sandbox?.minimum ?? base.sandbox.minimum,
      accepted: acceptedBackend(options.backend, file.sandbox?.minimum ?? base.sandbox.minimum),
      demandedByFiles: demandedBy(file),
    },
  };
}

/** What is named is accepted as it is; below the minimum it is refused all the same. */
function acceptedBackend(named: BackendId | 'auto' | undefined, minimum: BackendId | undefined) {
  return named === undefined || named === 'auto' ? minimum : named;
}

/** The controls that a file says something about. */
export function demandedBy({ demand }: Pick<PolicyFile, 'demand'>): readonly ControlId[] {
  return CONTROL_IDS.filter((id) => demand?.[id] !== undefined);
}

const DEFAULT_KEY_VARIABLE = 'ANTHROPIC_API_KEY';
/** Models that think before they answer count that too. */
const DEFAULT_REVIEW_TOKENS = 1024;

function reviewerSettings(file: PolicyFile['reviewer']): ReviewerSettings | undefined {
  const [program, ...args] = file?.command ?? [];
  if (program !== undefined) return { kind: 'command', argv: [program, ...args] };
  if (file?.model === undefined) return undefined;
  return {
    kind: 'model',
    model: file.model,
    baseUrl: file.base_url,
    keyVariable: file.key_variable ?? DEFAULT_KEY_VARIABLE,
    maxTokens: file.max_tokens ?? DEFAULT_REVIEW_TOKENS,
  };
}

/** A rule as the checks use it. */
export function commandRule({ program, words, verdict, reason }: RuleInFile): CommandRule {
  return { program, words: words ?? [], verdict, reason };
}

/** Seconds of a file in milliseconds. */
export function seconds(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.round(value * 1000);
}

function definedOnly<T extends object>(values: T): { [Key in keyof T]?: Exclude<T[Key], undefined> } {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined)) as {
    [Key in keyof T]?: Exclude<T[Key], undefined>;
  };
}
