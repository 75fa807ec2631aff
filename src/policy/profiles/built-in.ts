import type { Policy } from '../../model/policy.ts';
import { PROTECTED_PATHS } from './obeyed-files.ts';
import { MASKED_PATHS, SYSTEM_PATHS } from './system-paths.ts';

const MIB = 1024 * 1024;

/** The classic allow-list of agents: programs that read, one that copies and one that edits. */
const CLASSIC_ALLOW_LIST = ['ls', 'cat', 'cp', 'head', 'printenv', 'pwd', 'rg', 'sed', 'which'];

const workspaceWrite: Policy = {
  profile: 'workspace-write',
  security: { autonomy: 'contained', maxActionsPerHour: undefined },
  commands: { allow: undefined, permitDangerous: [], rules: [] },
  approval: { ask: 'terminal', timeoutMs: 300_000, reviewerTimeoutMs: 10_000 },
  reviewer: undefined,
  hooks: { gitGuard: false, plugins: [] },
  audit: { enabled: undefined, onFailure: 'refuse', hmacKeyFile: undefined },
  unsafe: { unjudgedCommands: false },
  filesystem: {
    rules: SYSTEM_PATHS,
    protected: PROTECTED_PATHS,
    masked: MASKED_PATHS,
    secret: [],
    workspaceAccess: 'write',
    tmp: 'auto',
    home: 'private',
    cache: 'workspace',
  },
  network: { mode: 'off', unixSockets: 'contained' },
  environment: {
    pass: [
      'PATH',
      'TERM',
      'LANG',
      'LC_ALL',
      'LC_CTYPE',
      'USER',
      'SHELL',
      'TZ',
      'COLORTERM',
      'NO_COLOR',
      'CI',
    ],
    set: {},
  },
  limits: {
    coreSize: 0,
    // More than parallel builds and test runners have on large machines, less than any host can bear. There is no number
    // for memory, files or processor time that would not end somebody's build: memory goes by the size of the host.
    processes: 4096,
    timeoutMs: 60_000,
    idleTimeoutMs: 0,
    outputBytes: MIB,
    killGraceMs: 2_000,
  },
  demand: {
    filesystem: 'required',
    network: 'required',
    privileges: 'required',
    descriptors: 'required',
    environment: 'required',
  },
  sandbox: { backend: 'auto', minimum: undefined, accepted: undefined, demandedByFiles: [] },
};

/** A built-in profile with a line for `--help`. */
export interface Profile {
  readonly name: string;
  readonly summary: string;
  readonly policy: Policy;
}

/** The registry of built-in profiles; the first is the default. */
export const PROFILES: readonly Profile[] = [
  {
    name: 'workspace-write',
    summary: 'write the workspace and a private /tmp, read the system, no network (default)',
    policy: workspaceWrite,
  },
  {
    name: 'read-only',
    summary: 'as workspace-write, but the workspace cannot be written',
    policy: {
      ...workspaceWrite,
      profile: 'read-only',
      filesystem: { ...workspaceWrite.filesystem, workspaceAccess: 'read' },
    },
  },
  {
    name: 'offline-build',
    summary: 'as workspace-write, for long builds: ten minutes and 16 MiB of output',
    policy: {
      ...workspaceWrite,
      profile: 'offline-build',
      limits: { ...workspaceWrite.limits, timeoutMs: 600_000, outputBytes: 16 * MIB },
    },
  },
  {
    name: 'allowlist',
    summary: `as workspace-write, and only ${CLASSIC_ALLOW_LIST.join(' ')}`,
    policy: {
      ...workspaceWrite,
      profile: 'allowlist',
      commands: { ...workspaceWrite.commands, allow: CLASSIC_ALLOW_LIST },
    },
  },
  {
    name: 'networked',
    summary: 'as workspace-write, with the network of the host',
    policy: {
      ...workspaceWrite,
      profile: 'networked',
      network: { mode: 'open', unixSockets: 'contained' },
    },
  },
];

/** The profile used where none is named. */
export const DEFAULT_PROFILE = 'workspace-write';
