import type { Policy, PolicyFile } from '../../model/index.ts';

/** The classic allow-list of agents: programs that read, one that copies and one that edits. */
const CLASSIC_ALLOW_LIST = ['ls', 'cat', 'cp', 'head', 'printenv', 'pwd', 'rg', 'sed', 'which'];

/** A built-in profile with a line for `--help`. */
export interface Profile {
  readonly name: string;
  readonly summary: string;
  /** A name that it had, which policy files may still say. */
  readonly formerly?: string;
  /** Beside {@link EVERY_PROFILE}. */
  readonly says: PolicyFile;
  readonly workspaceAccess: Policy['filesystem']['workspaceAccess'];
}

/** The built-in profiles; the first is the default. */
export const PROFILES: readonly [Profile, ...Profile[]] = [
  {
    name: 'workspace-write',
    summary: 'write the workspace and a private /tmp, read the system, no network (default)',
    says: {},
    workspaceAccess: 'write',
  },
  {
    name: 'read-only',
    summary: 'the workspace cannot be written, and of /etc only what is listed is read',
    says: { filesystem: { system: 'listed' } },
    workspaceAccess: 'read',
  },
  {
    name: 'offline-build',
    summary: 'as workspace-write, for long builds: ten minutes and 16 MiB of output',
    says: { limits: { timeout_seconds: 600, output_bytes: 16 * 1024 ** 2 } },
    workspaceAccess: 'write',
  },
  {
    name: 'strict-nine',
    formerly: 'allowlist',
    summary: `as workspace-write, and only ${CLASSIC_ALLOW_LIST.join(' ')}`,
    says: { commands: { allow: CLASSIC_ALLOW_LIST } },
    workspaceAccess: 'write',
  },
  {
    name: 'networked',
    summary: 'as workspace-write, with the network of the host',
    says: { network: { mode: 'open' } },
    workspaceAccess: 'write',
  },
];
