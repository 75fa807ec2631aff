import { SandboxError } from '../errors/sandbox-error.ts';
import { createAnswerer } from '../gate/server/answer.ts';
import { serveSocket } from '../gate/server/connection/socket-server.ts';
import { serveFolder } from '../gate/server/folder/folder-server.ts';
import type { GateServer, OnAnswer, RefusedMessage } from '../gate/server/ports.ts';
import { createRefusalReport } from '../gate/server/refusal-report.ts';
import { ambiguousUid } from '../host/ambiguous-uid.ts';
import type { AuditRecord } from '../model/audit-record.ts';
import type { SandboxOptions } from '../model/options.ts';
import { loadAddon } from '../native/load.ts';
import { assemble } from './assemble.ts';
import { createGateDecider } from './gate-decider.ts';
import { resolvePolicy } from './resolve/resolve-policy.ts';

/** Beyond what people and the reviewer may take: for the store, the disk and the judge. */
const MARGIN_MS = 15_000;

/** What a gate server is made from. */
interface GateServiceOptions {
  /** Whose policy decides. */
  readonly sandbox: SandboxOptions;
  readonly socket?: string | undefined;
  readonly folders?: { readonly requests: string; readonly responses: string } | undefined;
  /** Besides the user of this process. */
  readonly allowedUids: readonly number[];
  readonly onAnswer?: OnAnswer;
  readonly onRefusal?: (refused: RefusedMessage, count: number) => void;
  readonly onProblem?: (message: string) => void;
}

/**
 * Starts the servers of a gate.
 * @throws {SandboxError} as `createChecker`; `gate.unusable`; `addon.unavailable`.
 */
export async function startGateService(options: GateServiceOptions): Promise<GateServer> {
  const addon = loadAddon();
  const onProblem = (problem: string | undefined) => {
    if (problem !== undefined) options.onProblem?.(problem);
  };
  const allowedUids = new Set([...options.allowedUids, process.geteuid?.() ?? -1]);
  refuseAmbiguous(allowedUids);
  const resolved = await resolvePolicy(options.sandbox);
  const { policy } = resolved;
  const assembly = await assemble(resolved, undefined, options.sandbox, { guards: true, records: 'always' });
  const { record } = assembly.stateful;
  const audit = record && { append: async (entry: AuditRecord) => onProblem?.(await record(entry)) };
  const decide = createGateDecider(assembly, onProblem);
  const timeoutMs = policy.approval.timeoutMs + policy.approval.reviewerTimeoutMs + MARGIN_MS;
  const answer = createAnswerer({ decide, timeoutMs, onAnswer: options.onAnswer });
  const { report, flush } = createRefusalReport({ audit, onRefusal: options.onRefusal });

  const servers: GateServer[] = [];
  const close = async () => {
    await Promise.all(servers.map((server) => server.close()));
    await flush();
    await assembly.close();
  };
  try {
    const { socket, folders } = options;
    const { tryLock, peerCredentials: peerOf } = addon;
    if (folders !== undefined) {
      const limits = { requestAgeMs: policy.approval.timeoutMs };
      servers.push(
        await serveFolder({ ...folders, allowedUids, tryLock, answer, report, onProblem, limits }),
      );
    }
    if (socket !== undefined) {
      servers.push(await serveSocket({ path: socket, allowedUids, peerOf, tryLock, answer, report }));
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { close };
}

function refuseAmbiguous(uids: ReadonlySet<number>): void {
  const ambiguous = ambiguousUid();
  if (ambiguous === undefined || !uids.has(ambiguous)) return;
  throw new SandboxError(
    'gate.unusable',
    `user ${ambiguous} may not ask here: in this user namespace everybody who has no place in it looks like that; start the gate outside of it`,
  );
}
