import { dirname } from 'node:path';
import { isBeneath } from '../../base/absolute-path.ts';
import { SandboxError } from '../../base/errors/sandbox-error.ts';
import type { LaunchPlan } from '../../confine/plan/launch-plan.ts';
import type { SandboxOptions } from '../../model/index.ts';
import { type OpenSandbox, openSandbox } from '../../run/index.ts';
import type { Surroundings } from '../../workspace/index.ts';
import type { Handlers, Offer } from '../core/offer.ts';
import { SERVE_LIMITS, type ServeLimits } from '../protocol/limits.ts';
import { type MethodName, NOTIFICATIONS, type NotificationName } from '../protocol/tables.ts';
import { converse } from './handlers.ts';
import { Switchboard } from './questions.ts';
import { type NamedShell, nameShell, type Shared } from './shells.ts';

/** What a server is made from. */
interface ServiceOptions {
  /** The operator's: clients change nothing of it. */
  readonly sandbox: SandboxOptions;
  /** Where the call comes from. */
  readonly around: Surroundings;
  /** One line for the log. */
  readonly onProblem: (message: string) => void;
  /** What keeps commands in, in one line. */
  readonly describe: (plan: LaunchPlan) => string;
  /** There is one shell, which all clients use, and nothing else. */
  readonly shell?: { readonly name: string; readonly unusedTimeout: number };
}

/** One sandbox, for many connections. */
export interface Service {
  readonly sandbox: OpenSandbox;
  readonly offer: Offer;
  readonly shell: NamedShell | undefined;
  /** Ends all commands and the sandbox. */
  close(): Promise<void>;
}

/** What the clients of a named shell may ask. */
const OF_A_SHELL: readonly MethodName[] = [
  ...(['session.run', 'session.info', 'session.interrupt', 'session.snapshot', 'session.close'] as const),
  ...(['approvals.list', 'approvals.answer'] as const),
];

/** A client of a named shell that neither runs nor asks anything has no use for its place. */
const SHELL_IDLE_MS = 30_000;

/**
 * Makes the sandbox that all clients share, and what answers them.
 * @throws {SandboxError} as `openSandbox`.
 */
export async function createService(settings: ServiceOptions): Promise<Service> {
  const { sandbox: options, around, onProblem, describe, shell } = settings;
  const limits = shell === undefined ? SERVE_LIMITS : { ...SERVE_LIMITS, idleMs: SHELL_IDLE_MS };
  const switchboard = new Switchboard(shell === undefined ? 'client of serve' : 'terminal');
  const sandbox = await openSandbox({ ...options, gate: { ...options.gate, ...switchboard.gate } }, around);
  let named: NamedShell | undefined;
  try {
    if (shell !== undefined) named = nameShell(shell.name, await sandbox.session(), shell.unusedTimeout);
    else refuseLongOutput(options.maxOutput ?? sandbox.policy.limits.outputBytes, limits);
  } catch (error) {
    await sandbox.close();
    throw error;
  }
  let lastId = 0;
  const shared: Shared = {
    ...{ sandbox, switchboard, limits, named, confinement: describe(sandbox.plan) },
    newId: () => `${++lastId}`,
  };
  return {
    sandbox,
    shell: named,
    offer: {
      limits,
      strangers: false,
      notifications: Object.keys(NOTIFICATIONS) as NotificationName[],
      open: (client) => {
        const conversation = converse(client, shared);
        return named === undefined
          ? conversation
          : { ...conversation, handlers: only(OF_A_SHELL, conversation.handlers) };
      },
      onProblem,
    },
    close: () => sandbox.close(),
  };
}

function only(names: readonly MethodName[], handlers: Handlers): Handlers {
  return Object.fromEntries(Object.entries(handlers).filter(([name]) => names.some((one) => one === name)));
}

/** All of a result is one message. */
function refuseLongOutput(
  maxOutput: number | { readonly head: number; readonly tail: number } | undefined,
  { outputBytes }: ServeLimits,
): void {
  const bytes = typeof maxOutput === 'object' ? maxOutput.head + maxOutput.tail : (maxOutput ?? 0);
  if (bytes <= outputBytes) return;
  throw new SandboxError(
    'usage.invalid',
    `serve keeps at most ${outputBytes} bytes of each output stream, not ${bytes}: lower --max-output or the policy's limits, and let clients use spawn for longer output`,
  );
}

/**
 * Where commands can read they could also connect, on kernels that cannot keep them from it.
 * @throws {SandboxError} `gate.unusable`.
 */
export function refuseReachable(path: string, { paths, workspace }: LaunchPlan): void {
  const roots = [workspace, ...paths.map((planned) => planned.path)];
  const root = roots.find((place) => isBeneath(path, place) || isBeneath(dirname(path), place));
  if (root === undefined) return;
  throw new SandboxError(
    'gate.unusable',
    `serve cannot use ${path}: it lies in ${root}, which commands can reach; choose a directory outside, such as one in XDG_RUNTIME_DIR`,
  );
}
