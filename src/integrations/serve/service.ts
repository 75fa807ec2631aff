import { SandboxError } from '../../errors/sandbox-error.ts';
import type { SandboxOptions } from '../../model/options.ts';
import { openSandbox } from '../../run/sandbox.ts';
import { type Connection, type ConnectionParts, serveConnection } from './connection.ts';
import type { Shared } from './handlers.ts';
import { createSwitchboard } from './questions.ts';
import { SERVE_LIMITS, type ServeLimits } from './serve-limits.ts';

/** What a server is made from. */
export interface ServiceOptions {
  /** The operator's: clients change nothing of it. */
  readonly sandbox: SandboxOptions;
  /** One line for the log. */
  readonly onProblem: (message: string) => void;
  readonly limits?: Partial<ServeLimits>;
}

/** One sandbox, for many connections. */
export interface Service {
  readonly sandbox: Shared['sandbox'];
  readonly limits: ServeLimits;
  /** Serves one more client. */
  connect(parts: Pick<ConnectionParts, 'input' | 'output' | 'handshakeMs' | 'admit'>): Connection;
  readonly connections: () => number;
  /** Ends all connections, all commands and the sandbox. */
  close(): Promise<void>;
}

/**
 * Makes the sandbox that all clients share, and what answers them.
 * @throws {SandboxError} as `openSandbox`.
 */
export async function createService({
  sandbox: options,
  onProblem,
  ...more
}: ServiceOptions): Promise<Service> {
  const limits = { ...SERVE_LIMITS, ...more.limits };
  const switchboard = createSwitchboard();
  const { approver: terminal, onQueued, asking } = switchboard;
  const sandbox = await openSandbox({ ...options, gate: { ...options.gate, terminal, onQueued, asking } });
  try {
    refuseLongOutput(options.maxOutput ?? sandbox.policy.limits.outputBytes, limits);
  } catch (error) {
    await sandbox.close();
    throw error;
  }
  let lastId = 0;
  const shared: Shared = { sandbox, switchboard, limits, newId: () => `${++lastId}` };
  const connections = new Set<Connection>();
  const onFailure = (error: unknown) =>
    onProblem(`a request failed: ${error instanceof Error ? error.message : String(error)}`);
  let closed: Promise<void> | undefined;
  async function close(): Promise<void> {
    await Promise.all([...connections].map((connection) => connection.end()));
    await sandbox.close();
  }
  return {
    sandbox,
    limits,
    connect: (parts) => {
      const connection = serveConnection({ ...parts, shared, onFailure });
      connections.add(connection);
      void connection.ended.then(() => connections.delete(connection));
      return connection;
    },
    connections: () => connections.size,
    close: () => {
      closed ??= close();
      return closed;
    },
  };
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
