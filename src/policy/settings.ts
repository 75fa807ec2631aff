import type { Policy } from '../model/policy.ts';

/** One value of a policy under the name that it has in policy files. */
export interface Setting {
  readonly key: string;
  readonly of: (policy: Policy) => unknown;
}

const seconds = (milliseconds: number) => milliseconds / 1000;

/** What one value decides. A later layer replaces it. */
export const SCALAR_SETTINGS: readonly Setting[] = [
  { key: 'profile', of: (policy) => policy.profile },
  { key: 'security.autonomy', of: (policy) => policy.security.autonomy },
  { key: 'security.max_actions_per_hour', of: (policy) => policy.security.maxActionsPerHour },
  { key: 'commands.allow', of: (policy) => policy.commands.allow },
  { key: 'filesystem.tmp', of: (policy) => policy.filesystem.tmp },
  { key: 'filesystem.home', of: (policy) => policy.filesystem.home },
  { key: 'filesystem.cache', of: (policy) => policy.filesystem.cache },
  { key: 'network.mode', of: (policy) => policy.network.mode },
  { key: 'network.unix_sockets', of: (policy) => policy.network.unixSockets },
  { key: 'limits.timeout_seconds', of: (policy) => seconds(policy.limits.timeoutMs) },
  { key: 'limits.kill_grace_seconds', of: (policy) => seconds(policy.limits.killGraceMs) },
  { key: 'limits.output_bytes', of: (policy) => policy.limits.outputBytes },
  { key: 'limits.output_head_bytes', of: (policy) => policy.limits.outputHeadBytes },
  { key: 'limits.idle_timeout_seconds', of: (policy) => seconds(policy.limits.idleTimeoutMs) },
  { key: 'limits.memory', of: (policy) => policy.limits.memory },
  { key: 'limits.processes', of: (policy) => policy.limits.processes },
  { key: 'limits.cpu_seconds', of: (policy) => policy.limits.cpuSeconds },
  { key: 'limits.tmp_bytes', of: (policy) => policy.limits.tmpBytes },
  { key: 'limits.user_processes', of: (policy) => policy.limits.userProcesses },
  { key: 'limits.open_files', of: (policy) => policy.limits.openFiles },
  { key: 'limits.file_size', of: (policy) => policy.limits.fileSize },
  { key: 'limits.address_space', of: (policy) => policy.limits.addressSpace },
  { key: 'limits.umask', of: ({ limits }) => limits.umask?.toString(8).padStart(3, '0') },
  { key: 'approval.ask', of: (policy) => policy.approval.ask },
  { key: 'approval.timeout_seconds', of: (policy) => seconds(policy.approval.timeoutMs) },
  { key: 'reviewer', of: (policy) => policy.reviewer },
  { key: 'hooks.git_guard', of: (policy) => policy.hooks.gitGuard },
  { key: 'audit.enabled', of: (policy) => policy.audit.enabled },
  { key: 'audit.on_failure', of: (policy) => policy.audit.onFailure },
  { key: 'audit.hmac_key_file', of: (policy) => policy.audit.hmacKeyFile },
  {
    key: 'approval.reviewer_timeout_seconds',
    of: (policy) => seconds(policy.approval.reviewerTimeoutMs),
  },
  { key: 'unsafe.unjudged_commands', of: (policy) => policy.unsafe.unjudgedCommands },
  { key: 'sandbox.minimum', of: (policy) => policy.sandbox.minimum },
];

/** A list that the layers add to. */
export interface ListSetting {
  readonly key: string;
  readonly of: (policy: Policy) => readonly unknown[];
}

const granted = (policy: Policy, key: string) =>
  policy.filesystem.rules.filter((rule) => rule.reason.startsWith(key)).map((rule) => rule.path);

/** What adds up over the layers, in their order. This table decides it: `merge.ts` replaces every list that is not here. */
export const LIST_SETTINGS: readonly ListSetting[] = [
  { key: 'commands.permit_dangerous', of: (policy) => policy.commands.permitDangerous },
  { key: 'commands.rules', of: (policy) => policy.commands.rules },
  { key: 'filesystem.read', of: (policy) => granted(policy, 'filesystem.read') },
  { key: 'filesystem.write', of: (policy) => granted(policy, 'filesystem.write') },
  { key: 'filesystem.protect', of: (policy) => policy.filesystem.protected },
  { key: 'filesystem.secret', of: (policy) => policy.filesystem.secret },
  { key: 'hooks.plugins', of: (policy) => policy.hooks.plugins },
  { key: 'environment.pass', of: (policy) => policy.environment.pass },
];

/** Tables with names of their own. */
export const TABLE_SETTINGS: readonly {
  readonly key: string;
  readonly of: (policy: Policy) => Readonly<Record<string, unknown>>;
}[] = [
  { key: 'environment.set', of: (policy) => policy.environment.set },
  { key: 'demand', of: (policy) => policy.demand },
];

/** What is weaker than the default policy, wherever it is said; `policy show` lists it. */
const WEAKENINGS: readonly {
  readonly key: string;
  readonly weak: (policy: Policy, standard: Policy) => boolean;
  readonly meaning: string;
}[] = [
  {
    key: 'unsafe.unjudged_commands',
    weak: ({ unsafe }) => unsafe.unjudgedCommands,
    meaning: 'commands are not judged, and no hook or guard is asked about them',
  },
  {
    key: 'security.autonomy',
    weak: ({ security }) => security.autonomy === 'autonomous',
    meaning: 'nothing is asked for risk',
  },
  {
    key: 'commands.permit_dangerous',
    weak: ({ commands }) => commands.permitDangerous.length > 0,
    meaning: 'dangerous programs may run',
  },
  {
    key: 'audit.on_failure',
    weak: ({ audit }) => audit.onFailure === 'warn',
    meaning: 'commands run that the audit trail may not have',
  },
  {
    key: 'network.mode',
    weak: ({ network }) => network.mode === 'open',
    meaning: 'the network of the host can be reached',
  },
  {
    key: 'network.unix_sockets',
    weak: ({ network }) => network.unixSockets === 'allowed',
    meaning: 'sockets of the host can be reached',
  },
  {
    key: 'filesystem.tmp',
    weak: ({ filesystem }) => filesystem.tmp === 'host',
    meaning: 'the temporary directory is shared with other programs',
  },
  {
    key: 'filesystem.home',
    weak: ({ filesystem }) => filesystem.home === 'host',
    meaning: 'the home directory can be written',
  },
  {
    key: 'demand',
    weak: ({ demand }, standard) =>
      Object.entries(standard.demand).some(
        ([id, wanted]) =>
          wanted === 'required' &&
          Object.entries(demand).some(([other, now]) => other === id && now !== wanted),
      ),
    meaning: 'commands run where a control cannot be enforced that is required by default',
  },
  {
    key: 'sandbox.minimum',
    weak: ({ sandbox }) => sandbox.accepted === 'firejail' || sandbox.accepted === 'application',
    meaning: 'commands run under a backend that cannot hold all that is required by default',
  },
];

/** What in a policy is weaker than in the default one: key and meaning. */
export function weakenings(
  policy: Policy,
  standard: Policy,
): readonly { readonly key: string; readonly meaning: string }[] {
  return WEAKENINGS.filter(({ weak }) => weak(policy, standard)).map(({ key, meaning }) => ({
    key,
    meaning,
  }));
}
