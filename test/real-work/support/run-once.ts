import { withoutNamespaces } from '../../../src/confine/backends/index.ts';
import { probeHost } from '../../../src/confine/index.ts';
import { loadAddon } from '../../../src/confine/native/index.ts';
import {
  type Command,
  createSandbox,
  type PolicyFile,
  type RunOptions,
  type SandboxOptions,
} from '../../../src/index.ts';

/** `view`: with namespaces, the default; `landlock`: as on a host that refuses them. */
export type Tier = 'view' | 'landlock';

/** Makes this process take its host for one of the given kind, from now on. */
export function pretendTier(tier: Tier): void {
  const features = probeHost(loadAddon());
  // The cached answer of the probe is what the library plans with.
  if (tier === 'landlock') Object.assign(features, withoutNamespaces(features, 'taken away by a test'));
}

/** One command in a sandbox of its own. Plain data: it may travel to another process. */
export interface RunRequest {
  readonly sandbox: SandboxOptions;
  readonly command: Command;
  readonly options: Pick<RunOptions, 'cwd' | 'env' | 'timeout' | 'input'>;
}

/** What came of it. */
export interface RunAnswer {
  /** `exited 0`, `signaled SIGSEGV`, `setup-failed: MESSAGE`. */
  readonly outcome: string;
  readonly stdout: string;
  readonly stderr: string;
  readonly hadView: boolean;
}

/** Makes a sandbox, runs one command and closes it. */
export async function runOnce(request: RunRequest): Promise<RunAnswer> {
  // Whether work gets done in confinement is asked here, not what the policy thinks of it.
  const policy = {
    unsafe: { unjudged_commands: true },
    ...(request.sandbox.policy as PolicyFile | undefined),
  };
  const sandbox = await createSandbox({ ...request.sandbox, policy });
  try {
    const result = await sandbox.run(request.command, request.options);
    const detail = result.error?.message ?? result.signal ?? result.exitCode;
    return {
      outcome: `${result.status} ${detail}`,
      stdout: result.stdout,
      stderr: result.stderr,
      hadView: sandbox.plan.namespaces !== undefined,
    };
  } finally {
    await sandbox.close();
  }
}
